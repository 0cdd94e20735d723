import { readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { afterEach, describe, expect, it, vi } from 'vitest';
import monitor from '../../agents/monitor.js';
import { callerSound } from '../../agents/tools/caller-sound.js';
import { PACKAGE_ROOT } from '../../src/package-root.js';
import { readCallerSound } from '../../src/replay/sound-file.js';
import { context, FrameSource, stream, toolOf } from './tool-rig.js';

vi.mock('node:timers/promises', () => ({ setTimeout: vi.fn<typeof wait>() }));
const { mulaw } = createRequire(import.meta.url)('alawmulaw') as typeof import('alawmulaw');
const waits = vi.mocked(wait);

afterEach(() => {
  waits.mockReset();
});

/** 20 ms of a square wave of that height. */
function frame(height: number): Uint8Array {
  return new Uint8Array(
    Int16Array.from({ length: 320 }, (_, at) => (at % 2 === 0 ? height : -height)).buffer,
  );
}

/** Fifty frames are a second: syllables are loud and quiet, a noise is as loud all the time. */
const SECOND = {
  silent: Array.from({ length: 50 }, () => frame(3)),
  speaking: Array.from({ length: 50 }, (_, at) => frame(at % 10 < 5 ? 6_000 : 60)),
  noisy: Array.from({ length: 50 }, (_, at) => frame(900 + 20 * (at % 7))),
};

describe('monitor_stock_price', () => {
  it('tells 300, 400, 900 and 500 after 4, 4, 20 and 20 seconds, and ends', async () => {
    const told: unknown[] = [];
    const { signal } = new AbortController();
    const prices = stream(monitor, 'monitor_stock_price', { stock_symbol: '$xyz' }, context({ signal }));
    for await (const price of prices) told.push(price);
    expect(told).toEqual([300, 400, 900, 500].map((price) => `The price for XYZ is ${price}`));
    expect(waits.mock.calls).toEqual(
      [4_000, 4_000, 20_000, 20_000].map((delayMs) => [delayMs, undefined, { signal }]),
    );
  });

  it('ends its wait at once when it is stopped', async () => {
    const { setTimeout: real } =
      await vi.importActual<typeof import('node:timers/promises')>('node:timers/promises');
    waits.mockImplementation(real);
    const controller = new AbortController();
    const ctx = context({ signal: controller.signal });
    const next = stream(monitor, 'monitor_stock_price', { stock_symbol: 'XYZ' }, ctx).next();
    controller.abort();
    await expect(next).rejects.toThrow(expect.objectContaining({ name: 'AbortError' }));
  });

  it('needs no input', () => {
    expect(toolOf(monitor, 'monitor_stock_price')).toMatchObject({ kind: 'streaming', input: undefined });
  });
});

describe('monitor_caller_audio', () => {
  /** One reading each half second; what is reported of them. */
  async function reportsOf(readings: readonly (readonly Uint8Array[])[]): Promise<unknown[]> {
    const inputStream = new FrameSource();
    const left = [...readings];
    waits.mockImplementation(async () => {
      const reading = left.shift();
      if (reading === undefined) throw new Error('over');
      for (const one of reading) inputStream.push(one);
      for (let turn = 0; turn < 200; turn += 1) await Promise.resolve();
      return undefined;
    });
    const told: unknown[] = [];
    const sounds = stream(monitor, 'monitor_caller_audio', {}, context({ inputStream }));
    await expect(
      (async () => {
        for await (const report of sounds) told.push((report as { sound: string }).sound);
      })(),
    ).rejects.toThrow('over');
    return told;
  }

  it('begins with silence and reports changes only', async () => {
    const { silent, speaking, noisy } = SECOND;
    expect(await reportsOf([silent, silent, speaking, speaking, silent])).toEqual(['speaking', 'silent']);
    expect(await reportsOf([speaking, noisy, noisy, speaking])).toEqual(['speaking', 'noisy', 'speaking']);
    expect(await reportsOf([silent, silent])).toEqual([]);
  });

  it('hears the newest second, and what it heard last where nothing comes', async () => {
    const { silent, speaking } = SECOND;
    expect(await reportsOf([[...speaking, ...silent], [], [], speaking, [], []])).toEqual(['speaking']);
  });

  it('gets a copy of the sound', () => {
    expect(toolOf(monitor, 'monitor_caller_audio').input).toBe('sound');
  });
});

describe('the sound of a caller', () => {
  it.each(Object.entries(SECOND))('is %s', (sound, frames) => {
    expect(callerSound(frames)).toBe(sound);
  });

  it('is unknown where nothing was heard', () => {
    expect(callerSound([])).toBeUndefined();
  });

  const folder = join(PACKAGE_ROOT, 'fixtures/callers/voices');
  const voices = readdirSync(folder).map((file) => [file, /clean/.test(file) ? 'silent' : 'noisy'] as const);
  it.each(voices)('is told in all five voices on a telephone line: %s', async (file, pause) => {
    const pcm = mulaw.decode(await readCallerSound(join(folder, file)));
    const frames = Array.from(
      { length: Math.floor(pcm.length / 160) },
      (_, at) => new Uint8Array(pcm.slice(160 * at, 160 * at + 160).buffer),
    );
    const heard = frames.flatMap((_, at) =>
      at % 25 === 24 ? (callerSound(frames.slice(Math.max(0, at - 49), at + 1)) ?? []) : [],
    );
    // A pause of 1.2 s, a sentence, a pause, a sentence, a pause, two words, a pause.
    const changes = heard.filter((sound, at) => sound !== heard[at - 1]);
    expect(changes.slice(0, 3)).toEqual([pause, 'speaking', pause]);
    expect(new Set(changes)).toEqual(new Set([pause, 'speaking']));
  });
});

describe('monitor_video_stream', () => {
  it('tells when the number changes: the same picture always has as many', async () => {
    const inputStream = new FrameSource();
    const pictures = ['a', 'a', 'c', 'c', 'a'].map((text) => new TextEncoder().encode(text));
    waits.mockImplementation(async () => {
      const picture = pictures.shift();
      if (picture === undefined) throw new Error('over');
      inputStream.push(new Uint8Array([0]), 'image/jpeg');
      inputStream.push(picture, 'image/jpeg');
      return undefined;
    });
    const told: number[] = [];
    const people = stream(monitor, 'monitor_video_stream', {}, context({ inputStream }));
    await expect(
      (async () => {
        for await (const report of people) told.push((report as { people: number }).people);
      })(),
    ).rejects.toThrow('over');
    expect(told).toHaveLength(3);
    expect(told[0]).toBe(told[2]);
    expect(told[1]).not.toBe(told[0]);
  });

  it('gets pictures, and says that it is a demonstration', () => {
    const tool = toolOf(monitor, 'monitor_video_stream');
    expect(tool.input).toBe('image');
    expect(tool.description).toContain('demonstration');
  });
});
