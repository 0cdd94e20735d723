/**
 * Loud callers stay loud callers: the path neither wraps a sample nor loses level, up to full scale and beyond it, and
 * what is silent stays silent to the last bit once the filters have let go of what was before.
 */
import { describe, expect, it } from 'vitest';
import { AgentDecimator } from '../../src/audio/agent-decimator.js';
import { CallerUpsampler } from '../../src/audio/caller-upsampler.js';
import { MULAW_SILENCE } from '../../src/limits.js';
import { SPEECH_VOICES } from '../../src/model/rehearsal/speech-synthesizer.js';
import { samplesOf } from '../audio/sound.js';
import { note, SLOW_MACHINE_MS } from './figures.js';
import { describeHumanSpeech, readRecording } from './human-speech.js';
import {
  decibels,
  echo,
  encoded,
  likenesses,
  perfectRoundTrip,
  rmsOf,
  roundTrip,
  soundOf,
  toModel,
} from './line-sound.js';
import { readVoice } from './shipped-callers.js';

/** Input samples until a filter holds nothing of what was before: 63 taps at 16 kHz, 96 at 24 kHz. */
const UP_TAIL = 32;
const DOWN_TAIL_24K = 96;

function peakOf(samples: Float64Array): number {
  return samples.reduce((most, sample) => Math.max(most, Math.abs(sample)), 0);
}

/** `samples` with their peak at `peakDb` of full scale; above 0 dB the top is cut off, as an overdriven line does. */
function atPeak(samples: Float64Array, peakDb: number): Float64Array {
  const gain = 10 ** (peakDb / 20) / peakOf(samples);
  return samples.map((sample) => Math.max(-1, Math.min(1, gain * sample)));
}

/** What is wrong with the level, shape and sign of what comes back from a voice of this peak. */
function changesAt(name: string, samples: Float64Array, peakDb: number): string[] {
  const codes = encoded(atPeak(samples, peakDb));
  const wanted = perfectRoundTrip(codes);
  const codesBack = roundTrip(codes);
  const returned = soundOf(codesBack);
  const [kept, best] = likenesses(wanted, [codesBack, encoded(wanted)]);
  const gainDb = decibels(rmsOf(returned) / rmsOf(wanted));
  // A wrapped sample is on the other side of zero by nearly full scale; the filters differ only above 3.4 kHz.
  const farthest = returned.reduce((most, sample, n) => {
    const clipped = Math.max(-1, Math.min(1, wanted[n] ?? 0));
    return Math.max(most, Math.abs(sample - clipped));
  }, 0);
  note('level', {
    name,
    peakDb,
    gainDb,
    farthest,
    meanSnrDb: kept!.meanSnrDb,
    bestMeanSnrDb: best!.meanSnrDb,
    peakBackDb: decibels(peakOf(returned)),
  });
  // Measured: up to 0.02 dB, 0.07 of full scale and 0.15 dB lower for a cut-off voice; a wrap would be 1 to 2.
  return [
    ...(Math.abs(gainDb) <= 0.3 ? [] : [`${name}: the level is ${gainDb} dB off`]),
    ...(farthest <= 0.25 ? [] : [`${name}: a sample is ${farthest} of full scale off`]),
    ...(best!.meanSnrDb - kept!.meanSnrDb <= 0.5 ? [] : [`${name}: ${kept!.meanSnrDb} dB over the error`]),
  ];
}

/** What is not dead silence behind `codes`, once the filters hold nothing of them any more. */
function soundBehind(codes: Uint8Array): { up: number; down: number } {
  const upsampler = new CallerUpsampler();
  upsampler.push(codes);
  const up = samplesOf(Buffer.from(upsampler.push(Buffer.alloc(800, MULAW_SILENCE)))).subarray(2 * UP_TAIL);
  upsampler.release();
  const decimator = new AgentDecimator();
  decimator.push(echo(toModel(codes)));
  const down = Buffer.from(decimator.push(Buffer.alloc(2 * 3 * 800))).subarray(DOWN_TAIL_24K / 3);
  decimator.release();
  return {
    up: up.filter((sample) => sample !== 0).length,
    down: down.filter((code) => code !== MULAW_SILENCE).length,
  };
}

/** A faint voice, two near the telephone's own limit, and one that was too loud before it came here. */
const PEAKS_DB = [-20, -3, 0, 6];

describe('loudness', { timeout: SLOW_MACHINE_MS }, () => {
  it.each(SPEECH_VOICES.flatMap((voice) => PEAKS_DB.map((peakDb) => ({ voice, peakDb }))))(
    'is kept: $voice with its peak at $peakDb dBFS',
    async ({ voice, peakDb }) => {
      const samples = soundOf(await readVoice(voice, 'clean'));
      expect(changesAt(voice, samples.subarray(8_000, 4 * 8_000), peakDb)).toEqual([]);
    },
  );

  it.each(['loudest positive', 'loudest negative', 'as loud as can be, in turns'])(
    'never wraps: %s',
    (what) => {
      const codes = Buffer.alloc(1_600, what === 'loudest positive' ? 0x80 : 0x00);
      if (what.startsWith('as')) codes.forEach((_, n) => (codes[n] = n % 8 < 4 ? 0x80 : 0x00));
      const wanted = perfectRoundTrip(codes);
      const returned = soundOf(roundTrip(codes));
      const wrapped = [...returned.keys()].slice(100, 1_500).filter((n) => {
        const expected = wanted[n] ?? 0;
        return Math.abs(expected) > 0.25 && Math.sign(returned[n] ?? 0) !== Math.sign(expected);
      });
      expect(wrapped).toEqual([]);
    },
  );
});

describe('silence', () => {
  it.each(SPEECH_VOICES)('is exact behind %s, as soon as the filters are empty', async (voice) => {
    const codes = await readVoice(voice, 'office-10db');
    expect(soundBehind(codes)).toEqual({ up: 0, down: 0 });
  });

  it.each([
    ['0xff', 0xff],
    ['0x7f, the other zero', 0x7f],
  ])('of %s stays silence for a minute, both ways', (_, code) => {
    const codes = Buffer.alloc(60 * 8_000, code);
    const pcm16k = toModel(codes);
    expect(pcm16k).toHaveLength(4 * codes.length);
    expect(pcm16k.every((byte) => byte === 0)).toBe(true);
    expect(roundTrip(codes.subarray(0, 8_000)).every((back) => back === MULAW_SILENCE)).toBe(true);
  });

  it('between the sentences of a clean voice comes back as silence', async () => {
    const codes = await readVoice('slt', 'clean');
    const back = roundTrip(codes);
    // The first second is the pause before the first word.
    expect(codes.subarray(0, 8_000).every((code) => code === MULAW_SILENCE)).toBe(true);
    expect(back.subarray(0, 8_000).every((code) => code === MULAW_SILENCE)).toBe(true);
  });
});

describeHumanSpeech('the loudness of a person', (recordings) => {
  it.each(PEAKS_DB)(
    'is kept with the peak at %i dBFS, and silence behind it is exact',
    (peakDb) => {
      for (const recording of recordings.filter(({ path }) => /hts[12]a|0880|vm-sorry|004\.wav/.test(path))) {
        const samples = readRecording(recording);
        expect(changesAt(recording.name, samples, peakDb)).toEqual([]);
        expect(soundBehind(encoded(atPeak(samples, peakDb)))).toEqual({ up: 0, down: 0 });
      }
    },
    SLOW_MACHINE_MS,
  );
});
