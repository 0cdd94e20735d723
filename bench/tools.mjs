/**
 * `node bench/tools.mjs [--seconds 8] [--only async]`: what busy tools do to the sound of calls. One JSON object a line. Needs
 * `dist/`. Beside each, playouts run in this process, which is the server's thread. Tools that compute without a pause, beside
 * one call:
 *
 *   nothing      no tool: what the machine does by itself
 *   starting     a first call of each worker: threads begin and load the agent's module
 *   busy         every worker computes for 2 s a call, and more calls wait
 *   on-loop      one such call of 2 s on the event loop itself, for comparison
 *
 * Ordinary asynchronous tools, beside twenty calls (`--only async` leaves the others out):
 *
 *   calls        no tool
 *   async        four of them in each call, all the time
 */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { systemClock } from '../dist/clock.js';
import { silentLog } from '../dist/observe/log.js';
import { TOOL_WORKERS_MAX } from '../dist/tool-limits.js';
import { WorkerTools } from '../dist/tool/worker-tools.js';
import { busyTools } from './async-tools.mjs';
import { commitOf, machineFields } from './machine.mjs';
import { PlayoutBeside } from './playout-beside.mjs';

const { values } = parseArgs({
  options: { seconds: { type: 'string', default: '8' }, only: { type: 'string' } },
});
const seconds = Number(values.seconds);
/** Of the phases `calls` and `async`. */
const CALLS = 20;
const TOOLS_PER_CALL = 4;
const CALL_MS = 2_000;
/** What goes with a call: a long conversation. */
const EVENTS = 1_000;

function compute(ms) {
  const endAtMs = performance.now() + ms;
  let rounds = 0;
  while (performance.now() < endAtMs) rounds += 1;
  return { rounds };
}

const folder = mkdtempSync(join(tmpdir(), 'earshot-bench-'));
const module = join(folder, 'bench.mjs');
writeFileSync(
  module,
  `import { defineAgent, defineTool } from 'earshot';
  const parameters = { type: 'object', properties: { ms: { type: 'number' } } };
  ${compute.toString()}
  const tool = defineTool({
    name: 'compute', description: 'Computes.', parameters, worker: true, execute: ({ ms }) => compute(ms),
  });
  export default defineAgent({ name: 'bench', instruction: 'Compute.', tools: [tool] });\n`,
);

const snapshot = {
  invocationId: 'inv',
  callSid: 'CA',
  appName: 'bench',
  userId: 'anonymous:CA',
  sessionId: 'CA',
  callerVerified: false,
  state: {},
  events: Array.from({ length: EVENTS }, (_, n) => ({
    id: `event-${n}`,
    invocationId: 'inv',
    author: 'bench',
    timestamp: n,
    content: {
      role: 'model',
      parts: [{ text: 'A sentence of some length, as an agent says them. '.repeat(4) }],
    },
    actions: { stateDelta: {}, artifactDelta: {} },
  })),
  runConfig: {},
  scopes: undefined,
};

/** How long this thread was ready to run and had no core, since it began; null where the system does not tell. */
function waitedForCoreMs() {
  const file = `/proc/self/task/${process.pid}/schedstat`;
  return existsSync(file) ? Number(readFileSync(file, 'utf8').split(' ')[1]) / 1e6 : null;
}

const tools = new WorkerTools({ clock: systemClock, log: silentLog });

function call(ms) {
  const { signal } = new AbortController();
  const getSecret = () => Promise.resolve(null);
  return tools.run({ module, tool: 'compute', args: { ms }, snapshot, getSecret, signal });
}

/** Carries `work` out beside playouts that have more to say than it lasts. */
async function measured(phase, work, playoutsMax = 1) {
  const playouts = [];
  for (let n = 0; n < playoutsMax; n += 1) {
    const playout = new PlayoutBeside();
    playout.say((seconds + 60) * 1_000);
    playouts.push(playout);
    // Spread over their schedule, as calls are.
    await sleep(1_000 / playoutsMax);
  }
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  const startedAtMs = performance.now();
  const waitedBeforeMs = waitedForCoreMs();
  const cpuBefore = process.cpuUsage();
  const calls = await work();
  const tookMs = Math.round(performance.now() - startedAtMs);
  const waitedMs = waitedForCoreMs();
  const { user, system } = process.cpuUsage(cpuBefore);
  const waitedForCore = waitedMs === null ? null : Math.round(waitedMs - waitedBeforeMs);
  // The turn in which a delay ends is the one that records it.
  await sleep(50);
  delay.disable();
  const loopDelayMs = {
    p50: delay.percentile(50) / 1e6,
    p99: delay.percentile(99) / 1e6,
    max: delay.max / 1e6,
  };
  for (const name of Object.keys(loopDelayMs)) loopDelayMs[name] = Math.round(loopDelayMs[name] * 10) / 10;
  const line = {
    bench: 'tools',
    phase,
    ...commitOf('.'),
    ...machineFields(),
    calls,
    tookMs,
    playouts: playoutsMax,
    cpuMs: Math.round((user + system) / 1_000),
    loopDelayMs,
    waitedForCoreMs: waitedForCore,
  };
  console.log(JSON.stringify({ ...line, ...tools.counts(), ...together(playouts) }));
}

/** Sums, and the least of what was left. */
function together(playouts) {
  const all = playouts.map((playout) => playout.end());
  const sum = (name) => all.reduce((total, each) => total + each[name], 0);
  const names = Object.keys(all[0]);
  const sums = Object.fromEntries(names.map((name) => [name, sum(name)]));
  return { ...sums, leftMinMs: Math.min(...all.map(({ leftMinMs }) => leftMinMs)) };
}

async function busy() {
  const endAtMs = performance.now() + seconds * 1_000;
  let calls = 0;
  // One more than there are workers, so that one always waits.
  const lines = Array.from({ length: TOOL_WORKERS_MAX + 1 }, async () => {
    while (performance.now() < endAtMs) {
      await call(CALL_MS);
      calls += 1;
    }
  });
  await Promise.all(lines);
  return calls;
}

async function beComputing() {
  await measured('nothing', () => sleep(seconds * 1_000, 0));
  await measured('starting', async () => {
    const first = await Promise.all(Array.from({ length: TOOL_WORKERS_MAX }, () => call(0)));
    return first.length;
  });
  await measured('busy', busy);
  await measured('on-loop', async () => {
    compute(CALL_MS);
    await sleep(500);
    return 1;
  });
}

async function beAsync() {
  await measured('calls', () => sleep(seconds * 1_000, 0), CALLS);
  const busyFor = () =>
    busyTools({ calls: CALLS, toolsPerCall: TOOLS_PER_CALL, signal: AbortSignal.timeout(seconds * 1_000) });
  await measured('async', busyFor, CALLS);
}

try {
  if (values.only !== 'async') await beComputing();
  await beAsync();
} finally {
  await tools.close();
  rmSync(folder, { recursive: true });
}
