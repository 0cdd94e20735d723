/**
 * What is decided behind the end of a run, over the real store and a crash at any moment: done once, told once. Row A20.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Clock, systemClock } from '../src/clock.js';
import { functionResponses } from '../src/event/event.js';
import { defineTool } from '../src/index.js';
import { silentLog } from '../src/observe/log.js';
import { createServerTools } from '../src/server-tools.js';
import { EventWriter } from '../src/store/event-writer.js';
import { openStore } from '../src/store/open-store.js';
import type { Store } from '../src/store/store.js';
import { desk } from './support/probe-agents.js';
import { catalogOf } from './support/stage.js';
import { waitUntil } from './support/wait-until.js';
import { RecordingLog } from './telephony/recording-log.js';

const SESSION = { appName: 'desk', userId: '+12025550111', id: 'CA1' };
const never = new Promise<never>(() => {});

let folder: string;
let store: Store;
let runs: number;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'earshot-late-'));
  store = await openStore(`sqlite:${join(folder, 'late.db')}`, { clock: systemClock, log: silentLog });
  runs = 0;
  await store.createSession(SESSION);
  await store.addPendingCall({
    id: 'p1',
    session: SESSION,
    callSid: 'CA1',
    invocationId: 'i1',
    callId: 'c1',
    tool: 'pay',
    args: {},
    kind: 'approval',
    guards: [],
    requestedAtMs: 1,
  });
});
afterEach(async () => {
  await store.close();
  rmSync(folder, { recursive: true, force: true });
});

/** A server over the one store; what is put in the place of its methods never comes back, as in a process that has died. */
function server({ dead = {}, isMute = false }: { dead?: Partial<Store>; isMute?: boolean } = {}) {
  const pay = defineTool({
    name: 'pay',
    description: 'Pays.',
    approval: true,
    sideEffect: { key: () => 'order' },
    execute(_args, ctx) {
      runs += 1;
      ctx.state['paid'] = true;
      return { status: 'paid' };
    },
  });
  const agent = desk({ tools: [pay] });
  const writer = new EventWriter({ store, clock: systemClock, log: silentLog });
  const kept = new Proxy(store, {
    get(target, key) {
      const member: unknown = Reflect.get(dead, key) ?? Reflect.get(target, key);
      return typeof member === 'function' ? (member.bind(target) as unknown) : member;
    },
  });
  return createServerTools({
    agents: catalogOf(agent, [agent]),
    keeping: { store: kept, writer: isMute ? { append: () => never } : writer },
    clock: systemClock,
    log: silentLog,
  }).runs;
}

async function told(): Promise<readonly unknown[]> {
  const { events = [] } = (await store.getSession(SESSION)) ?? {};
  return events.flatMap((event) => functionResponses(event).map(({ response }) => response));
}

async function nextServers(): Promise<void> {
  for (let at = 0; at < 2; at += 1) {
    const next = server();
    await next.desk.resume();
    await next.idle();
  }
}

describe('an approved deed that the ledger guards, and a process that dies', () => {
  it('A20: behind telling its result: the next server tells nothing again', async () => {
    const first = server({ dead: { settlePendingCall: () => never } });
    await first.desk.decide('p1', { decision: 'approve' });
    await waitUntil('the result', async () => (await told()).length > 0);
    await nextServers();
    expect(await told()).toEqual([{ status: 'paid' }]);
    expect(runs).toBe(1);
    expect(await store.listDecidedCalls()).toEqual([]);
    expect(await store.readState(SESSION)).toEqual({ paid: true });
  });

  it('A20: in front of telling it: the next server tells the result of then, once', async () => {
    const first = server({ isMute: true });
    await first.desk.decide('p1', { decision: 'approve' });
    await waitUntil('the deed', async () => (await store.listLedger({})).items[0]?.response !== undefined);
    expect(await told()).toEqual([]);
    await nextServers();
    expect(await told()).toEqual([{ status: 'paid' }]);
    expect(runs).toBe(1);
    expect(await store.listDecidedCalls()).toEqual([]);
  });

  it('A20: is told once where two servers carry it out at once', async () => {
    await store.decidePendingCall('p1', { decision: 'deny' });
    const both = [server(), server()];
    await Promise.all(both.map((one) => one.desk.resume()));
    await Promise.all(both.map((one) => one.idle()));
    expect(await told()).toHaveLength(1);
    expect(runs).toBe(0);
  });
});

describe('a server that starts over what another one has left', () => {
  /** Sees the store a minute later. */
  async function nextServer() {
    const clock: Clock = { ...systemClock, wallMs: () => systemClock.wallMs() + 60_000 };
    const kept = await openStore(`sqlite:${join(folder, 'late.db')}`, { clock, log: silentLog });
    const log = new RecordingLog();
    const writer = new EventWriter({ store: kept, clock, log });
    const agent = desk({ tools: [] });
    const tools = createServerTools({
      agents: catalogOf(agent, [agent]),
      keeping: { store: kept, writer },
      clock,
      log,
    });
    await tools.resume();
    return {
      log,
      async close() {
        await tools.close();
        await writer.close();
        await kept.close();
      },
    };
  }

  it('tells slow work as lost that nobody is at any more, once, and lists it no longer', async () => {
    await store.settlePendingCall('p1');
    await store.addPendingCall({
      id: 'p2',
      session: SESSION,
      callSid: 'CA1',
      invocationId: 'i1',
      callId: 'c2',
      tool: 'search',
      args: {},
      kind: 'longRunning',
      guards: [],
      requestedAtMs: 1,
      isWorking: true,
    });
    for (let at = 0; at < 2; at += 1) {
      const next = await nextServer();
      await waitUntil('it is told', async () => (await told()).length > 0);
      await next.close();
    }
    expect(await told()).toEqual([{ error: expect.stringMatching(/^search was lost.*not known/) as string }]);
    expect((await store.listPendingCalls()).items).toEqual([]);
    expect(await store.decidePendingCall('p2', { decision: 'approve' })).toEqual({ kind: 'repeat' });
  });

  it('says how many entries of the ledger are open', async () => {
    const lines = async () => {
      const next = await nextServer();
      await next.close();
      return next.log.lines.filter(({ fields }) => 'open' in fields);
    };
    expect(await lines()).toEqual([]);
    await store.claim({ session: SESSION, key: 'k', tool: 'pay', callId: 'c1', guards: [] });
    expect(await lines()).toMatchObject([{ level: 'warn', fields: { open: 1 } }]);
  });
});
