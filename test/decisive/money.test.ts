/**
 * One refund, asked for again in every way in which that happens: in the same call, withdrawn, in two calls at once, on another
 * day behind a restart, under each live model's profile, and after a server that was killed in the middle of it. The deed is done
 * once, the ledger has one entry.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/clock.js';
import { defineTool } from '../../src/index.js';
import { answerTo, desk, HeldTool, LIVE_MODELS } from '../support/probe-agents.js';
import { ServerProcess } from '../support/server-process.js';
import { type PlacedCall, Stage } from '../support/stage.js';
import { waitUntil } from '../support/wait-until.js';

const AMOUNT = { account: 'A-1', amountMinor: 500, currency: 'EUR', limitMinor: 800 };
const orderOf = (args: Record<string, unknown>): string => String(args['order']);

const parameters = { type: 'object', properties: { order: { type: 'string' } } } as const;
const sideEffect = {
  key: (args: Record<string, unknown>) => `refund/${orderOf(args)}`,
  amount: (args: Record<string, unknown>) => ({ ...AMOUNT, account: orderOf(args).slice(0, 3) }),
};

let deeds: string[] = [];
const quick = defineTool({
  name: 'refund',
  description: 'Refunds.',
  parameters,
  sideEffect,
  execute(args) {
    deeds.push(orderOf(args));
    return { status: 'approved', refund_id: `R-${deeds.length}` };
  },
});
const slow = new HeldTool('slow_refund', { parameters, sideEffect }, false);
const agent = desk({ tools: [quick, slow.tool] });

const folder = mkdtempSync(join(tmpdir(), 'earshot-money-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

let stage: Stage;

let ids = 0;
async function refund(call: PlacedCall, name: string, order: string) {
  const id = `r${(ids += 1)}`;
  call.model.toolCall({ id, name, args: { order } });
  return (await answerTo(call.model, id)).response;
}

async function hangUp({ phone, over, callSid }: PlacedCall, at = stage): Promise<void> {
  phone.hangUp();
  await over;
  await at.ended(callSid);
  await at.idle();
}

interface Entry {
  readonly key: string;
  readonly state: string;
  readonly callId: string;
}

async function entries(order: string, at = stage): Promise<Entry[]> {
  const { body } = await at.json('/ledger');
  const rows = Object.values(body).find((value) => Array.isArray(value)) as Entry[];
  return rows.filter(({ key }) => key === `refund/${order}`);
}

describe.each(LIVE_MODELS)('a refund, %s', (modelName) => {
  const settings = {
    GEMINI_MODEL: modelName,
    DATABASE_URL: `sqlite:${join(folder, `${modelName}.db`)}`,
  };
  beforeAll(async () => {
    stage = await Stage.open(settings, systemClock, [agent]);
  });
  afterAll(() => stage.close());

  it('is done once over a retry, a new call, and a restart', async () => {
    deeds = [];
    const call = await stage.call();
    const first = await refund(call, 'refund', 'A-1');
    expect(first).toEqual({ status: 'approved', refund_id: 'R-1' });
    expect(await refund(call, 'refund', 'A-1')).toEqual({ ...first, repeated: true });
    await hangUp(call);
    await stage.close();
    stage = await Stage.open(settings, systemClock, [agent]);
    const next = await stage.call({ from: '+12025550177' });
    expect(await refund(next, 'refund', 'A-1')).toEqual({ ...first, repeated: true });
    await hangUp(next);
    expect(deeds).toEqual(['A-1']);
    expect(await entries('A-1')).toMatchObject([{ state: 'done' }]);
  });

  it('never exceeds what was paid', async () => {
    deeds = [];
    const call = await stage.call();
    await refund(call, 'refund', 'B-1/first');
    const over = await refund(call, 'refund', 'B-1/second');
    expect(over['error']).toContain('refund was refused');
    await hangUp(call);
    expect(deeds).toEqual(['B-1/first']);
  });

  it('is done once where the model withdraws the call and asks again', async () => {
    const runs = slow.runs;
    const aborted = slow.aborted.length;
    const call = await stage.call();
    call.model.toolCall({ id: 'w1', name: 'slow_refund', args: { order: 'C-1' } });
    await waitUntil('it to run', () => slow.isWaiting);
    call.model.cancelToolCalls('w1');
    await waitUntil('the abort', () => slow.aborted.length === aborted + 1);
    call.model.toolCall({ id: 'w2', name: 'slow_refund', args: { order: 'C-1' } });
    slow.letGo(() => ({ status: 'approved', refund_id: 'R-9' }));
    expect((await answerTo(call.model, 'w2')).response).toEqual({
      status: 'approved',
      refund_id: 'R-9',
      repeated: true,
    });
    await hangUp(call);
    expect(slow.runs - runs).toBe(1);
    expect(await entries('C-1')).toMatchObject([{ state: 'done' }]);
  });

  it('is done once where two calls ask at once', async () => {
    const runs = slow.runs;
    const [one, other] = [await stage.call(), await stage.call({ from: '+12025550178' })];
    const answers = [refund(one, 'slow_refund', 'D-1'), refund(other, 'slow_refund', 'D-1')];
    await waitUntil('it to run', () => slow.isWaiting);
    slow.letGo(() => ({ status: 'approved', refund_id: 'R-10' }));
    const answer = { status: 'approved', refund_id: 'R-10' };
    expect(await Promise.all(answers)).toEqual([answer, { ...answer, repeated: true }]);
    one.phone.hangUp();
    await hangUp(other);
    expect(slow.runs - runs).toBe(1);
    expect(await entries('D-1')).toMatchObject([{ state: 'done' }]);
  });

  it('whose caller hangs up in the middle of it is kept, and the next call gets its result', async () => {
    const runs = slow.runs;
    const call = await stage.call();
    call.model.toolCall({ id: 'h1', name: 'slow_refund', args: { order: 'E-1' } });
    await waitUntil('it to run', () => slow.isWaiting);
    call.phone.hangUp();
    await call.over;
    await stage.ended(call.callSid);
    slow.letGo(() => ({ status: 'approved', refund_id: 'R-11' }));
    await waitUntil('it to be kept', async () => (await entries('E-1'))[0]?.state === 'done');
    const next = await stage.call();
    expect(await refund(next, 'slow_refund', 'E-1')).toMatchObject({ refund_id: 'R-11' });
    await hangUp(next);
    expect(slow.runs - runs).toBe(1);
  });
});

/** An agent of its own module whose refund writes a line and never answers. */
const MODULE = `
import { appendFileSync } from 'node:fs';
import { defineAgent, defineTool } from 'earshot';
const refund = defineTool({
  name: 'refund',
  description: 'Refunds.',
  parameters: { type: 'object', properties: { order: { type: 'string' } } },
  sideEffect: { key: ({ order }) => 'refund/' + order },
  execute({ order }) {
    appendFileSync(process.env.EARSHOT_DEEDS, order + '\\n');
    return new Promise(() => {});
  },
});
export default defineAgent({ name: 'support', instruction: 'Serve.', greeting: 'Hello.', tools: [refund] });
`;

