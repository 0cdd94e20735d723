import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { AgentDecimator } from '../../src/audio/agent-decimator.js';
import { CallerUpsampler } from '../../src/audio/caller-upsampler.js';
import { kernel } from '../../src/audio/kernel.js';

/** The compiler takes a second, and many times that on a machine that is busy with something else. */
const SLOW_MACHINE_MS = 180_000;

describe('the kernel', () => {
  it(
    'is committed as its source compiles',
    () => {
      const script = fileURLToPath(new URL('../../scripts/build-kernel.mjs', import.meta.url));
      const check = spawnSync(process.execPath, [script, '--check'], { encoding: 'utf8' });
      expect(check.stderr).toBe('');
      expect(check.status).toBe(0);
    },
    SLOW_MACHINE_MS,
  );

  it('holds the state of 300 calls in less than 128 kB and uses it again for the next 300', () => {
    const before = kernel.memoryBytes;
    const takeMany = () =>
      Array.from({ length: 300 }, () => ({ up: new CallerUpsampler(), down: new AgentDecimator() }));
    const first = takeMany();
    const withCalls = kernel.memoryBytes;
    expect(withCalls - before).toBeLessThanOrEqual(128 * 1024);
    for (const { up, down } of first) {
      up.release();
      down.release();
    }
    const second = takeMany();
    expect(kernel.memoryBytes).toBe(withCalls);
    for (const { up, down } of second) {
      up.release();
      down.release();
    }
  });

  it('keeps the state of a call when its memory grows', () => {
    const half = Buffer.alloc(333, 0x23);
    const steady = new CallerUpsampler();
    const expected = Buffer.concat([Buffer.from(steady.push(half)), Buffer.from(steady.push(half))]);
    const grown = new CallerUpsampler();
    const first = Buffer.from(grown.push(half));
    const before = kernel.memoryBytes;
    const others = Array.from({ length: 1000 }, () => new AgentDecimator());
    expect(kernel.memoryBytes).toBeGreaterThan(before);
    expect(Buffer.concat([first, grown.push(half)]).equals(expected)).toBe(true);
    for (const filter of [steady, grown, ...others]) filter.release();
  });

  it('never gives one slot to two filters, however often it is released', () => {
    const twice = new AgentDecimator();
    twice.release();
    twice.release();
    const one = new AgentDecimator();
    const other = new AgentDecimator();
    one.pushToPcm16(Buffer.alloc(960, 0x55));
    expect(other.pushToPcm16(Buffer.alloc(960)).every((byte) => byte === 0)).toBe(true);
    one.release();
    other.release();
  });

  it('refuses a push to a released filter', () => {
    const up = new CallerUpsampler();
    up.release();
    up.reset();
    expect(() => up.push(Buffer.alloc(160))).toThrow('after its release');
    const down = new AgentDecimator();
    down.release();
    down.reset();
    expect(() => down.push(Buffer.alloc(960))).toThrow('after its release');
    expect(() => down.flush()).toThrow('after its release');
  });

  it('gives a used slot away as new', () => {
    const noise = Buffer.from(Array.from({ length: 500 }, (_, i) => (i * 7) & 0xff));
    const fresh = new CallerUpsampler();
    const expected = Buffer.from(fresh.push(noise));
    fresh.release();
    const reused = new CallerUpsampler();
    expect(reused.push(noise).equals(expected)).toBe(true);
    reused.reset();
    expect(reused.push(noise).equals(expected)).toBe(true);
    reused.release();
  });
});
