/**
 * Two servers on one store, and a caller whose server is killed, cut short or stops in a deploy: the conversation goes on at the other one.
 * What is said here was seen by a carrier, at the model's door and in the database. The law that nobody sits in unexplained silence, and
 * that nothing that was done is done twice.
 */
import { afterEach, describe, expect, it } from 'vitest';
import { type Clock, sleep, systemClock } from '../../src/clock.js';
import { readConfig } from '../../src/config.js';
import { DRAIN_MAX_MS } from '../../src/limits.js';
import { silentLog } from '../../src/observe/log.js';
import { startServer } from '../../src/server.js';
import type { CallRecord } from '../../src/store/call-records.js';
import { openStore } from '../../src/store/open-store.js';
import { PostgresServer } from '../store/postgres-server.js';
import { PublicFront } from '../support/public-front.js';
import type { ScriptedConnection } from '../support/scripted-gemini.js';
import { ServerProcess } from '../support/server-process.js';
import { heardMs, type PlacedCall, says, Stage } from '../support/stage.js';
import { waitUntil } from '../support/wait-until.js';

/** One that can be reached at an address of its own. */
interface Server {
  readonly url: string;
  close(): Promise<unknown>;
}

/** The second answer as far as it was heard. */
const CUT_ANSWER = /^support: It( \w+)* —$/;

let stage: Stage;
let front: PublicFront;
let settings: Readonly<Record<string, string>>;
const running: Server[] = [];

afterEach(async () => {
  await stage.close();
  await Promise.all(running.splice(0).map((server) => server.close()));
  await front.close();
});

/** Two servers behind one public address, which leads to the first. */
async function twoServers<S extends Server>(
  start: () => Promise<S>,
  environment: Readonly<Record<string, string>> = {},
): Promise<[S, S]> {
  front = await PublicFront.start();
  stage = await Stage.around(async (given) => {
    settings = { ...given, PORT: '0', ...environment };
    return { url: front.url, close: async () => {} };
  });
  const servers: [S, S] = [await start(), await start()];
  running.push(...servers);
  front.target = servers[0].url;
  return servers;
}

async function inAProcess(): Promise<Server & { readonly process: ServerProcess }> {
  const own = new ServerProcess(settings);
  return { url: await own.url(), process: own, close: () => own.kill() };
}

/** A call in which a question was answered and a function was called; all of it is stored. */
async function underWay(): Promise<PlacedCall> {
  const call = await stage.call();
  const { model, callSid } = call;
  const watcher = await stage.watch(callSid);
  model.sendInputTranscription('Where is order A-10293?');
  model.toolCall({ id: 'c1', name: 'order_status', args: { order_id: 'A-10293' } });
  await model.waitFor((frame) => 'toolResponse' in frame);
  says(model, 'It was delivered.', { ms: 300 });
  await watcher.until('the answer', ({ sealed }) => sealed.includes('done: It was delivered.'));
  model.sendInputTranscription('And when?');
  says(model, 'It was delivered on the first of June, in the morning', { ms: 6_000, pieces: 6, open: true });
  await waitUntil('the caller to hear it', () => heardMs(call.phone) > 2_000);
  return call;
}

/** The model of the server that goes on: it knows what was said and done, and greets nobody. */
async function goesOn(): Promise<ScriptedConnection> {
  const model = await stage.gemini.connection(1);
  await model.waitFor((frame) => JSON.stringify(frame).includes('the caller is back'));
  const setup = JSON.stringify(model.setup);
  expect(setup).toContain('Where is order A-10293?');
  expect(setup).toContain('It was delivered.');
  expect(setup).toMatch(/You called order_status\(.*A-10293.*, and the result was /);
  expect(setup).toContain('You are on a telephone call.');
  expect(model.receivedTextInputs.join('\n')).not.toContain('word for word');
  return model;
}

/** The caller hears the other server and is heard there; the session holds all of it, once. */
async function isOneConversation({ phone, over, callSid }: PlacedCall): Promise<string[]> {
  const model = await goesOn();
  const beforeMs = heardMs(phone);
  model.sendInputTranscription('Hello?');
  says(model, 'There you are again.', { ms: 600 });
  await waitUntil('the caller to hear it', () => heardMs(phone) >= beforeMs + 500);
  await sleep(systemClock, 1_500);
  phone.hangUp();
  await over;
  await waitUntil('the record to say that it is over', async () => {
    return (await recordOf(callSid))?.ended?.reason === 'caller_hangup';
  });
  expect(phone.record().streams).toHaveLength(2);
  expect(await stage.metric('earshot_calls_taken_over_total')).toBe(1);
  const said = await stage.said(callSid);
  expect(said.filter((line) => line.includes('order A-10293'))).toHaveLength(1);
  expect(said.at(-1)).toBe('support: There you are again.');
  return said;
}

async function recordOf(callSid: string): Promise<CallRecord | undefined> {
  const store = await openStore(settings['DATABASE_URL']!, { clock: systemClock, log: silentLog });
  try {
    return await store.findCallRecord(callSid);
  } finally {
    await store.close();
  }
}

/** Processes start, and calls go on in real time, on a machine that may be busy. */
const REAL_TIME_MAX_MS = 60_000;

describe('a call whose server is gone goes on at another one', () => {
  it(
    'where it was killed',
    async () => {
      const [first, second] = await twoServers(inAProcess);
      const call = await underWay();
      front.target = second.url;
      await first.process.kill();
      const said = await isOneConversation(call);
      // What was being said when it was killed had not been stored.
      expect(said.filter((line) => CUT_ANSWER.test(line))).toEqual([]);
    },
    REAL_TIME_MAX_MS,
  );

  it(
    'where it was killed, on PostgreSQL',
    async () => {
      const postgres = await PostgresServer.start();
      try {
        const DATABASE_URL = await postgres.createDatabase();
        const [first, second] = await twoServers(inAProcess, { DATABASE_URL });
        const call = await underWay();
        front.target = second.url;
        await first.process.kill();
        expect(await isOneConversation(call)).toContain('support: It was delivered.');
        await second.process.kill();
      } finally {
        await postgres.stop();
      }
    },
    REAL_TIME_MAX_MS,
  );

  it(
    'where it was asked twice to stop, and keeps what was heard of the last word',
    async () => {
      const [first, second] = await twoServers(inAProcess);
      const call = await underWay();
      front.target = second.url;
      first.process.signal('SIGTERM');
      // What comes sooner is taken for the same signal, passed on.
      await sleep(systemClock, 1_100);
      first.process.signal('SIGTERM');
      expect(await first.process.exit).toBe(1);
      const said = await isOneConversation(call);
      expect(said.filter((line) => CUT_ANSWER.test(line))).toHaveLength(1);
    },
    REAL_TIME_MAX_MS,
  );

  it(
    'where it hands it over in a deploy, though the caller comes back to it first',
    async () => {
      const hurried: Clock = {
        ...systemClock,
        setTimer: (delayMs, fire) => systemClock.setTimer(delayMs === DRAIN_MAX_MS ? 300 : delayMs, fire),
      };
      const [first, second] = await twoServers(() =>
        startServer(readConfig(settings), { clock: hurried, log: silentLog }),
      );
      const call = await underWay();
      const drained = first.drain();
      await waitUntil('the first server to ask for patience', () =>
        call.phone.record().carrierSpeech.some(({ text }) => text === 'One moment please.'),
      );
      front.target = second.url;
      const said = await isOneConversation(call);
      expect(said.filter((line) => CUT_ANSWER.test(line))).toHaveLength(1);
      await drained;
    },
    REAL_TIME_MAX_MS,
  );
});
