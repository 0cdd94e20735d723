import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { TestModule } from 'vitest/node';
import { UnfinishedFiles } from '../support/unfinished-files.js';

const file = (relativeModuleId: string): TestModule => ({ relativeModuleId }) as TestModule;

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test('a test file that does not end is named, again and again, and no other', () => {
  const lines: string[] = [];
  const unfinished = new UnfinishedFiles((line) => lines.push(line));
  unfinished.onTestModuleQueued(file('test/quick.test.ts'));
  unfinished.onTestModuleQueued(file('test/stuck.test.ts'));
  vi.advanceTimersByTime(1_000);
  unfinished.onTestModuleEnd(file('test/quick.test.ts'));
  vi.advanceTimersByTime(360_000);
  expect(lines).toEqual([
    'test/stuck.test.ts has been running for 180 s',
    'test/stuck.test.ts has been running for 360 s',
  ]);
  unfinished.onTestRunEnd();
  vi.advanceTimersByTime(360_000);
  expect(lines).toHaveLength(2);
});
