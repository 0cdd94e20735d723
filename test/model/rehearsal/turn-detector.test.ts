import { afterAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/clock.js';
import { SeededRandom } from '../../../src/model/rehearsal/seeded-random.js';
import { activeLevelDb, fromPcm16, resample, toPcm16 } from '../../../src/model/rehearsal/speech-sound.mjs';
import { FliteSynthesizer } from '../../../src/model/rehearsal/speech-synthesizer.js';
import { TurnDetector } from '../../../src/model/rehearsal/turn-detector.js';
import { silentLog } from '../../../src/observe/log.js';

const synthesizer = new FliteSynthesizer({ clock: systemClock, log: silentLog });
afterAll(() => synthesizer.close());

const RATE_HZ = 16_000;
const silence = (seconds: number) => new Float64Array(seconds * RATE_HZ);

async function speech(voice: 'slt' | 'rms' | 'awb' | 'kal16', text: string): Promise<Float64Array> {
  return resample(fromPcm16(await synthesizer.speak(voice, text)), 2, 3);
}

function joined(...parts: Float64Array[]): Float64Array {
  return Float64Array.from(parts.flatMap((part) => [...part]));
}

function noisy(samples: Float64Array, levelDb: number, seed: number): Float64Array {
  const random = new SeededRandom(seed);
  const amplitude = 10 ** (levelDb / 20) * Math.sqrt(3);
  const hum = 10 ** ((levelDb - 6) / 20) * Math.SQRT2;
  return samples.map(
    (sample, n) =>
      sample + amplitude * (2 * random.unit() - 1) + hum * Math.sin((2 * Math.PI * 150 * n) / RATE_HZ),
  );
}

/** What the detector says to a sound: starts and ends with the second of sound in which they were said. */
function turnsIn(
  samples: Float64Array,
  chunkBytes = 640,
): { type: string; seconds: number; voicedMs?: number }[] {
  const pcm = toPcm16(samples);
  const bytes = new Uint8Array(pcm.buffer);
  const turns: { type: string; seconds: number; voicedMs?: number }[] = [];
  let seconds = 0;
  const detector = new TurnDetector(
    { startMs: 120, silenceMs: 650 },
    {
      onTurnStart: () => turns.push({ type: 'start', seconds }),
      onTurnEnd: (voicedMs) => turns.push({ type: 'end', seconds, voicedMs }),
    },
  );
  for (let at = 0; at < bytes.length; at += chunkBytes) {
    seconds = at / 2 / RATE_HZ;
    detector.push(bytes.subarray(at, at + chunkBytes), RATE_HZ);
  }
  return turns;
}

describe('the turn detector', () => {
  const sentence = 'Hello, I have a question about my order.';

  it.each(['slt', 'rms', 'awb', 'kal16'] as const)(
    'finds one turn of %s, clean and at 15 dB of noise',
    async (voice) => {
      const spoken = await speech(voice, sentence);
      const spokenSeconds = spoken.length / RATE_HZ;
      const level = activeLevelDb(spoken, RATE_HZ);
      const clean = joined(silence(1), spoken, silence(2));
      for (const sound of [clean, noisy(clean, level - 15, 1), noisy(clean, level - 30, 2)]) {
        const [start, end, ...more] = turnsIn(sound);
        expect(more).toEqual([]);
        expect(start?.type).toBe('start');
        expect(start?.seconds).toBeGreaterThan(1.05);
        expect(start?.seconds).toBeLessThan(1.6);
        expect(end?.type).toBe('end');
        expect(end?.seconds).toBeGreaterThan(1 + spokenSeconds + 0.3);
        expect(end?.seconds).toBeLessThan(1 + spokenSeconds + 0.9);
        expect(end?.voicedMs).toBeGreaterThan(1000 * spokenSeconds - 500);
      }
    },
  );

  it('hears two turns where the caller pauses for a second, and one where for a third of it', async () => {
    const spoken = await speech('rms', sentence);
    expect(turnsIn(joined(silence(1), spoken, silence(1), spoken, silence(1)))).toHaveLength(4);
    expect(turnsIn(joined(silence(1), spoken, silence(0.33), spoken, silence(1)))).toHaveLength(2);
  });

  it.each(['Yes.', 'No.', 'Stop!', 'Wait.'])('hears the short word "%s"', async (word) => {
    for (const voice of ['slt', 'rms', 'awb'] as const) {
      const sound = joined(silence(1), await speech(voice, word), silence(1));
      expect(turnsIn(sound).map(({ type }) => type)).toEqual(['start', 'end']);
    }
  });

  it('takes no line noise for speech: steady, beginning, ending, changing, humming or clicking', () => {
    const clicks = silence(5);
    for (let n = 4_000; n < clicks.length; n += 12_000) clicks.fill(0.5, n, n + 80);
    const hum = silence(5).map((_, n) => 0.1 * Math.sin((2 * Math.PI * 50 * n) / RATE_HZ));
    const tone = silence(3).map((_, n) => 0.2 * Math.sin((2 * Math.PI * 440 * n) / RATE_HZ));
    for (const levelDb of [-60, -50, -40, -30]) {
      const noise = noisy(silence(5), levelDb, -levelDb);
      for (const sound of [
        noise,
        joined(silence(2), noise, silence(2)),
        joined(noisy(silence(3), levelDb - 10, 7), noise),
        joined(silence(1), hum),
        joined(silence(1), tone, silence(1)),
        noisy(clicks, levelDb, 3),
      ]) {
        expect(turnsIn(sound)).toEqual([]);
      }
    }
  });

  it('hears the same in whatever pieces the sound comes', async () => {
    const sound = joined(silence(1), await speech('slt', sentence), silence(1));
    const voiced = turnsIn(sound).map(({ type, voicedMs }) => ({ type, voicedMs }));
    for (const chunkBytes of [1, 7, 641, 100_000]) {
      expect(turnsIn(sound, chunkBytes).map(({ type, voicedMs }) => ({ type, voicedMs }))).toEqual(voiced);
    }
  });

  it('ends an open turn when the sound stops coming', async () => {
    const ends: number[] = [];
    const detector = new TurnDetector(
      { startMs: 120, silenceMs: 650 },
      { onTurnStart: () => {}, onTurnEnd: (voicedMs) => ends.push(voicedMs) },
    );
    const pcm = toPcm16(joined(silence(0.5), await speech('slt', 'Hello.')));
    detector.push(new Uint8Array(pcm.buffer), RATE_HZ);
    expect(detector.inTurn).toBe(true);
    detector.flush();
    detector.flush();
    expect(ends).toHaveLength(1);
    expect(detector.inTurn).toBe(false);
  });
});
