import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, it, vi } from 'vitest';
import concierge from '../../agents/concierge.js';
import { evaluate } from '../../agents/tools/arithmetic.js';
import type { Event } from '../../src/index.js';
import { systemClock } from '../../src/clock.js';
import { NO_ACTIONS } from '../../src/event/event.js';
import { silentLog } from '../../src/observe/log.js';
import { PACKAGE_ROOT } from '../../src/package-root.js';
import { WorkerTools } from '../../src/tool/worker-tools.js';
import { call, context, toolOf } from './tool-rig.js';

afterEach(() => {
  vi.useRealTimers();
});

describe('get_weather and get_time', () => {
  it('know the cities of the table, however they are written', async () => {
    expect(await call(concierge, 'get_weather', { city: ' london ' })).toMatchObject({
      city: 'London',
      celsius: 12,
      message: expect.stringContaining('demonstration'),
    });
    vi.useFakeTimers({ now: Date.UTC(2030, 0, 15, 12, 5), toFake: ['Date'] });
    expect(await call(concierge, 'get_time', { city: 'Tokyo' })).toMatchObject({
      time: expect.stringMatching(/^Tuesday.* 9:05\sPM$/),
      time_zone: 'Asia/Tokyo',
    });
    expect(await call(concierge, 'get_time', { city: 'New York' })).toMatchObject({
      time: expect.stringMatching(/ 7:05\sAM$/),
    });
  });

  it.each(['get_weather', 'get_time'])('%s answers an error for another city', async (name) => {
    expect(await call(concierge, name, { city: 'Atlantis' })).toEqual({
      error: expect.stringContaining('Atlantis is not in the list: London'),
    });
  });
});

describe('calculate', () => {
  it('works out 15 + 25', async () => {
    expect(await call(concierge, 'calculate', { expression: '15 + 25' })).toEqual({
      expression: '15 + 25',
      result: 40,
      message: '15 + 25 is 40.',
    });
  });

  it.each([
    ['2 * (3 + 4)^2', 98],
    ['0.1 + 0.2', 0.3],
    ['10 % 3', 1],
    ['-3 + +5', 2],
    ['sqrt(16) + max(1, 2, 3)', 7],
    ['round(2.567, 2)', 2.57],
    ['2 pi', 6.2831853071796],
  ])('%s is %d', async (expression, result) => {
    expect(await evaluate(expression)).toBe(result);
  });

  it.each([
    '',
    '   ',
    'forty',
    '(1 + 2',
    '1 / 0',
    '1e400',
    'a = 1',
    'f(x) = x',
    '1; 2',
    '"text"',
    '[1, 2]',
    '1:1000000000',
    '{a: 1}',
    '5 == 5',
    '9999999!',
    'import("fs")',
    'evaluate("1")',
    'parse("1")',
    'constructor',
    'sqrt.constructor("return process")()',
    'max.constructor',
    'sqrt(-1)',
    '1+'.repeat(200) + '1',
  ])('answers an error for %j', async (expression) => {
    expect(await call(concierge, 'calculate', { expression })).toEqual({
      error: expect.stringMatching(/^That cannot be calculated: .+/),
    });
  });
});

describe('calculate in a worker thread', () => {
  const workers = new WorkerTools({ clock: systemClock, log: silentLog });
  afterAll(() => workers.close());

  it('answers the same', async () => {
    expect(toolOf(concierge, 'calculate').worker).toBe(true);
    const { invocationId, callSid, appName, userId, sessionId, callerVerified } = context();
    const identity = { invocationId, callSid, appName, userId, sessionId, callerVerified };
    const { result } = await workers.run({
      module: join(PACKAGE_ROOT, 'agents/concierge.ts'),
      tool: 'calculate',
      args: { expression: '15 + 25' },
      snapshot: {
        ...identity,
        state: {},
        events: [],
        runConfig: { responseModalities: ['AUDIO'] },
        scopes: [],
      },
      getSecret: () => Promise.resolve(null),
      signal: new AbortController().signal,
    });
    expect(result).toMatchObject({ result: 40 });
    // Each thread compiles its modules anew.
  }, 120_000);
});

describe('search', () => {
  it('finds the pages of the house', async () => {
    const found = await call(concierge, 'search', { query: 'When is breakfast?' });
    expect(found['results']).toEqual([{ title: 'Breakfast', text: expect.stringContaining('seven to ten') }]);
    expect(await call(concierge, 'search', { query: 'quantum physics' })).toMatchObject({ results: [] });
  });
});

describe('review_conversation', () => {
  const event = (invocationId: string, text: string): Event => ({
    id: text,
    invocationId,
    author: 'user',
    timestamp: 1,
    content: { parts: [{ text }] },
    actions: NO_ACTIONS,
  });

  it('welcomes a guest whose history is empty, keeps notes and the time', async () => {
    const saved: unknown[] = [];
    const ctx = context({
      saveArtifact: async (...artifact) => saved.push(...artifact) - 3,
    });
    const first = await call(concierge, 'review_conversation', { query: 'Do you know me?' }, ctx);
    expect(first).toMatchObject({ first_contact: true, recent: [], preferences: {}, notes_version: 0 });
    expect(first['message']).toMatch(/^Welcome!/);
    expect(ctx.state['last_query_time']).toMatch(/^\d{4}-\d\d-\d\dT/);
    expect([saved[0], saved[2]]).toEqual(['conversation-notes.txt', 'text/plain']);
    expect(new TextDecoder().decode(saved[1] as Uint8Array)).toBe('Asked: Do you know me?');
  });

  it('knows the last five events and the preferences of one who comes back', async () => {
    const events = ['a', 'b', 'c', 'd', 'e', 'f'].map((text) => event('run-1', text));
    const ctx = context({ events: [...events, event('run-2', 'g')] });
    await call(concierge, 'set_preference', { name: 'room', value: 'quiet' }, ctx);
    await call(concierge, 'set_preference', { name: 'pillow', value: 'hard' }, ctx);
    expect(await call(concierge, 'review_conversation', {}, ctx)).toMatchObject({
      first_contact: false,
      recent: ['c', 'd', 'e', 'f', 'g'].map((text) => `user: ${text}`),
      preferences: { room: 'quiet', pillow: 'hard' },
      message: 'Welcome back. Your preferences are room: quiet, pillow: hard.',
    });
  });

  it.each([
    ['what is kept cannot be read', { state: { user_preferences: 'quiet' } }],
    ['the notes cannot be kept', { saveArtifact: () => Promise.reject(new Error('the disk is full')) }],
  ])('ends the conversation where %s', async (_, changes) => {
    const ctx = context(changes);
    expect(await call(concierge, 'review_conversation', {}, ctx)).toEqual({
      error: expect.stringContaining('has to end'),
    });
    expect(ctx.endInvocation).toBe(true);
  });
});
