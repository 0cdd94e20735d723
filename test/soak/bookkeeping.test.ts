import { describe, expect, test } from 'vitest';
import { idleGrowth, memoryGrowth } from './growth.js';
import { missingIn, toldByEvents } from './same-text.js';
import { unexpectedLines } from './server-log.js';
import { eventsOf, faultWords, readSoakOptions } from './soak-options.js';

describe('the same text', () => {
  const user = { role: 'user', text: 'Well?' };
  const model = { role: 'model', text: 'Yes.' };

  test('may stand in another order, and has no empty messages', () => {
    expect(missingIn([user, model, { role: 'model', text: ' ' }], [model, user])).toEqual([]);
  });

  test('is missing where it was said twice and is there once, or by another', () => {
    expect(missingIn([user, user], [user])).toEqual(['user: Well?']);
    expect(missingIn([user], [{ role: 'model', text: 'Well?' }])).toEqual(['user: Well?']);
  });

  test('is that of all parts of an event', () => {
    const events = [
      { author: 'user', content: { parts: [{ text: 'Well' }, { text: '?' }] } },
      { author: 'support', content: { parts: [{}] } },
      { author: 'support' },
    ];
    expect(toldByEvents(events)).toEqual([user, { role: 'model', text: '' }, { role: 'model', text: '' }]);
  });
});

describe('growth', () => {
  test('is memory that is far more in the last third than in the first', () => {
    const steady = Array.from({ length: 30 }, (_, at) => 150 + at);
    expect(memoryGrowth(steady)).toBeUndefined();
    expect(memoryGrowth(steady.map((megabytes, at) => megabytes + 5 * at))).toBe(
      'memory grew from 180 MB to 300 MB',
    );
    expect(memoryGrowth([1, 1_000])).toBeUndefined();
  });

  test('is what stays open when nothing goes on', () => {
    expect(idleGrowth({ sockets: 7, timers: 3 }, { sockets: 8, timers: 6 })).toEqual([]);
    expect(idleGrowth({ sockets: 7, timers: 3 }, { sockets: 20, timers: 3 })).toEqual([
      '20 sockets are open when nothing goes on, 7 were before',
    ]);
  });
});

test('of a server’s log only errors that no fault explains are told, once each', () => {
  const line = (fields: object): string => JSON.stringify(fields);
  const output = [
    'Earshot answers at http://127.0.0.1:1/twilio/voice',
    line({ level: 30, msg: 'model connected' }),
    line({ level: 50, msg: 'the model could not be reached' }),
    line({ level: 50, msg: 'a fault inside the call', cause: 'no such state' }),
    line({ level: 50, msg: 'a fault inside the call', cause: 'no such state' }),
    line({ level: 50, msg: 'a stray error', class: 'TypeError', frames: ['at call.js:1:1', 'at x'] }),
    'Uncaught exception',
  ].join('\n');
  expect(unexpectedLines(output)).toEqual([
    'a fault inside the call; no such state (2 times)',
    'a stray error; TypeError; at call.js:1:1',
    'Uncaught exception',
  ]);
});

describe('the options of a soak', () => {
  test('are read from the environment, and have defaults', () => {
    const usual = {
      seed: 20_260_101,
      calls: 200,
      atOnce: 60,
      only: '',
      onlyCall: undefined,
      logs: undefined,
    };
    expect(readSoakOptions({})).toEqual(usual);
    const given = {
      SOAK_SEED: '7',
      SOAK_CALLS: '20',
      SOAK_AT_ONCE: '5',
      SOAK_ONLY: 'mute',
      SOAK_ONLY_CALL: '3',
      SOAK_LOGS: 'x',
    };
    expect(readSoakOptions(given)).toEqual({
      seed: 7,
      calls: 20,
      atOnce: 5,
      only: 'mute',
      onlyCall: 3,
      logs: 'x',
    });
    expect(() => readSoakOptions({ SOAK_SEED: 'seven' })).toThrow('SOAK_SEED is a whole number');
  });

  test('choose what happens to servers and store, and when', () => {
    const names = (only: string): string[] =>
      eventsOf({ ...readSoakOptions({}), only }).map(({ name, afterCalls }) => `${name} ${afterCalls}`);
    expect(names('')).toEqual([
      'store-locked 16',
      'store-full 40',
      'sigterm 80',
      'sigkill 120',
      'store-locked-again 170',
    ]);
    expect(names('mute, sigkill')).toEqual(['sigkill 120']);
    expect(names('mute')).toEqual([]);
    expect(eventsOf({ ...readSoakOptions({}), onlyCall: 3 })).toEqual([]);
  });

  test('leave the words of faults for the calls', () => {
    expect(['', 'mute, sigkill', 'sigkill'].map(faultWords)).toEqual(['', 'mute', 'none']);
  });
});
