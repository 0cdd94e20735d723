/**
 * `node bench/large-session.mjs [--url sqlite:PATH|postgres://…] [--events 10000]`: how long the event loop is held while a large session is
 * read: whole, as `GET …/sessions/:session` asks for it, and as a history for a model. One JSON object a line. Needs `dist/`.
 *
 * `heldMs` is the longest time in which the loop could do nothing else, of each of ten readings: sound that is due meanwhile is late
 * by as much.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { systemClock } from '../dist/clock.js';
import { HISTORY_READ } from '../dist/limits.js';
import { silentLog } from '../dist/observe/log.js';
import { openStore } from '../dist/store/open-store.js';
import { prepareEvent } from '../dist/store/prepared-event.js';
import { commitOf, machineFields } from './machine.mjs';

const { values } = parseArgs({
  options: { url: { type: 'string' }, events: { type: 'string', default: '10000' } },
});
const count = Number(values.events);
const READINGS = 10;
const folder = mkdtempSync(join(process.env.BENCH_DIR ?? tmpdir(), 'earshot-bench-'));
const url = values.url ?? `sqlite:${join(folder, 'bench.db')}`;
const session = { appName: 'bench', userId: 'large', id: `${process.pid}` };

/** About 900 bytes as JSON, as a turn of some sentences. */
function event(number) {
  return {
    id: `event-${number}`,
    invocationId: 'run-1',
    author: number % 2 === 0 ? 'user' : 'support',
    timestamp: 1_764_530_000.25,
    content: { role: 'model', parts: [{ text: `${number} `.padEnd(650, 'words of a turn ') }] },
    turnComplete: true,
    actions: { stateDelta: {}, artifactDelta: {} },
    usageMetadata: { totalTokenCount: number },
  };
}

/** Runs `work` and tells how long it took, and the longest time between two turns of the event loop meanwhile. */
async function watched(work) {
  let heldMs = 0;
  let isOver = false;
  let before = performance.now();
  const turn = () => {
    const now = performance.now();
    heldMs = Math.max(heldMs, now - before);
    before = now;
    if (!isOver) setImmediate(turn);
  };
  setImmediate(turn);
  const start = performance.now();
  const result = await work();
  const tookMs = performance.now() - start;
  await new Promise((resolve) => setImmediate(resolve));
  isOver = true;
  return { result, heldMs: Math.max(heldMs, performance.now() - before), tookMs };
}

function median(numbers) {
  return Math.round((numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? 0) * 10) / 10;
}

async function measure(read, work) {
  const held = [];
  const took = [];
  let events = 0;
  for (let reading = 0; reading < READINGS; reading += 1) {
    const { result, heldMs, tookMs } = await watched(work);
    events = result.events.length;
    held.push(heldMs);
    took.push(tookMs);
  }
  const root = new URL('..', import.meta.url).pathname;
  const heldMs = { median: median(held), max: Math.round(Math.max(...held) * 10) / 10 };
  const fields = { bench: 'large-session', backend: url.split(':')[0], read, events, heldMs };
  console.log(JSON.stringify({ ...fields, tookMs: median(took), ...machineFields(), ...commitOf(root) }));
}

const store = await openStore(url, { clock: systemClock, log: silentLog });
try {
  await store.createSession(session);
  for (let from = 0; from < count; from += 200) {
    const numbers = Array.from({ length: Math.min(200, count - from) }, (_, at) => from + at);
    await store.appendPrepared(numbers.map((number) => prepareEvent(session, event(number))));
  }
  await measure('whole', () => store.getSession(session));
  await measure('history', () => store.getSession(session, HISTORY_READ));
  await store.deleteSession(session);
} finally {
  await store.close();
  rmSync(folder, { recursive: true, force: true });
}
