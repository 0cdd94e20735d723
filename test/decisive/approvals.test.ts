/**
 * Work that waits for a person or for slow machines: asked for in a live call, decided over HTTP then, behind its end, or after a
 * restart of the server. Rows A19, A20 and worked example 11.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/clock.js';
import { functionResponses } from '../../src/event/event.js';
import { defineTool } from '../../src/index.js';
import { answersTo, answerTo, desk, HeldTool, toolFrames } from '../support/probe-agents.js';
import { type PlacedCall, says, Stage } from '../support/stage.js';
import { waitUntil } from '../support/wait-until.js';

/** What was paid, in order. */
const paid: unknown[] = [];
const pay = defineTool({
  name: 'pay',
  description: 'Pays.',
  parameters: { type: 'object', properties: { what: { type: 'string' } }, required: ['what'] },
  approval: true,
  execute({ what }) {
    paid.push(what);
    return { status: 'paid', what, message: `The ${String(what)} is paid.` };
  },
});
const bake = new HeldTool('bake', { longRunning: true }, false);
const handed = defineTool({
  name: 'handed',
  description: 'Somebody else does it.',
  longRunning: true,
  execute: () => ({ status: 'pending' }),
});
const agent = desk({ tools: [pay, bake.tool, handed] });

const folder = mkdtempSync(join(tmpdir(), 'earshot-approvals-'));
const database = { DATABASE_URL: `sqlite:${join(folder, 'shared.db')}` };
let stage: Stage;
beforeAll(async () => {
  stage = await Stage.open(database, systemClock, [agent]);
});
afterAll(async () => {
  await stage.close();
  rmSync(folder, { recursive: true, force: true });
});
beforeEach(() => {
  paid.length = 0;
});

interface Approval {
  readonly id: string;
  readonly callSid: string;
  readonly sessionId: string;
  readonly tool: string;
  readonly args: object;
  readonly requestedAt: string;
}

async function approvals(at = stage): Promise<Approval[]> {
  return (await at.json('/approvals')).body['approvals'] as Approval[];
}

async function pendingOf(callSid: string): Promise<Approval> {
  let found: Approval | undefined;
  await waitUntil('the approval', async () => {
    found = (await approvals()).find((one) => one.callSid === callSid);
    return found !== undefined;
  });
  return found!;
}

function decide(id: string, decision: unknown, at = stage) {
  return at.json(`/approvals/${id}`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(decision),
  });
}

async function asked(name: string, args: Record<string, unknown> = { what: 'cake' }) {
  const call = await stage.call();
  const watcher = await stage.watch(call.callSid);
  call.model.toolCall({ id: 'c1', name, args });
  const answer = await answerTo(call.model, 'c1');
  expect(answer.response).toMatchObject({ status: 'pending' });
  await watcher.until('it to be told', () => toolFrames(watcher).at(-1) === `c1 ${name} pending`);
  return { ...call, watcher, pending: await pendingOf(call.callSid) };
}

/** What the model was told of it by itself. */
function told({ model }: PlacedCall): string[] {
  return model.receivedTextInputs.filter((text) => text.includes('Your tool'));
}

async function toldOnce(call: PlacedCall): Promise<string> {
  await waitUntil('the model to be told', () => told(call).length > 0);
  return told(call).join('\n');
}

async function hangUp({ phone, over, callSid }: PlacedCall): Promise<void> {
  phone.hangUp();
  await over;
  await stage.ended(callSid);
  await stage.idle();
}

async function responsesOf(callSid: string, at = stage) {
  return (await at.events(callSid)).flatMap((event) => functionResponses(event)).map((one) => one.response);
}

