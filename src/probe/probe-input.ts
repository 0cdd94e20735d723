/** What the probe lets a web client send beside its text, for tools that watch the caller's input. */
import { MULAW_BYTES_PER_MS } from '../limits.js';

/** A steady tone of 2 kHz, far below a voice: no model and no detector takes it for a caller's turn. mu-law at 8 kHz. */
export function steadyNoise(ms: number): Uint8Array {
  return Uint8Array.from({ length: ms * MULAW_BYTES_PER_MS }, (_, at) => (at % 4 < 2 ? 0xd8 : 0x58));
}

export const NOISE_FORMAT = 'audio/x-mulaw;rate=8000';

/** 64 by 64 points of one grey, as PNG. */
export const PICTURE = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAEAAAABACAAAAACPAi4CAAAAKklEQVR42u3MMQ0AAAwDoDqu/68i9i0ggPQoAoFAIBAIBAKBQCAQCL4HA13v8FulWFkvAAAAAElFTkSuQmCC',
  'base64',
);
