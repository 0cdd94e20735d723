import { describe, expect, it } from 'vitest';
import { HeardHistory } from '../../src/call/heard-history.js';
import { saidBefore } from '../../src/call/said-before.js';
import { RunEvents } from '../../src/event/run-events.js';
import { HEARD_EVENTS_MAX } from '../../src/link-limits.js';

const TURN = { kind: 'reply', startedAtMs: undefined } as const;

function told() {
  const clock = { nowMs: () => 0, wallMs: () => 0 };
  const run = new RunEvents({ invocationId: 'i1', agentName: 'support', clock, onFault: () => {} });
  const heard = new HeardHistory();
  run.stream.listen(heard.hear);
  const lines = (since?: number): string[] =>
    saidBefore(heard.events(since), { invocationId: 'i1' })?.split('\n').slice(1) ?? [];
  return { run, heard, lines };
}

describe('what was heard in a call', () => {
  it('holds what the caller is saying, in front of the answer that it caused, and of the agent what is sealed', () => {
    const { run, lines } = told();
    run.opened('m1', 'model', undefined, TURN);
    run.delta('m1', 'model', 'Hello, never heard.');
    expect(lines()).toEqual([]);
    run.opened('m2', 'user', 'm1');
    run.delta('m2', 'user', 'Where ');
    run.delta('m2', 'user', 'is it?');
    run.sealed('m1', 'model', 'Hello', true, 'interrupted');
    expect(lines()).toEqual(['User: "Where is it?"', 'You: "Hello"']);
    run.sealed('m2', 'user', 'Where is it?', false);
    expect(lines()).toEqual(['User: "Where is it?"', 'You: "Hello"']);
  });

  it('holds neither what nobody heard, nor our clips, nor errors', () => {
    const { run, heard, lines } = told();
    run.opened('m1', 'model', undefined, TURN);
    run.sealed('m1', 'model', '', true, 'interrupted');
    run.opened('m2', 'model');
    run.delta('m2', 'model', 'One moment, please.');
    run.sealed('m2', 'model', 'One moment, please.', false);
    run.failed('model_lost', 'Lost.');
    expect(lines()).toEqual([]);
    expect(heard.position).toBe(1);
  });

  it('holds functions and what they came to, also behind the place from which a session is resumed', () => {
    const { run, heard, lines } = told();
    run.called([{ id: 'c1', name: 'look', args: { order: 7 } }]);
    const { position } = heard;
    run.called([{ id: 'c2', name: 'look', args: { order: 8 } }]);
    run.responded([{ id: 'c2', name: 'look', response: { status: 'found' } }]);
    expect(lines(position)).toEqual(['You called look({"order":8}), and the result was {"status":"found"}']);
    expect(lines()[0]).toContain('still being carried out');
  });

  it('is bounded: the newest is kept', () => {
    const { run, heard } = told();
    for (let index = 0; index < HEARD_EVENTS_MAX + 10; index += 1)
      run.called([{ id: `c${index}`, name: 'look', args: {} }]);
    expect(heard.events()).toHaveLength(HEARD_EVENTS_MAX);
    expect(heard.position).toBe(HEARD_EVENTS_MAX + 10);
  });
});
