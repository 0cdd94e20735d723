import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { SoundQueue } from '../../src/audio/sound-queue.js';

function readAll(queue: SoundQueue): number[] {
  const target = new Uint8Array(queue.length);
  expect(queue.read(target, target.length)).toBe(target.length);
  return [...target];
}

describe('SoundQueue', () => {
  it('gives back what it was given, in order, across chunks', () => {
    const queue = new SoundQueue();
    const sound = Uint8Array.from({ length: 20_000 }, (_, index) => index % 251);
    queue.write(sound);
    expect(queue.length).toBe(20_000);
    expect(readAll(queue)).toEqual([...sound]);
    expect(queue.length).toBe(0);
  });

  it('keeps copies, not the buffers it was given', () => {
    const queue = new SoundQueue();
    const sound = Uint8Array.of(1, 2, 3);
    queue.write(sound);
    sound.fill(9);
    expect(readAll(queue)).toEqual([1, 2, 3]);
  });

  it('behaves like an array of bytes under any sequence of calls', () => {
    const size = fc.oneof(fc.nat(20), fc.nat(10_000), fc.constantFrom(4_095, 4_096, 4_097, 8_192));
    const call = fc.record({ kind: fc.constantFrom('write', 'read', 'skip', 'keepFirst', 'clear'), size });
    fc.assert(
      fc.property(fc.array(call, { maxLength: 30 }), (calls) => {
        const queue = new SoundQueue();
        let model: number[] = [];
        let next = 0;
        for (const { kind, size: bytes } of calls) {
          if (kind === 'write') {
            const sound = Uint8Array.from({ length: bytes }, () => (next = (next + 1) % 256));
            queue.write(sound);
            model.push(...sound);
          } else if (kind === 'read') {
            const target = new Uint8Array(bytes);
            const read = queue.read(target, bytes);
            expect([...target.subarray(0, read)]).toEqual(model.slice(0, bytes));
            model = model.slice(read);
          } else if (kind === 'skip') {
            queue.skip(bytes);
            model = model.slice(bytes);
          } else if (kind === 'keepFirst') {
            queue.keepFirst(bytes);
            model = model.slice(0, bytes);
          } else {
            queue.clear();
            model = [];
          }
          expect(queue.length).toBe(model.length);
        }
        expect(readAll(queue)).toEqual(model);
      }),
      { numRuns: 100 },
    );
  });
});
