/**
 * A voice through the playout arrives whole: whatever pieces the model sends it in, the caller's recorder holds the very
 * bytes that one block would have given, in one stretch where sound came in time, and with silence, never a torn word,
 * where it did not.
 */
import { describe, expect, it } from 'vitest';
import { AgentDecimator } from '../../src/audio/agent-decimator.js';
import { FRAME_MS, MULAW_BYTES_PER_MS, MULAW_SILENCE, START_BUFFER_MIN_MS } from '../../src/limits.js';
import { PlayoutLine } from '../audio/playout-line.js';
import { SLOW_MACHINE_MS } from './figures.js';
import { describeHumanSpeech, readRecording } from './human-speech.js';
import { codesOf, echo, FRAME, toCarrier, toModel } from './line-sound.js';
import { readVoice } from './shipped-callers.js';

/** PCM16 at 24 kHz. */
const MODEL_BYTES_PER_MS = 48;

interface Delivery {
  /** Sizes of the model's pieces in bytes of PCM16, in turns. */
  readonly pieces: readonly number[];
  /** How much faster than real time the model speaks. */
  readonly speed: number;
}

/** Sends what a model says as it would come, through filter and playout; returns the line when all of it was heard. */
function delivered(pcm24k: Buffer, { pieces, speed }: Delivery): PlayoutLine {
  const line = new PlayoutLine();
  const decimator = new AgentDecimator();
  const utterance = line.playout.startUtterance();
  for (let at = 0, turn = 0; at < pcm24k.length; turn += 1) {
    const piece = pcm24k.subarray(at, at + pieces[turn % pieces.length]!);
    at += piece.length;
    line.playout.push(utterance, decimator.push(piece));
    line.clock.advance(piece.length / MODEL_BYTES_PER_MS / speed);
  }
  line.playout.push(utterance, decimator.flush());
  line.playout.endUtterance(utterance);
  decimator.release();
  line.clock.advance(60_000);
  return line;
}

/** The same sound in one block: the filter's whole output, padded to whole frames as the playout does. */
function inOneBlock(pcm24k: Buffer): Buffer {
  const decimator = new AgentDecimator();
  const codes = Buffer.concat([Buffer.from(decimator.push(pcm24k)), Buffer.from(decimator.flush())]);
  decimator.release();
  const padding = (FRAME - (codes.length % FRAME)) % FRAME;
  return Buffer.concat([codes, Buffer.alloc(padding, MULAW_SILENCE)]);
}

/** What the caller's recorder holds of it; the whole is `{ isWhole: true, stretches: 1, underruns: 0 }`. */
function heardOf(pcm24k: Buffer, delivery: Delivery) {
  const { ear, events } = delivered(pcm24k, delivery);
  return {
    isWhole: Buffer.compare(ear.heard(), inOneBlock(pcm24k)) === 0,
    stretches: ear.stretches().length,
    underruns: events.filter((event) => event.startsWith('underrun')).length,
  };
}
const WHOLE = { isWhole: true, stretches: 1, underruns: 0 };

const DELIVERIES: readonly (Delivery & { readonly what: string })[] = [
  { what: 'single bytes', pieces: [1], speed: 3 },
  { what: '37 bytes', pieces: [37], speed: 2 },
  { what: 'pieces about a frame', pieces: [959, 960, 961], speed: 1.5 },
  { what: 'the usual uneven chunks', pieces: [1_920, 7_681, 15_359, 11_520], speed: 3 },
  { what: 'a second at a time', pieces: [48_000], speed: 4 },
];

describe('a voice through the playout', { timeout: SLOW_MACHINE_MS }, () => {
  it.each(DELIVERIES)('is whole, in $what', async (delivery) => {
    // Single bytes are many: the first sentence shows as much.
    const codes = (await readVoice('awb', 'office-20db')).subarray(0, 4 * 8_000);
    expect(heardOf(echo(toModel(codes)), delivery)).toEqual(WHOLE);
  });

  it('has gaps only between its frames when the model is too slow, and each is silence', async () => {
    const pcm24k = echo(toModel((await readVoice('kal16', 'clean')).subarray(8_000, 4 * 8_000)));
    const line = delivered(pcm24k, { pieces: [5_000, 961, 2_399], speed: 0.7 });
    const stretches = line.ear.stretches();
    expect(stretches.length).toBeGreaterThan(2);
    for (const { sound } of stretches) expect(sound.length % FRAME).toBe(0);
    expect(Buffer.compare(line.ear.heard(), inOneBlock(pcm24k))).toBe(0);
  });

  it('waits for the start buffer, not for more', async () => {
    const pcm24k = echo(toModel((await readVoice('rms', 'clean')).subarray(9_600, 3 * 8_000)));
    const line = delivered(pcm24k, { pieces: [FRAME_MS * MODEL_BYTES_PER_MS], speed: 1.01 });
    const first = line.sent.find(({ kind }) => kind === 'media')!;
    // Pieces come every 20 ms; the one that fills the buffer starts the speech.
    expect(first.atMs).toBeLessThanOrEqual(START_BUFFER_MIN_MS);
    expect(first.bytes).toBeLessThanOrEqual(START_BUFFER_MIN_MS * MULAW_BYTES_PER_MS);
    expect(Buffer.compare(line.ear.heard(), inOneBlock(pcm24k))).toBe(0);
  });

  it('gives what the filter alone gives', async () => {
    const pcm24k = echo(toModel(await readVoice('slt', 'clean')));
    const alone = toCarrier(pcm24k);
    const line = delivered(pcm24k, { pieces: [9_600], speed: 3 });
    expect(Buffer.compare(line.ear.heard().subarray(0, alone.length), alone)).toBe(0);
  });
});

describeHumanSpeech('a person through the playout', (recordings) => {
  it.each(DELIVERIES)(
    'is whole, in $what',
    (delivery) => {
      for (const recording of recordings.filter(({ path }) => /hts[12]a|0880|vm-sorry/.test(path))) {
        const codes = codesOf(readRecording(recording)).subarray(0, 2 * 8_000);
        expect(heardOf(echo(toModel(codes)), delivery), `${recording.name} as heard`).toEqual(WHOLE);
      }
    },
    SLOW_MACHINE_MS,
  );
});
