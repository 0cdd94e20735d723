/**
 * The short way through a model's message that is nothing but sound, ten or twenty kilobytes of base64 five times a
 * second a call: such messages differ in their sound alone, byte for byte, whatever their spacing and order of keys. One
 * that was read the long way is the model for the next: between the same bytes in front and behind, base64 can only be
 * the same message with other sound. Anything else is declined, and `JSON.parse` decides.
 */
import type { GeminiAudioDecoder } from './gemini-audio-decoder.js';
import { isModelPcm } from './gemini-message-reader.js';

/** A server whose messages of sound change around the sound is not worth following further. */
const SHAPES_LEARNT_MAX = 16;

type Fields = Readonly<Record<string, unknown>>;

/** The only value of the only key, `key`, of an object. */
function only(value: unknown, key: string): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
  const keys = Object.keys(value);
  return keys.length === 1 && keys[0] === key ? (value as Fields)[key] : undefined;
}

/** The base64 of a message that holds one part of sound and nothing else that is ever read. */
function soundAlone(message: unknown): string | undefined {
  const turn = only(only(message, 'serverContent'), 'modelTurn');
  if (typeof turn !== 'object' || turn === null) return undefined;
  const { parts } = turn as Fields;
  if (!Array.isArray(parts) || parts.length !== 1) return undefined;
  const [part] = parts as [unknown];
  if (typeof part !== 'object' || part === null) return undefined;
  const { inlineData } = part as Fields;
  if (typeof inlineData !== 'object' || inlineData === null) return undefined;
  const { mimeType, data } = inlineData as Fields;
  if (typeof mimeType !== 'string' || !isModelPcm(mimeType)) return undefined;
  return typeof data === 'string' && data !== '' ? data : undefined;
}

export class GeminiSoundShape {
  readonly #decoder: GeminiAudioDecoder;
  #head = Buffer.alloc(0);
  #tail = Buffer.alloc(0);
  #learnt = 0;

  constructor(decoder: GeminiAudioDecoder) {
    this.#decoder = decoder;
  }

  /** `message` was read from `data`: learns from it, if it was sound alone. */
  learn(data: Buffer, message: unknown): void {
    if (this.#learnt === SHAPES_LEARNT_MAX) return;
    const sound = soundAlone(message);
    if (sound === undefined) return;
    const at = data.indexOf(sound, 0, 'latin1');
    // Not found: it is written with escapes. Found twice, as a short sound may be: which one it is cannot be told.
    if (at === -1 || data.indexOf(sound, at + 1, 'latin1') !== -1) return;
    this.#head = Buffer.from(data.subarray(0, at));
    this.#tail = Buffer.from(data.subarray(at + sound.length));
    this.#learnt += 1;
  }

  /** The sound of a message of the learnt shape, valid until the decoder's next call; undefined for any other. */
  read(data: Buffer): Uint8Array | undefined {
    const head = this.#head;
    const tail = this.#tail;
    const end = data.length - tail.length;
    if (head.length === 0 || end <= head.length) return undefined;
    if (data.compare(head, 0, head.length, 0, head.length) !== 0) return undefined;
    if (data.compare(tail, 0, tail.length, end, data.length) !== 0) return undefined;
    // A quote or a backslash would not be base64: the string ends where the tail says.
    return this.#decoder.decode(data.toString('latin1', head.length, end));
  }
}
