/**
 * `node bench/store.mjs [--url sqlite:PATH|postgres://…] [--seconds 10]`: what storing costs, and what of it the event loop feels. One
 * JSON object a line. Needs `dist/`. Without a URL it uses SQLite in a temporary folder; its disk is what is measured.
 *
 *   commit       libsql alone, one event a commit, on the thread that measures: what every commit would stop
 *   appends      100 events a second through the writer, a call each 20 ms; from handing over to stored, and the loop's delay
 *   on-loop      the same events written by libsql on the event loop itself, for comparison
 *   throughput   20,000 events handed over at once
 *   read         a session of 1,000 events
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import Database from 'libsql';
import { systemClock } from '../dist/clock.js';
import { silentLog } from '../dist/observe/log.js';
import { EventWriter } from '../dist/store/event-writer.js';
import { openStore } from '../dist/store/open-store.js';
import { commitOf, machineFields } from './machine.mjs';

const { values } = parseArgs({
  options: { url: { type: 'string' }, seconds: { type: 'string', default: '10' } },
});
const seconds = Number(values.seconds);
const PER_SECOND = 100;
const CALLS = 50;

const folder = mkdtempSync(join(process.env.BENCH_DIR ?? tmpdir(), 'earshot-bench-'));
const url = values.url ?? `sqlite:${join(folder, 'bench.db')}`;
const backend = url.split(':')[0];
let runs = 0;

function report(bench, fields) {
  const root = new URL('..', import.meta.url).pathname;
  console.log(JSON.stringify({ bench, backend, ...fields, ...machineFields(), ...commitOf(root) }));
}

function spread(times) {
  const sorted = times.toSorted((a, b) => a - b);
  const at = (share) => Math.round((sorted[Math.floor((sorted.length - 1) * share)] ?? 0) * 1000) / 1000;
  return { count: sorted.length, p50: at(0.5), p99: at(0.99), max: at(1) };
}

/** About 900 bytes as JSON, as a turn of some sentences. */
function event(number) {
  return {
    id: `event-${number}`,
    invocationId: 'run-1',
    author: 'support',
    timestamp: 1_764_530_000.25,
    content: { role: 'model', parts: [{ text: `${number} `.padEnd(650, 'words of a turn ') }] },
    turnComplete: true,
    actions: { stateDelta: number % 10 === 0 ? { last: number } : {}, artifactDelta: {} },
    usageMetadata: { totalTokenCount: number },
  };
}

/** Runs `append` PER_SECOND times a second, evenly, and tells how late the event loop was. */
async function paced(append) {
  const delay = monitorEventLoopDelay({ resolution: 1 });
  const cpu = process.cpuUsage();
  const busy = performance.eventLoopUtilization();
  delay.enable();
  const start = performance.now();
  for (let number = 0; number < seconds * PER_SECOND; number += 1) {
    const wait = start + (number * 1000) / PER_SECOND - performance.now();
    if (wait > 0) await sleep(wait);
    append(number);
  }
  delay.disable();
  const { user, system } = process.cpuUsage(cpu);
  const ms = (nanoseconds) => Math.round(nanoseconds / 1e4) / 100;
  return {
    loopDelayMs: { p50: ms(delay.percentile(50)), p99: ms(delay.percentile(99)), max: ms(delay.max) },
    loopBusyShare: Math.round(performance.eventLoopUtilization(busy).utilization * 1e4) / 1e4,
    cpuMsPerSecond: Math.round((user + system) / 1000 / seconds),
  };
}

async function withWriter(work) {
  const store = await openStore(url, { clock: systemClock, log: silentLog });
  const writer = new EventWriter({ store, clock: systemClock, log: silentLog });
  runs += 1;
  const sessions = Array.from({ length: CALLS }, (_, at) => ({
    appName: 'bench',
    userId: `user-${at}`,
    id: `${process.pid}-${runs}-${at}`,
  }));
  await Promise.all(sessions.map((session) => writer.createSession(session)));
  await work({ store, writer, sessions });
  await writer.close();
  for (const { userId } of sessions) await store.deleteUser({ appName: 'bench' }, userId);
  await store.close();
}

/** A table like the store's, and its statement. */
function bareDatabase(name, synchronous) {
  const database = new Database(join(folder, name));
  database.exec('PRAGMA journal_mode = WAL');
  database.exec(`PRAGMA synchronous = ${synchronous}`);
  database.exec(
    'create table event (session text, seq integer, id text, body text, primary key (session, seq))',
  );
  const statement = database.prepare('insert into event values (?, ?, ?, ?)');
  return {
    append: (number) => statement.run(['session', number, `event-${number}`, JSON.stringify(event(number))]),
  };
}

async function main() {
  if (backend === 'sqlite') {
    for (const synchronous of ['FULL', 'NORMAL']) {
      const { append } = bareDatabase(`bare-${synchronous}.db`, synchronous);
      const times = [];
      for (let number = 0; number < 3_000; number += 1) {
        const before = performance.now();
        append(number);
        times.push(performance.now() - before);
      }
      report('commit', { synchronous, commitMs: spread(times) });
    }
  }
  report('idle', await paced(() => {}));
  await withWriter(async ({ writer, sessions }) => {
    const times = [];
    const handing = [];
    const lag = await paced((number) => {
      const before = performance.now();
      void writer
        .append(sessions[number % CALLS], event(number))
        .then(() => times.push(performance.now() - before));
      handing.push(performance.now() - before);
    });
    await writer.flushed();
    report('appends', {
      perSecond: PER_SECOND,
      storedMs: spread(times),
      handingOverMs: spread(handing),
      ...lag,
    });
  });
  if (backend === 'sqlite') report('on-loop', await paced(bareDatabase('on-loop.db', 'FULL').append));
  await withWriter(async ({ writer, sessions }) => {
    const count = 20_000;
    const before = performance.now();
    const outcomes = [];
    for (let number = 0; number < count; number += 1)
      outcomes.push(writer.append(sessions[number % CALLS], event(number)));
    const handedOverMs = Math.round(performance.now() - before);
    const stored = (await Promise.all(outcomes)).filter((outcome) => outcome.stored).length;
    const ms = performance.now() - before;
    report('throughput', { count, stored, handedOverMs, eventsPerSecond: Math.round((stored / ms) * 1000) });
  });
  await withWriter(async ({ store, writer, sessions: [session] }) => {
    for (let number = 0; number < 1_000; number += 1) void writer.append(session, event(number));
    await writer.flushed();
    const times = [];
    for (let at = 0; at < 20; at += 1) {
      const before = performance.now();
      await store.getSession(session);
      times.push(performance.now() - before);
    }
    report('read', { events: 1_000, readMs: spread(times) });
  });
}

await main().finally(() => rmSync(folder, { recursive: true, force: true }));
