/**
 * What an agent keeps of a caller, and for whom: state over calls and restarts, memory in the next call's setup, scopes and
 * secrets. Rows D3, D4, D8, D9, D11, D12.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { remember } from '../../agents/tools/memory.js';
import { systemClock } from '../../src/clock.js';
import { defineTool } from '../../src/index.js';
import { answerTo, desk } from '../support/probe-agents.js';
import type { JsonObject } from '../support/scripted-gemini.js';
import { type PlacedCall, Stage } from '../support/stage.js';

const ANNA = '+12025550111';
const BERT = '+12025550112';
const SECRET = 'hunter2-of-the-bank';

const keep = defineTool({
  name: 'keep',
  description: 'Keeps state.',
  execute(_args, { state }) {
    state['note'] = 'of the call';
    state['user:wish'] = 'tea';
    state['app:motto'] = 'be kind';
    state['temp:rest'] = 'of the run';
    return { kept: true };
  },
});
const read = defineTool({
  name: 'read',
  description: 'Reads state.',
  execute: (_args, { state }) => ({
    note: state['note'] ?? null,
    wish: state['user:wish'] ?? null,
    motto: state['app:motto'] ?? null,
    rest: state['temp:rest'] ?? null,
  }),
});
const may = defineTool({
  name: 'may',
  description: 'Asks for a scope.',
  execute: (_args, ctx) => ({ may: ctx.userScopes().includes('refund') }),
});
const pays = defineTool({
  name: 'pays',
  description: 'Uses a secret.',
  async execute(_args, ctx) {
    const [known, unknown] = [await ctx.getSecret('BANK'), await ctx.getSecret('NOPE')];
    return { worked: known === SECRET, unknown };
  },
});

const tools = [keep, read, may, pays, remember];
const wired = desk({
  tools,
  runConfig: {
    userScopes: ({ userId }) => (userId === ANNA ? ['refund'] : []),
    getSecret: (name) => (name === 'BANK' ? SECRET : undefined),
  },
});
const unwired = desk({ name: 'unwired', tools });

const folder = mkdtempSync(join(tmpdir(), 'earshot-memory-'));
const database = { DATABASE_URL: `sqlite:${join(folder, 'shared.db')}` };
let stage: Stage;
const open = (): Promise<Stage> => Stage.open(database, systemClock, [wired, unwired]);
beforeAll(async () => {
  stage = await open();
});
afterAll(async () => {
  await stage.close();
  rmSync(folder, { recursive: true, force: true });
});

/** One call of `from`, in which one tool is called; its answer, and the call's setup. */
async function callOf(from: string, name: string, args: JsonObject = {}, agent?: string) {
  const call: PlacedCall = await stage.call({ from, ...(agent !== undefined && { agent }) });
  const watcher = await stage.watch(call.callSid);
  call.model.toolCall({ id: 'c1', name, args });
  const { response } = await answerTo(call.model, 'c1');
  call.phone.hangUp();
  await call.over;
  await watcher.ended();
  await stage.ended(call.callSid);
  await stage.idle();
  return { response, callSid: call.callSid, setup: JSON.stringify(call.model.setup), frames: watcher.read };
}

describe('state', () => {
  it('D3 D4: outlives the call and the server, each key for whom it is', async () => {
    const first = await callOf(ANNA, 'keep');
    await stage.close();
    stage = await open();
    expect((await stage.session(first.callSid, ANNA)).state).toMatchObject({ note: 'of the call' });
    const next = await callOf(ANNA, 'read');
    expect(next.response).toEqual({ note: null, wish: 'tea', motto: 'be kind', rest: null });
    const others = await callOf(BERT, 'read');
    expect(others.response).toEqual({ note: null, wish: null, motto: 'be kind', rest: null });
    // Another agent shares nothing.
    const elsewhere = await callOf(ANNA, 'read', {}, 'unwired');
    expect(elsewhere.response).toEqual({ note: null, wish: null, motto: null, rest: null });
  });
});

describe('memory', () => {
  it('D12: is in the next call’s setup, and in nobody else’s', async () => {
    const fact = 'Likes green tea.';
    const first = await callOf(ANNA, 'remember', { entity: 'caller', facts: [fact] });
    expect(first.response).toMatchObject({ status: 'remembered', added: 1 });
    expect(first.setup).not.toContain(fact);
    expect((await callOf(ANNA, 'read')).setup).toContain(fact);
    expect((await callOf(BERT, 'read')).setup).not.toContain(fact);
    expect((await callOf(ANNA, 'read', {}, 'unwired')).setup).not.toContain(fact);
  });

  it('D12: is not kept of a caller without a number, and the tool says so', async () => {
    const fact = 'Likes to stay unknown.';
    const first = await callOf('anonymous', 'remember', { entity: 'caller', facts: [fact] });
    expect(first.response['error']).toContain('not known');
    const next = await callOf('anonymous', 'read');
    expect(next.setup).not.toContain(fact);
  });
});

describe('scopes and secrets', () => {
  const text = async (name: string, userId: string): Promise<unknown> => {
    stage.textModel.answer = (asked) => {
      if (asked.contents.at(-1)?.parts.some((part) => part.functionResponse !== undefined) === true)
        asked.answers('Well.');
      else asked.calls(name, 'c1');
    };
    await stage.run(`${name} of ${userId}`, 'Go.', userId);
    const part = stage.textModel.asked.at(-1)!.contents.at(-1)!.parts[0]!;
    return part.functionResponse?.['response'];
  };

  it('D8: are the caller’s, the same by phone and in text', async () => {
    expect((await callOf(ANNA, 'may')).response).toEqual({ may: true });
    expect((await callOf(BERT, 'may')).response).toEqual({ may: false });
    expect(await text('may', ANNA)).toEqual({ may: true });
    expect(await text('may', BERT)).toEqual({ may: false });
  });

  it('D9: can be used, are null where there is none, and are seen by nobody', async () => {
    const { response, frames, callSid } = await callOf(ANNA, 'pays');
    expect(response).toEqual({ worked: true, unknown: null });
    const seen = JSON.stringify([frames, await stage.session(callSid, ANNA), stage.errors]);
    expect(seen).not.toContain(SECRET);
  });

  it.each(['may', 'pays'])('D11: that nobody wired are an error, not nothing: %s', async (name) => {
    const { response } = await callOf(ANNA, name, {}, 'unwired');
    expect(response['error']).toMatch(/runConfig has no (userScopes|getSecret)/);
  });
});