describe('A20: a call that a person has to approve', () => {
  it('A19 A20: is pending for everybody, runs once when it is approved, and the agent is told at its next pause', async () => {
    const call = await asked('pay');
    const { pending, watcher, model, callSid } = call;
    expect(pending).toMatchObject({ sessionId: callSid, tool: 'pay', args: { what: 'cake' } });
    expect(Date.parse(pending.requestedAt)).toBeGreaterThan(0);
    expect(paid).toEqual([]);
    const sound = model.receivedAudio.length;
    await model.waitUntil(() => model.receivedAudio.length > sound);
    says(model, 'It has to be approved first.', { ms: 1_500 });
    expect(await decide(pending.id, { decision: 'approve', by: 'Ms Gray' })).toMatchObject({
      status: 200,
      body: { id: pending.id, decision: 'approve' },
    });
    expect(await toldOnce(call)).toMatch(/pay.*"message":"The cake is paid\."/);
    expect(paid).toEqual(['cake']);
    await watcher.until('the result', () => toolFrames(watcher).at(-1) === 'c1 pay done');
    // A repeat, or a change of mind, changes nothing.
    expect((await decide(pending.id, { decision: 'approve' })).body['decision']).toBe('approve');
    expect((await decide(pending.id, { decision: 'deny' })).body['decision']).toBe('approve');
    expect(await approvals()).toEqual([]);
    await hangUp(call);
    expect(paid).toEqual(['cake']);
    expect(answersTo(model)).toHaveLength(1);
    expect(told(call)).toHaveLength(1);
    const events = await stage.events(callSid);
    expect(events.some(({ longRunningToolIds }) => longRunningToolIds?.includes('c1'))).toBe(true);
    expect(await responsesOf(callSid)).toEqual([
      expect.objectContaining({ status: 'pending' }),
      expect.objectContaining({ status: 'paid' }),
    ]);
  });

  it('A20: is an error when it is denied, and does not run', async () => {
    const call = await asked('pay');
    await decide(call.pending.id, { decision: 'deny', by: 'Ms Gray' });
    expect(await toldOnce(call)).toContain('pay was denied by Ms Gray');
    await call.watcher.until('the result', () => toolFrames(call.watcher).at(-1) === 'c1 pay error');
    await hangUp(call);
    expect(paid).toEqual([]);
  });

  it('A20: of an id that nobody has is not found, whatever the body', async () => {
    for (const body of [{ decision: 'approve' }, { decision: 'perhaps' }, {}, []])
      expect((await decide('no-such-id', body)).status).toBe(404);
  });

  it('A20: is decided after the call has ended: it runs once, and the session has the result', async () => {
    const call = await asked('pay', { what: 'bread' });
    await hangUp(call);
    await decide(call.pending.id, { decision: 'approve' });
    await waitUntil('it to be stored', async () => (await responsesOf(call.callSid)).length === 2);
    await decide(call.pending.id, { decision: 'approve' });
    expect(paid).toEqual(['bread']);
    const events = await stage.events(call.callSid);
    expect(new Set(events.map(({ invocationId }) => invocationId)).size).toBe(1);
    expect(await responsesOf(call.callSid)).toEqual([
      expect.objectContaining({ status: 'pending' }),
      expect.objectContaining({ status: 'paid', what: 'bread' }),
    ]);
    await stage.idle();
  });

  it('A20: is decided after a restart of the server: the same', async () => {
    const call = await asked('pay', { what: 'tea' });
    await hangUp(call);
    await stage.close();
    stage = await Stage.open(database, systemClock, [agent]);
    const [pending, ...more] = await approvals();
    expect([pending?.id, more]).toEqual([call.pending.id, []]);
    await decide(call.pending.id, { decision: 'approve' });
    await waitUntil('it to be stored', async () => (await responsesOf(call.callSid)).length === 2);
    expect((await decide(call.pending.id, { decision: 'deny' })).body['decision']).toBe('approve');
    expect(paid).toEqual(['tea']);
    await stage.idle();
  });

  it('A19 A20: ends a run in text, which is told the result when it goes on', async () => {
    stage.textModel.answer = (one) => {
      if (one.contents.at(-1)?.parts.some((part) => part.functionResponse !== undefined) === true)
        one.answers('It waits for an approval.');
      else one.calls('handed', 'c1');
    };
    const { body } = await stage.run('by text', 'Do it.');
    expect(body['tools']).toEqual([{ callId: 'c1', name: 'handed', state: 'pending' }]);
    const [pending] = await approvals();
    await decide(pending!.id, { decision: 'approve', by: 'Mr Hill' });
    await waitUntil('it to be stored', async () => (await responsesOf('by text')).length === 2);
    const before = stage.textModel.asked.length;
    stage.textModel.answer = (one) => one.answers('It was approved.');
    await stage.run('by text', 'And?');
    expect(JSON.stringify(stage.textModel.asked[before]!.contents)).toContain('approved by Mr Hill');
  });
});

describe('A19: slow work', () => {
  it('goes on while the call does, is settled by itself, and the agent is told', async () => {
    const call = await asked('bake');
    await waitUntil('it to run', () => bake.isWaiting);
    bake.letGo();
    expect(await toldOnce(call)).toContain('bake is done.');
    expect(await approvals()).toEqual([]);
    await hangUp(call);
    expect(await responsesOf(call.callSid)).toHaveLength(2);
  });

  it('may end after the call: the session has its result', async () => {
    const call = await asked('bake');
    await waitUntil('it to run', () => bake.isWaiting);
    call.phone.hangUp();
    await call.over;
    await stage.ended(call.callSid);
    bake.letGo();
    await waitUntil('it to be stored', async () => (await responsesOf(call.callSid)).length === 2);
    expect((await responsesOf(call.callSid))[1]).toEqual({ message: 'bake is done.' });
    await stage.idle();
  });
});
