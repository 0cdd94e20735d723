import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { readFrame } from '../../src/client/index.js';
import { VirtualClock } from '../../src/replay/virtual-clock.js';
import { Broadcast } from '../../src/wire/broadcast.js';
import { frameOf, type Happening } from '../../src/wire/happening.js';
import { fuzzed } from '../fuzz/seed.js';
import { MemorySink } from './memory-sink.js';

const KEYS: Readonly<Record<string, readonly string[]>> = {
  delta: ['msg', 'role', 'seq', 'text', 'type'],
  done: ['msg', 'role', 'seq', 'text', 'type'],
  tool: ['callId', 'msg', 'name', 'seq', 'state', 'type'],
  flush: ['msg', 'seq', 'text', 'type'],
  error: ['code', 'fatal', 'message', 'msg', 'seq', 'type'],
  heartbeat: ['seq', 'type'],
  ready: ['seq', 'type'],
  history: ['messages', 'seq', 'type'],
};

const HAPPENINGS: readonly Happening[] = [
  { kind: 'ready' },
  { kind: 'delta', msg: 'a', role: 'model', text: 'One ' },
  { kind: 'tool', msg: 'a', callId: 'c', name: 'look_up', state: 'running' },
  { kind: 'tool', msg: 'a', callId: 'c', name: 'look_up', state: 'pending' },
  { kind: 'done', msg: 'a', role: 'model', text: 'One two' },
  { kind: 'delta', msg: 'b', role: 'model', text: 'Three' },
  { kind: 'flush', msg: 'b', text: 'Th' },
  { kind: 'error', msg: 'c', code: 'busy', message: 'try later', fatal: false },
];

const SECRET = 'never to leave';

/** What an event of a run holds beside that, by chance and by its names. */
const surplus = fc.dictionary(
  fc.oneof(
    fc.constantFrom(
      'args',
      'result',
      'response',
      'state',
      'stateDelta',
      'author',
      'agent',
      'seq',
      'type',
      'toJSON',
    ),
    fc.string(),
  ),
  fc.constant(SECRET),
);

describe('what leaves the server', () => {
  test('holds the keys of its frame and no other, whatever is passed in', () => {
    fc.assert(
      fc.property(
        fc.array(surplus, { minLength: HAPPENINGS.length, maxLength: HAPPENINGS.length }),
        (extras) => {
          const broadcast = new Broadcast({ clock: new VirtualClock() });
          const sinks = [new MemorySink(), new MemorySink()];
          broadcast.watch(sinks[0]!, { fromStart: true });
          for (const [index, happening] of HAPPENINGS.entries()) {
            expect(broadcast.publish({ ...extras[index], ...happening })).toBe(true);
          }
          broadcast.watch(sinks[1]!);
          broadcast.watch(sinks[1]!, { lastSeq: 2 });
          for (const { json } of sinks.flatMap(({ frames }) => frames)) {
            const frame = JSON.parse(json) as Record<string, unknown>;
            expect(Object.keys(frame).sort()).toEqual(KEYS[frame['type'] as string]);
            expect(json).not.toContain(SECRET);
            expect(readFrame(frame)).toEqual({ kind: 'frame', frame });
          }
          broadcast.end();
        },
      ),
      fuzzed(200),
    );
  });

  test('holds stored messages without what else is stored with them', () => {
    const stored = [
      { msg: 'h', role: 'user', text: 'Hello', author: SECRET, actions: { stateDelta: SECRET } },
    ] as const;
    const broadcast = new Broadcast({ clock: new VirtualClock(), stored });
    const sink = new MemorySink();
    broadcast.watch(sink);
    expect(sink.frames[0]?.frame).toEqual({
      type: 'history',
      seq: 0,
      messages: [{ msg: 'h', role: 'user', text: 'Hello' }],
    });
  });

  test.each([
    ['text', { kind: 'delta', msg: 'a', role: 'model', text: [SECRET] }],
    ['msg', { kind: 'flush', msg: '', text: '' }],
    ['role', { kind: 'done', msg: 'a', role: 'support', text: '' }],
    ['state', { kind: 'tool', msg: 'a', callId: 'c', name: 'n', state: { balance: SECRET } }],
    ['fatal', { kind: 'error', msg: 'a', code: 'busy', message: '', fatal: SECRET }],
  ])(
    'is refused with an error that names %s, and not its value, where a client could not read it',
    (key, happening) => {
      const act = () => frameOf(happening as unknown as Happening);
      expect(act).toThrow(TypeError);
      expect(act).toThrow(key);
      expect(act).not.toThrow(SECRET);
    },
  );

  test.each<[string, Happening[], boolean]>([
    ['a delta of what is done', [HAPPENINGS[4]!, HAPPENINGS[1]!], false],
    ['a second end', [HAPPENINGS[4]!, { kind: 'flush', msg: 'a', text: '' }], false],
    [
      'a tool that has settled',
      [
        { kind: 'tool', msg: 'a', callId: 'c', name: 'n', state: 'done' },
        { kind: 'tool', msg: 'a', callId: 'c', name: 'n', state: 'running' },
      ],
      false,
    ],
    ['a tool of what is done', [HAPPENINGS[4]!, HAPPENINGS[2]!], true],
    ['an error of what is done', [HAPPENINGS[4]!, { ...HAPPENINGS[7]!, msg: 'a' } as Happening], true],
  ])('%s', (_, [first, second], leaves) => {
    const broadcast = new Broadcast({ clock: new VirtualClock() });
    broadcast.publish(first!);
    expect(broadcast.publish(second!)).toBe(leaves);
    expect(broadcast.seq).toBe(leaves ? 2 : 1);
  });
});
