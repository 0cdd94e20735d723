/**
 * Recorded people for the sound tests, where Debian's packages put them; their licences let everybody use them, but
 * they are not this project's to pass on. `scripts/install-test-sounds.sh` installs them. Where they are missing, a suite
 * that needs them says so as a skipped test and on the console, or fails if EARSHOT_REQUIRE_HUMAN_SPEECH is 1, as in CI.
 */
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { toTelephoneRate } from '../../src/replay/caller-resampler.js';

const { WaveFile } = createRequire(import.meta.url)('wavefile') as typeof import('wavefile');

export interface Recording {
  readonly name: string;
  /** The Debian package. */
  readonly package: string;
  /** Of the installed file. */
  readonly path: string;
  /** Hz of headerless PCM16; a WAV file says it itself. */
  readonly rawRate?: number;
  /** Steady enough to say by energy where speech is; radio and street noise are not. */
  readonly clean: boolean;
}

interface Collection {
  readonly package: string;
  readonly folder: string;
  readonly rawRate?: number;
  readonly files: readonly string[];
  readonly noisyFiles?: readonly string[];
}

const COLLECTIONS: readonly Collection[] = [
  {
    // One woman in a studio, 8 kHz.
    package: 'asterisk-core-sounds-en-wav',
    folder: '/usr/share/asterisk/sounds/en_US_f_Allison',
    files: [
      'vm-options.wav',
      'vm-msginstruct.wav',
      'conf-usermenu.wav',
      'dir-intro.wav',
      'queue-periodic-announce.wav',
      'vm-review.wav',
      'vm-newuser.wav',
      'demo-thanks.wav',
      'queue-youarenext.wav',
      'auth-incorrect.wav',
      'privacy-prompt.wav',
      'vm-sorry.wav',
    ],
  },
  {
    // A reader of books and others at a desk, 16 kHz; the room is 20 to 35 dB below the speech.
    package: 'pocketsphinx-testdata',
    folder: '/usr/share/pocketsphinx/test/data',
    rawRate: 16_000,
    files: [
      ...['0870', '0880', '0890', '0920', '0930'].map(
        (part) => `librivox/sense_and_sensibility_01_austen_64kb-${part}.wav`,
      ),
      ...['001', '002', '003', '004', '005'].map((card) => `cards/${card}.wav`),
      'goforward.raw',
      'something.raw',
    ],
  },
  {
    // Men and women from tests of speech codecs, 8 kHz, some on the air.
    package: 'codec2-examples',
    folder: '/usr/share/codec2/raw',
    rawRate: 8_000,
    files: ['hts1a.raw', 'hts2a.raw', 'morig.raw', 'forig.raw', 'cross.raw'],
    noisyFiles: ['kristoff.raw', 'big_dog.raw', 'mmt1.raw', 'vk5qi.raw', 've9qrp_10s.raw'],
  },
];

export const HUMAN_SPEECH_PACKAGES = COLLECTIONS.map((collection) => collection.package);

/** Every recording that the tests use, below `root`, there or not. */
export function recordingsBelow(root = '/'): readonly Recording[] {
  return COLLECTIONS.flatMap(({ package: name, folder, rawRate, files, noisyFiles = [] }) =>
    [...files, ...noisyFiles].map((file) => ({
      name: `${name}: ${file}`,
      package: name,
      path: join(root, folder, file),
      clean: files.includes(file),
      ...(file.endsWith('.raw') && rawRate !== undefined ? { rawRate } : {}),
    })),
  );
}

/** The recording at 8 kHz, full scale 1. */
export function readRecording({ path, rawRate }: Recording): Float64Array {
  const bytes = readFileSync(path);
  if (rawRate !== undefined) {
    const samples = Float64Array.from(
      { length: bytes.length >> 1 },
      (_, n) => bytes.readInt16LE(2 * n) / 32_768,
    );
    return toTelephoneRate(samples, rawRate);
  }
  const wav = new WaveFile(bytes);
  const { numChannels, sampleRate, bitsPerSample } = wav.fmt as Record<string, number>;
  expect({ numChannels, bitsPerSample }, `${path} is mono PCM16`).toEqual({
    numChannels: 1,
    bitsPerSample: 16,
  });
  const samples = Float64Array.from(
    wav.getSamples(false) as unknown as ArrayLike<number>,
    (sample) => sample / 32_768,
  );
  return toTelephoneRate(samples, sampleRate ?? 0);
}

export interface HumanSpeechPlan {
  readonly plan: 'test' | 'skip' | 'fail';
  /** Why not `test`, and what to do about it. */
  readonly why: string;
}

/** What a suite does with the recordings that it found. All or nothing: half of the speakers would pass for all. */
export function planOf(recordings: readonly Recording[], isRequired: boolean): HumanSpeechPlan {
  const missing = recordings.filter(({ path }) => !existsSync(path));
  if (missing.length === 0) return { plan: 'test', why: '' };
  const packages = [...new Set(missing.map((recording) => recording.package))].join(', ');
  const why = `${missing.length} of ${recordings.length} recordings of people are not here; scripts/install-test-sounds.sh installs ${packages}`;
  return { plan: isRequired ? 'fail' : 'skip', why };
}

/** A suite on recorded people; `tests` may read any of them. */
export function describeHumanSpeech(what: string, tests: (recordings: readonly Recording[]) => void): void {
  const recordings = recordingsBelow();
  const { plan, why } = planOf(recordings, process.env['EARSHOT_REQUIRE_HUMAN_SPEECH'] === '1');
  describe(`${what} (recorded people)`, () => {
    if (plan === 'test') {
      tests(recordings);
      return;
    }
    if (plan === 'skip') console.warn(`NOT TESTED: ${what}: ${why}.`);
    it(`needs its recordings (${why})`, (test) => {
      if (plan === 'skip') test.skip(why);
      expect.fail(`${why} (EARSHOT_REQUIRE_HUMAN_SPEECH is 1)`);
    });
  });
}