describe('a server that is killed between the claim and its settlement', () => {
  it('refuses the refund afterwards: nobody knows whether it was done', async () => {
    let running: ServerProcess | undefined;
    const module = join(folder, 'agent.mjs');
    const deedsFile = join(folder, 'deeds.txt');
    writeFileSync(module, MODULE);
    const start = (given: Readonly<Record<string, string>>) =>
      new ServerProcess({ ...given, PORT: '0', AGENT: module, EARSHOT_DEEDS: deedsFile });
    let settings: Readonly<Record<string, string>> = {};
    const around = await Stage.around(async (given) => {
      settings = given;
      running = start(given);
      return { url: await running.url(), close: () => running!.kill() };
    });
    const call = await around.call();
    call.model.toolCall({ id: 'k1', name: 'refund', args: { order: 'K-1' } });
    await waitUntil('the deed', () => existsSync(deedsFile));
    await running!.kill();
    await call.over;
    call.phone.hangUp();
    running = start(settings);
    const again = Stage.at(await running.url(), around);
    const next = await again.call();
    const answer = await refund(next, 'refund', 'K-1');
    expect(answer['error']).toMatch(/refund was refused: .*not known/);
    expect(await entries('K-1', again)).toMatchObject([{ state: 'open' }]);
    next.phone.hangUp();
    await next.over;
    expect(readFileSync(deedsFile, 'utf8')).toBe('K-1\n');
    await around.close();
  });
});
