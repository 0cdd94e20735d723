import * as fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import { designLowpass } from '../../src/audio/kaiser-lowpass.js';
import { VoiceActivity } from '../../src/audio/voice-activity.js';
import {
  type SpokenCall,
  babble,
  compare,
  spokenCall,
  toInt16,
  whiteNoise,
  withNoise,
} from '../../bench/spoken-call.mjs';
import { ituEncodeAll, seededRandom } from './sound.js';

const FRAME = 160;
const speakers = {
  voices: ['slt', 'rms', 'kal'],
  sentences: ['I want a refund for order A one zero two nine three', 'yes please', 'where is my order'],
  designLowpass,
};

/** Speech synthesis takes a second or two, and many times that on a machine that is busy with something else. */
const SLOW_MACHINE_MS = 180_000;

let call: SpokenCall;
beforeAll(async () => {
  call = await spokenCall(speakers);
}, SLOW_MACHINE_MS);

/** What a new detector says of each frame. */
function verdictsOn(samples: readonly number[]): boolean[] {
  return verdictsOnCodes(ituEncodeAll(toInt16(samples)));
}

function verdictsOnCodes(codes: Buffer): boolean[] {
  const voice = new VoiceActivity();
  const verdicts = Array.from({ length: codes.length / FRAME }, (_, frame) =>
    voice.push(codes.subarray(frame * FRAME, (frame + 1) * FRAME)),
  );
  voice.release();
  return verdicts;
}

function share(verdicts: readonly boolean[]): number {
  return verdicts.filter(Boolean).length / verdicts.length;
}

describe('voice activity', () => {
  it('finds clean speech and its pauses', () => {
    const { recall, falseAlarms, endErrorMs } = compare(verdictsOn(call.samples), call.speech);
    expect(recall).toBeGreaterThanOrEqual(0.9);
    expect(falseAlarms).toBeLessThanOrEqual(0.15);
    expect(Math.abs(endErrorMs)).toBeLessThanOrEqual(60);
  });

  it('finds most of the speech over white noise 10 dB below, and hardly anything else', () => {
    const noise = whiteNoise(call.samples.length);
    const { recall, falseAlarms } = compare(verdictsOn(withNoise({ call, noise, snrDb: 10 })), call.speech);
    expect(recall).toBeGreaterThanOrEqual(0.6);
    expect(falseAlarms).toBeLessThanOrEqual(0.1);
  });

  it('finds speech over babble 15 dB below', async () => {
    const noise = await babble({ ...speakers, count: call.samples.length });
    const { recall, falseAlarms } = compare(verdictsOn(withNoise({ call, noise, snrDb: 15 })), call.speech);
    expect(recall).toBeGreaterThanOrEqual(0.75);
    expect(falseAlarms).toBeLessThanOrEqual(0.3);
  });

  it('never finds a voice in digital silence or in low noise', () => {
    expect(share(verdictsOnCodes(Buffer.alloc(500 * FRAME, 0xff)))).toBe(0);
    expect(share(verdictsOnCodes(Buffer.alloc(500 * FRAME, 0x7f)))).toBe(0);
    expect(share(verdictsOn(whiteNoise(500 * FRAME).map((sample) => 20 * sample)))).toBe(0);
  });

  it('takes steady noise for noise, also when it begins in the middle of a silent call', () => {
    const loud = whiteNoise(1_000 * FRAME).map((sample, i) => (i < 200 * FRAME ? 0 : 1_000 * sample));
    expect(share(verdictsOn(loud).slice(200 + 150))).toBeLessThanOrEqual(0.01);
  });

  it('does not take a click for a voice', () => {
    const clicks = Array.from({ length: 300 * FRAME }, (_, i) => (i % 8_000 < 40 ? 20_000 * (-1) ** i : 0));
    expect(share(verdictsOn(clicks))).toBe(0);
  });

  it('says the same however the sound is cut', () => {
    const codes = ituEncodeAll(toInt16(call.samples.slice(0, 400 * FRAME)));
    const expected = verdictsOnCodes(codes);
    expect(new Set(expected)).toEqual(new Set([true, false]));
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 900 }), { minLength: 1, maxLength: 30 }), (cuts) => {
        const voice = new VoiceActivity();
        for (let at = 0, turn = 0; at < codes.length; turn++) {
          const end = Math.min(codes.length, at + cuts[turn % cuts.length]!);
          const completed = expected.slice(Math.floor(at / FRAME), Math.floor(end / FRAME));
          const before = voice.voiced;
          const found = voice.push(codes.subarray(at, end));
          expect(found).toBe(completed.length === 0 ? before : completed.includes(true));
          expect(voice.voiced).toBe(completed.at(-1) ?? before);
          at = end;
        }
        voice.release();
      }),
      { numRuns: 25 },
    );
  });

  it('keeps calls apart', () => {
    const speech = ituEncodeAll(toInt16(call.samples.slice(0, 300 * FRAME)));
    const expected = verdictsOnCodes(speech);
    const random = seededRandom(6);
    const [one, other] = [new VoiceActivity(), new VoiceActivity()];
    const verdicts = expected.map((_, frame) => {
      other.push(Buffer.from(Array.from({ length: FRAME }, () => Math.floor(256 * random()))));
      return one.push(speech.subarray(frame * FRAME, (frame + 1) * FRAME));
    });
    expect(verdicts).toEqual(expected);
    one.release();
    other.release();
  });

  it('is released once and for all', () => {
    const voice = new VoiceActivity();
    voice.release();
    voice.release();
    expect(() => voice.push(Buffer.alloc(FRAME))).toThrow('after its release');
  });

  it('serves 300 calls at once, again and again', () => {
    const speech = ituEncodeAll(toInt16(call.samples.slice(0, 20 * FRAME)));
    for (let round = 0; round < 20; round++) {
      const voices = Array.from({ length: 300 }, () => new VoiceActivity());
      for (const voice of voices) voice.push(speech);
      for (const voice of voices) voice.release();
    }
    expect(verdictsOn(call.samples.slice(0, 300 * FRAME))).toContain(true);
  });
});
