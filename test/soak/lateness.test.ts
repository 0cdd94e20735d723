import { expect, test } from 'vitest';
import type { Clock } from '../../src/clock.js';
import { Lateness } from './lateness.js';

test('a loop’s lateness is known by when it was', () => {
  let nowMs = 0;
  let fire = (): void => {};
  const clock: Clock = {
    nowMs: () => nowMs,
    wallMs: () => nowMs,
    setTimer(_delayMs, act) {
      fire = act;
      return { cancel: () => {} };
    },
  };
  const lateness = new Lateness(clock);
  lateness.start();
  for (const atMs of [20, 45, 365, 386, 506]) {
    nowMs = atMs;
    fire();
  }
  // Late from 65 to 365 and from 406 to 506.
  expect(lateness.most).toBe(300);
  expect(lateness.within(0, 1_000)).toBe(400);
  expect(lateness.within(165, 456)).toBe(250);
  expect(lateness.within(370, 400)).toBe(0);
});
