/** Set up in front of every test file: properties that name no seed go by FUZZ_SEED, too, so that every run is the same. */
import { configureGlobal } from 'fast-check';
import { FUZZ_SEED } from './seed.js';

configureGlobal({ seed: FUZZ_SEED });
