/** Tools in a replay: what a file tells comes at its time, and of a recorded call nothing runs again. */
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { NO_ACTIONS } from '../../src/event/event.js';
import { fixtureHeader, type FixtureLine, fixtureLine } from '../../src/fixture/fixture-format.js';
import { ReplayedTools, type ToolLine } from '../../src/replay/replayed-tools.js';
import type { CallOutcome, ToolWork } from '../../src/tool/tool-work.js';

const DONE: CallOutcome = {
  kind: 'done',
  response: { ok: true },
  actions: NO_ACTIONS,
  ran: true,
  endInvocation: false,
};
const AT_ONCE = 'end_call';

function toolLine(content: object): ToolLine {
  return fixtureLine.parse({ at: 1, leg: 'tool', dir: 'in', ...content }) as ToolLine;
}

/** A replay of `lines`, with tools of the agent that note what they are asked and told. */
function stageOf(made: 'recorded' | 'by hand', lines: readonly FixtureLine[]) {
  const header = fixtureHeader.parse({
    earshot: 'call',
    format: 1,
    made,
    server: 'test',
    agent: 'support',
    model: 'rehearsal',
  });
  const notes: string[] = [];
  const real: ToolWork = {
    carryOut: ({ name }, signal) => {
      if (name === AT_ONCE) return DONE;
      if (!signal.aborted) notes.push(`ran ${name}`);
      return Promise.resolve(DONE);
    },
    isLongRunning: () => false,
    wantsSound: false,
    onSound: () => {},
    onImage: () => {},
    counts: () => ({}),
    takeActions: () => NO_ACTIONS,
    leave: () => [],
    tellLate: () => Promise.resolve(),
    tellLateResult: () => Promise.resolve(),
    close: () => Promise.resolve(),
  };
  const tools = new ReplayedTools({ path: join('fixtures', 'calls', 'x.ndjson'), header, lines }, () => {});
  const line = (wish: string) => () => {
    notes.push(wish);
    return { kind: 'accepted' } as const;
  };
  const work = tools.wrap(real, {
    listener: {
      update: ({ text }) => notes.push(`update ${text}`),
      ended: (name, isStopped) => notes.push(`ended ${name} ${isStopped}`),
      forget: (name) => notes.push(`forget ${name}`),
      ends: () => notes.push('ends'),
      changed: async () => void notes.push('changed'),
      settled: ({ id }) => notes.push(`settled ${id}`) > 0,
      late: ({ id }) => notes.push(`late ${id}`) > 0,
    },
    callControl: { hangUp: line('hangUp'), transfer: line('transfer') },
  });
  const carryOut = (id: string, name: string) =>
    work.carryOut({ id, name, args: {} }, new AbortController().signal);
  return { tools, notes, carryOut };
}

describe('tools of a replay', () => {
  it.each(['recorded', 'by hand'] as const)(
    'come to what the file tells, and run nothing (%s)',
    async (made) => {
      const outcome = toolLine({ call: 'c1', outcome: { response: { told: 1 } } });
      const { tools, notes, carryOut } = stageOf(made, [outcome]);
      const result = carryOut('c1', 'pay');
      expect(tools.say(outcome)).toBe(true);
      expect(await result).toMatchObject({ response: { told: 1 } });
      expect(tools.say(outcome)).toBe(false);
      expect(notes).toEqual([]);
    },
  );

  it('run where a call written by hand tells nothing, and not where a recorded one does', async () => {
    const byHand = stageOf('by hand', []);
    expect(await byHand.carryOut('c1', 'pay')).toEqual(DONE);
    expect(byHand.notes).toEqual(['ran pay']);
    const recorded = stageOf('recorded', []);
    void recorded.carryOut('c1', 'pay');
    await Promise.resolve();
    expect(recorded.notes).toEqual([]);
  });

  it('do what is known at once as ever', () => {
    for (const made of ['recorded', 'by hand'] as const)
      expect(stageOf(made, []).carryOut('c1', AT_ONCE)).toEqual(DONE);
  });

  it('say what comes beside answers', () => {
    const { tools, notes } = stageOf('recorded', []);
    const said = [
      { update: { text: 'news', interrupts: false } },
      { forgotten: 'watch' },
      { over: 'watch' },
      { ends: true as const },
      { settled: { id: 'c1', name: 'pay' }, outcome: { response: {} } },
      { late: { id: 'c2', name: 'pay' }, outcome: { response: {} } },
      { wants: 'transfer' },
      { wants: 'hangUp' },
    ].map((content) => tools.say(toolLine(content)));
    expect(said).toEqual(Array(8).fill(true));
    expect(notes).toEqual([
      'update news',
      'forget watch',
      'ended watch false',
      'ends',
      'settled c1',
      'late c2',
      'transfer',
      'hangUp',
    ]);
  });

  it('tell that nobody hears a line before the tools have begun', () => {
    const header = fixtureHeader.parse({
      earshot: 'call',
      format: 1,
      made: 'by hand',
      server: 'test',
      agent: 'support',
      model: 'rehearsal',
    });
    const tools = new ReplayedTools({ path: 'x.ndjson', header, lines: [] }, () => {});
    for (const content of [{ forgotten: 'watch' }, { wants: 'transfer' }, { recalled: null }])
      expect(tools.say(toolLine(content))).toBe(false);
  });
});
