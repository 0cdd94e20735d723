/**
 * What the soak's model says, made once for all calls: tones as 24 kHz PCM16, and whole messages with them as ready frames, so that sixty
 * calls at once cost no encoding. Chunks are of whole periods, so that any order of them is one unbroken tone.
 */
import { CLOSING_HZ, SPEECH_HZ } from './heard-sound.js';

const RATE_HZ = 24_000;
const SPEECH_AMPLITUDE = 8_000;
/** Below anything that is audible on a telephone (google-gemini/gemini-live-api-examples issue 40). */
const FAINT_AMPLITUDE = 12;
/** How the end of an answer sounds, for so long. */
export const CLOSING_MS = 160;
/** Chunks are 40 to 160 ms, as the service cuts them. */
export const CHUNKS_MS = [40, 80, 160] as const;

export type ChunkSound = 'speech' | 'closing' | 'faint';

function tone(ms: number, hertz: number, amplitude: number): Uint8Array {
  const samples = Int16Array.from({ length: (ms * RATE_HZ) / 1_000 }, (_, at) =>
    Math.round(amplitude * Math.sin((2 * Math.PI * hertz * at) / RATE_HZ)),
  );
  return new Uint8Array(samples.buffer);
}

function pcmOf(sound: ChunkSound, ms: number): Uint8Array {
  if (sound === 'faint') return tone(ms, SPEECH_HZ, FAINT_AMPLITUDE);
  return tone(ms, sound === 'speech' ? SPEECH_HZ : CLOSING_HZ, SPEECH_AMPLITUDE);
}

/** An answer in one piece; one that is whole ends with the closing tone. */
export function answerPcm(ms: number, isWhole: boolean): Uint8Array {
  const speech = pcmOf('speech', isWhole ? ms - CLOSING_MS : ms);
  return isWhole ? Buffer.concat([speech, pcmOf('closing', CLOSING_MS)]) : speech;
}

function messageOf(sound: ChunkSound, ms: number): Buffer {
  const inlineData = {
    mimeType: 'audio/pcm;rate=24000',
    data: Buffer.from(pcmOf(sound, ms)).toString('base64'),
  };
  return Buffer.from(
    JSON.stringify({ serverContent: { modelTurn: { role: 'model', parts: [{ inlineData }] } } }),
  );
}

const messages = new Map(
  (['speech', 'closing', 'faint'] as const).flatMap((sound) =>
    CHUNKS_MS.map((ms) => [`${sound} ${ms}`, messageOf(sound, ms)] as const),
  ),
);

/** A message with so much sound. */
export function chunkMessage(sound: ChunkSound, ms: (typeof CHUNKS_MS)[number]): Buffer {
  return messages.get(`${sound} ${ms}`)!;
}

const DATA = Buffer.from('"data":"');
/** The head of a message, within which its sound begins. */
const HEAD_BYTES = 96;
/** Of a message's sound, base64 characters that are looked at: 36 samples from the middle. */
const LOOKED_AT = 96;
/** Peak of 16-bit samples: callers of the soak speak some thousands loud. */
const LOUD_PEAK = 1_000;

/** A caller's sound as the server sends it: how long it is, and whether there is speech in it; undefined where it is no sound. */
export function callerSound(message: Buffer): { ms: number; isLoud: boolean } | undefined {
  const head = message.subarray(0, HEAD_BYTES);
  const found = head.indexOf(DATA);
  if (found < 0 || head.indexOf('audio/pcm') < 0) return undefined;
  const from = found + DATA.length;
  const length = message.indexOf('"', from) - from;
  // Eight characters are three whole samples.
  const middle = from + Math.max(0, Math.floor((length - LOOKED_AT) / 16) * 8);
  const pcm = Buffer.from(
    message.toString('latin1', middle, Math.min(middle + LOOKED_AT, from + length)),
    'base64',
  );
  let peak = 0;
  for (let at = 0; at + 1 < pcm.length; at += 2) peak = Math.max(peak, Math.abs(pcm.readInt16LE(at)));
  return { ms: (length * 3) / 4 / 32, isLoud: peak > LOUD_PEAK };
}
