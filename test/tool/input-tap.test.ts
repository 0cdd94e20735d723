import { describe, expect, it } from 'vitest';
import { InputTap } from '../../src/tool/input-tap.js';
import { INPUT_STREAM_MAX_FRAMES } from '../../src/tool-limits.js';

const frame = (index: number) => ({ mimeType: 'audio/pcm;rate=16000', data: Uint8Array.of(index) });
const numberOf = (value: { readonly data: Uint8Array } | undefined): number | undefined => value?.data[0];

describe('a tool’s copy of the caller’s input', () => {
  it('gives the newest and forgets the rest', () => {
    const tap = new InputTap(INPUT_STREAM_MAX_FRAMES);
    expect(tap.drainLatest()).toBeUndefined();
    for (const index of [1, 2, 3]) tap.push(frame(index));
    expect(numberOf(tap.drainLatest())).toBe(3);
    expect([tap.size, tap.drainLatest()]).toEqual([0, undefined]);
  });

  it('lets the oldest go when nobody takes any', () => {
    const tap = new InputTap(INPUT_STREAM_MAX_FRAMES);
    for (let index = 0; index < INPUT_STREAM_MAX_FRAMES + 3; index += 1) tap.push(frame(index));
    expect([tap.size, tap.dropped]).toEqual([INPUT_STREAM_MAX_FRAMES, 3]);
  });

  it('gives frame by frame, those that are there and those that come, until it is closed', async () => {
    const tap = new InputTap(INPUT_STREAM_MAX_FRAMES);
    tap.push(frame(1));
    const seen: unknown[] = [];
    const reading = (async () => {
      for await (const each of tap) seen.push(numberOf(each));
    })();
    await Promise.resolve();
    tap.push(frame(2));
    await new Promise(setImmediate);
    tap.push(frame(3));
    await new Promise(setImmediate);
    tap.close();
    tap.push(frame(4));
    await reading;
    expect(seen).toEqual([1, 2, 3]);
    expect(tap.size).toBe(0);
  });

  it('wakes everybody who waits: each frame goes to one of them, and the end to all', async () => {
    const tap = new InputTap(INPUT_STREAM_MAX_FRAMES);
    const iterator = tap[Symbol.asyncIterator]();
    const waiting = [iterator.next(), iterator.next(), tap[Symbol.asyncIterator]().next()];
    tap.push(frame(1));
    tap.push(frame(2));
    await new Promise(setImmediate);
    tap.close();
    const results = await Promise.all(waiting);
    expect(results.map(({ done, value }) => (done === true ? 'end' : numberOf(value)))).toEqual([
      1,
      2,
      'end',
    ]);
  });
});
