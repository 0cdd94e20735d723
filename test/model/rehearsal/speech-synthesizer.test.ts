import { spawnSync } from 'node:child_process';
import { afterAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/clock.js';
import { AudioError } from '../../../src/errors.js';
import {
  SPEECH_CACHE_MAX_BYTES,
  SPEECH_QUEUE_MAX,
  SPEECH_TEXT_MAX_CHARS,
} from '../../../src/model/rehearsal/rehearsal-limits.js';
import { activeLevelDb, fromPcm16, resample } from '../../../src/model/rehearsal/speech-sound.mjs';
import {
  FliteSynthesizer,
  SPEECH_RATE_HZ,
  SPEECH_VOICES,
} from '../../../src/model/rehearsal/speech-synthesizer.js';
import { silentLog } from '../../../src/observe/log.js';

const synthesizer = new FliteSynthesizer({ clock: systemClock, log: silentLog });
afterAll(() => synthesizer.close());

function workerThat(script: string): FliteSynthesizer {
  const workerUrl = new URL(`data:text/javascript,${encodeURIComponent(script)}`);
  return new FliteSynthesizer({ clock: systemClock, log: silentLog, workerUrl });
}

function levelOfToneDb(samples: Float64Array, rateHz: number, toneHz: number): number {
  let re = 0;
  let im = 0;
  const margin = Math.floor(samples.length / 8);
  for (let n = margin; n < samples.length - margin; n += 1) {
    re += samples[n]! * Math.cos((2 * Math.PI * toneHz * n) / rateHz);
    im += samples[n]! * Math.sin((2 * Math.PI * toneHz * n) / rateHz);
  }
  return 20 * Math.log10((2 * Math.hypot(re, im)) / (samples.length - 2 * margin));
}

function tone(rateHz: number, toneHz: number): Float64Array {
  return Float64Array.from({ length: rateHz }, (_, n) => Math.sin((2 * Math.PI * toneHz * n) / rateHz));
}

describe('the speech synthesizer', () => {
  it.each(SPEECH_VOICES)('speaks with the voice %s at a comfortable level', async (voice) => {
    const pcm = await synthesizer.speak(voice, 'Thank you for calling. How can I help you today?');
    const seconds = pcm.length / SPEECH_RATE_HZ;
    expect(seconds).toBeGreaterThan(2);
    expect(seconds).toBeLessThan(5);
    const samples = fromPcm16(pcm);
    expect(activeLevelDb(samples, SPEECH_RATE_HZ)).toBeGreaterThan(-24);
    expect(activeLevelDb(samples, SPEECH_RATE_HZ)).toBeLessThan(-19);
    expect(samples.reduce((most, sample) => Math.max(most, Math.abs(sample)), 0)).toBeLessThan(
      10 ** (-3 / 20),
    );
  });

  it('gives the same sound for the same text, and speaks it once', async () => {
    const [first, second] = await Promise.all([
      synthesizer.speak('slt', 'The same words.'),
      synthesizer.speak('slt', 'The same words.'),
    ]);
    expect(second).toBe(first);
    const other = new FliteSynthesizer({ clock: systemClock, log: silentLog });
    expect(await other.speak('slt', 'The same words.')).toEqual(first);
    await other.close();
  });

  it.each(['', '   \n', '!?', '\u{1f600}'])('has nothing to say for %j', async (text) => {
    expect(await synthesizer.speak('slt', text)).toHaveLength(0);
  });

  it.each(['-voice none', 'Zoë’s café — “déjà vu”', '<speak>&amp;</speak>', '0', 'a\u0000b'])(
    'speaks %j without falling over',
    async (text) => {
      expect((await synthesizer.speak('rms', text)).length).toBeGreaterThan(0);
    },
  );

  it('refuses text beyond its bound', async () => {
    await expect(synthesizer.speak('slt', 'a '.repeat(SPEECH_TEXT_MAX_CHARS))).rejects.toBeInstanceOf(
      AudioError,
    );
  });

  it('fails only the utterance that killed the worker, and goes on with a new one', async () => {
    const dying = workerThat(`
      import { parentPort } from 'node:worker_threads';
      parentPort.on('message', ({ id, text }) => {
        if (text === 'die') throw new Error('out of words');
        if (text === 'leave') process.exit(3);
        if (text === 'refuse') parentPort.postMessage({ id, error: 'no' });
        else parentPort.postMessage({ id, pcm: new Int16Array(7) });
      });`);
    const spoken = ['one', 'die', 'two', 'leave', 'refuse', 'three'].map((text) => dying.speak('slt', text));
    const outcomes = await Promise.allSettled(spoken);
    expect(outcomes.map(({ status }) => status)).toEqual([
      'fulfilled',
      'rejected',
      'fulfilled',
      'rejected',
      'rejected',
      'fulfilled',
    ]);
    for (const outcome of outcomes) {
      if (outcome.status === 'rejected') expect(outcome.reason).toMatchObject({ code: 'speech_failed' });
    }
    await dying.close();
  });

  it('rejects what waits beyond the queue, and everything that waits when it closes', async () => {
    const stuck = workerThat(`
      import { parentPort } from 'node:worker_threads';
      parentPort.on('message', () => {});`);
    const waiting = Array.from({ length: SPEECH_QUEUE_MAX + 1 }, (_, n) =>
      stuck.speak('slt', `utterance ${n}`),
    );
    const settled = Promise.allSettled(waiting);
    await expect(stuck.speak('slt', 'one too many')).rejects.toMatchObject({ code: 'speech_failed' });
    await stuck.close();
    expect((await settled).every(({ status }) => status === 'rejected')).toBe(true);
    await expect(stuck.speak('slt', 'after the end')).rejects.toMatchObject({ code: 'speech_failed' });
  });

  it('replaces a worker that hangs', async () => {
    const fired: (() => void)[] = [];
    const clock = {
      ...systemClock,
      setTimer: (_: number, fire: () => void) => (fired.push(fire), { cancel() {} }),
    };
    const workerUrl = new URL(
      `data:text/javascript,${encodeURIComponent("import { parentPort } from 'node:worker_threads'; parentPort.on('message', () => {});")}`,
    );
    const hanging = new FliteSynthesizer({ clock, log: silentLog, workerUrl });
    const spoken = hanging.speak('slt', 'for ever');
    fired[0]!();
    await expect(spoken).rejects.toMatchObject({ code: 'speech_failed' });
    await hanging.close();
  });

  // With node:wasi the whole process died of a segmentation fault after some twenty.
  it('speaks many utterances one after another and lives', async () => {
    for (let n = 0; n < 60; n += 1) {
      expect((await synthesizer.speak('kal16', `Number ${n}.`)).length).toBeGreaterThan(SPEECH_RATE_HZ / 4);
    }
  }, 60_000);

  it('forgets the longest unused utterance beyond its bound', async () => {
    const wordy = workerThat(`
      import { parentPort } from 'node:worker_threads';
      parentPort.on('message', ({ id }) => {
        parentPort.postMessage({ id, pcm: new Int16Array(${Math.floor(SPEECH_CACHE_MAX_BYTES / 6)}) });
      });`);
    const [first, second] = [await wordy.speak('slt', 'first'), await wordy.speak('slt', 'second')];
    await wordy.speak('slt', 'third');
    // Compared by identity alone: a matcher would walk through megabytes.
    expect((await wordy.speak('slt', 'first')) === first).toBe(true);
    await wordy.speak('slt', 'fourth');
    expect((await wordy.speak('slt', 'first')) === first).toBe(true);
    expect((await wordy.speak('slt', 'second')) === second).toBe(false);
    await wordy.close();
  });

  it('prints nothing, not even a warning of an experimental feature', () => {
    const worker = new URL('../../../src/model/rehearsal/speech-worker.mjs', import.meta.url);
    const script = `
      import { Worker } from 'node:worker_threads';
      const worker = new Worker(new URL('${worker.href}'), { execArgv: [] });
      worker.postMessage({ id: 1, voice: 'slt', text: 'Hello.' });
      worker.once('message', ({ pcm }) => { console.log(pcm.length > 0); worker.terminate(); });`;
    const ran = spawnSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' });
    expect(ran.stdout).toBe('true\n');
    expect(ran.stderr).toBe('');
  });
});

describe('the resampler', () => {
  it('keeps speech within 0.1 dB and adds no image from 16 to 24 kHz', () => {
    for (const toneHz of [200, 1000, 3400, 6500]) {
      const resampled = resample(tone(16_000, toneHz), 3, 2);
      expect(Math.abs(levelOfToneDb(resampled, 24_000, toneHz))).toBeLessThan(0.1);
      const imageHz = 16_000 - toneHz;
      if (imageHz < 12_000) expect(levelOfToneDb(resampled, 24_000, imageHz)).toBeLessThan(-75);
    }
  });

  it('folds nothing back from 24 to 8 kHz', () => {
    expect(Math.abs(levelOfToneDb(resample(tone(24_000, 3400), 1, 3), 8_000, 3400))).toBeLessThan(0.1);
    for (const toneHz of [4200, 5000, 7000, 9000, 11_000]) {
      const foldedHz = Math.abs(toneHz - 8_000 * Math.round(toneHz / 8_000));
      expect(levelOfToneDb(resample(tone(24_000, toneHz), 1, 3), 8_000, foldedHz)).toBeLessThan(-75);
    }
  });
});
