/**
 * N simulated calls, both legs real sockets: the server on one core, the load on another, and beside it in the same run
 * a bare relay (see bare-relay.mjs) under the same load. Prints one JSON object a line as results come, then a table.
 * Timings never decide the exit code; only a run that broke does (a call refused or dropped, a server that died).
 */
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { checkOut } from './other-commit.mjs';
import { printTables, summaries } from './calls-report.mjs';
import { round } from './load/measurements.mjs';
import { commitOf, machineFields, pinned, unpinnedBecause } from './machine.mjs';
import { summarizeProfile } from './profile-summary.mjs';
import { SERVER_CORE, startTarget } from './target.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const LOAD_CORE = 1;
const MULAW_BYTES_PER_MS = 8;
/** The relay passes 24 kHz PCM16 on as it is. */
const PCM24K_BYTES_PER_MS = 48;

export const CALLS_HELP = `node bench/calls.mjs [options]   (build first: npm run build)
  --calls LIST      numbers of calls, by commas (50,100,200)
  --seconds N       measured seconds a run (10)
  --warmup N        seconds before that (10): by then the hot code is compiled
  --rounds N        how often each is run, alternating (1)
  --only TARGET     relay or server
  --together        run all targets at the same time, on the same core: on a machine that is shared with other
                    work only this makes CPU times comparable; latencies are then nobody's own
  --alike           also run the relay with as many messages to the carrier as the server has
  --against REV     also run this commit of the server, alternating with the present one
  --profile         CPU profile of the server: self time by function and file
  --help`;

function readOptions(args) {
  const { values } = parseArgs({
    args,
    options: {
      calls: { type: 'string', default: '50,100,200' },
      seconds: { type: 'string', default: '10' },
      warmup: { type: 'string', default: '10' },
      rounds: { type: 'string', default: '1' },
      only: { type: 'string' },
      alike: { type: 'boolean', default: false },
      together: { type: 'boolean', default: false },
      against: { type: 'string' },
      profile: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  const positive = (name, text) => {
    const value = Number(text);
    if (!(value > 0)) throw new Error(`--${name} takes positive numbers, not "${text}"`);
    return value;
  };
  if (values.only !== undefined && !['relay', 'server'].includes(values.only)) {
    throw new Error(`--only takes relay or server, not "${values.only}"`);
  }
  return {
    help: values.help,
    calls: values.calls.split(',').map((text) => Math.ceil(positive('calls', text))),
    seconds: positive('seconds', values.seconds),
    warmupMs: positive('warmup', values.warmup) * 1000,
    rounds: Math.ceil(positive('rounds', values.rounds)),
    only: values.only,
    alike: values.alike,
    together: values.together,
    against: values.against,
    profile: values.profile,
  };
}

function listTargets(options, otherFolder) {
  const server = (name, folder) => ({
    name,
    folder,
    script: join(folder, 'dist', 'main.js'),
    bytesPerMs: MULAW_BYTES_PER_MS,
    ...commitOf(folder),
  });
  const relay = {
    name: 'relay',
    folder: root,
    script: join(root, 'bench', 'bare-relay.mjs'),
    bytesPerMs: PCM24K_BYTES_PER_MS,
    ...commitOf(root),
  };
  const targets = [];
  if (options.only !== 'server') targets.push(relay);
  if (options.alike) targets.push({ ...relay, name: 'relay-alike', env: { RELAY_ALIKE: '1' } });
  if (options.only !== 'relay') {
    if (otherFolder !== undefined) targets.push(server('base', otherFolder));
    targets.push(server('server', root));
  }
  const missing = targets.find((target) => !existsSync(target.script));
  if (missing !== undefined) throw new Error(`${missing.script} is missing: build first (npm run build)`);
  return targets;
}

/** The generator's process; `next` resolves to its next message, rejects when it dies. */
function startGenerator() {
  const script = fileURLToPath(new URL('load/generator.mjs', import.meta.url));
  const [command, ...args] = pinned(LOAD_CORE, [process.execPath, script]);
  const child = spawn(command, args, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  const died = new Promise((_resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code) => reject(new Error(`the load generator ended with code ${code}`)));
  });
  died.catch(() => {});
  const next = () => Promise.race([new Promise((resolve) => child.once('message', resolve)), died]);
  return { child, next };
}

/** A profiled server may use both cores: on one, V8's sampling thread would run mostly while the main thread sleeps. */
function launch(options, dataFolder) {
  if (!options.profile) return { nodeArgs: [], cores: SERVER_CORE };
  const nodeArgs = ['--cpu-prof', '--cpu-prof-interval=500', `--cpu-prof-dir=${join(dataFolder, 'profile')}`];
  return { nodeArgs, cores: `${SERVER_CORE},${LOAD_CORE}` };
}

async function runOnce(target, calls, options) {
  const dataFolder = mkdtempSync(join(tmpdir(), 'earshot-bench-'));
  const generator = startGenerator();
  let server;
  let hasArrived = false;
  const arrive = () => {
    hasArrived = true;
    return options.arrive();
  };
  try {
    const { port: modelPort } = await generator.next();
    server = await startTarget({ ...target, ...launch(options, dataFolder) }, { modelPort, dataFolder });
    await arrive();
    generator.child.send({
      type: 'run',
      serverUrl: server.url,
      serverPid: server.pid,
      serverCore: SERVER_CORE,
      calls,
      warmupMs: options.warmupMs,
      seconds: options.seconds,
      bytesPerMs: target.bytesPerMs,
    });
    const ended = server.exit.then((how) => ({ type: 'failed', reason: `the server ended: ${how}` }));
    const answer = await Promise.race([generator.next(), ended]);
    if (answer.type === 'failed') throw new Error(answer.reason);
    const stopped = await server.stop();
    const profile = options.profile
      ? summarizeProfile({
          profileFolder: join(dataFolder, 'profile'),
          folder: target.folder,
          windowUs: answer.result.windowUs,
          functions: 30,
          files: 15,
        })
      : undefined;
    return resultOf({
      target,
      calls,
      options,
      result: answer.result,
      stopped,
      profile,
      output: server.output,
    });
  } catch (error) {
    throw new Error(`${error.message}\n${server?.output ?? ''}`.trimEnd(), { cause: error });
  } finally {
    // The others do not wait for one that could not start.
    if (!hasArrived) void arrive();
    generator.child.kill();
    await server?.stop();
    rmSync(dataFolder, { recursive: true, force: true });
  }
}

/** A run that broke is told and the rest goes on: `{ target, calls, result?, fault? }`. */
async function tryOnce(target, calls, options) {
  try {
    const result = await runOnce(target, calls, options);
    return { target: target.name, calls, result, fault: faultOf(result) };
  } catch (error) {
    return { target: target.name, calls, fault: error.message };
  }
}

function resultOf({ target, calls, options, result, stopped, profile, output }) {
  const { serverCpuMs, serverUserMs, serverCoreMs, windowUs, dryMs, residentKb, ...rest } = result;
  const callSeconds = calls * result.seconds;
  const isPinned = unpinnedBecause === undefined && !options.profile;
  return {
    bench: 'calls',
    target: target.name,
    commit: target.commit,
    dirty: target.dirty,
    ...machineFields(),
    pinned: isPinned,
    round: options.turn,
    together: options.together,
    calls,
    cpuMsPerCallSecond: round(serverCpuMs / callSeconds),
    userShare: round(serverUserMs / serverCpuMs),
    coreShare: round(serverCpuMs / (result.seconds * 1000)),
    othersOnCoreShare: isPinned
      ? round(Math.max(0, serverCoreMs - serverCpuMs) / (result.seconds * 1000))
      : null,
    dryMsPerCallMinute: round((dryMs * 60) / callSeconds),
    residentMb: Object.fromEntries(
      Object.entries(residentKb).map(([when, kb]) => [when, Math.round(kb / 102.4) / 10]),
    ),
    windowUs,
    ...rest,
    stopped,
    serverLog: logLines(output),
    ...(profile === undefined ? {} : { profile }),
  };
}

/** The last few lines that the server logged (at `warn` and above); its banner is left out. */
function logLines(output) {
  return output
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .slice(-5)
    .map((line) => line.slice(0, 300));
}

/** What makes a run broken, as text; undefined for a sound one. */
function faultOf(result) {
  if (result.callsDropped > 0) return `${result.callsDropped} calls were dropped`;
  if (result.frameToModelMs.count === 0) return 'no frame of a caller reached the model';
  if (result.stopped !== 'code 0') return `SIGTERM ended the server with ${result.stopped}`;
  return undefined;
}

/** Runs that go together wait here until all servers are up, so that their measured windows are the same. */
function meetingOf(count) {
  let missing = count;
  let begin;
  const all = new Promise((resolve) => {
    begin = resolve;
  });
  return () => {
    missing -= 1;
    if (missing === 0) begin();
    return all;
  };
}

/** Prints what runs came to; returns how many were broken. */
function tellOutcomes(outcomes) {
  for (const { result, fault } of outcomes) {
    if (result !== undefined) console.log(JSON.stringify({ ...result, fault: fault ?? null }));
  }
  const broken = outcomes.filter(({ fault }) => fault !== undefined);
  for (const { target, calls, fault } of broken) console.error(`${target}, ${calls} calls: ${fault}`);
  return broken.length;
}

export async function runCalls(args) {
  const options = readOptions(args);
  if (options.help) {
    console.log(CALLS_HELP);
    return 0;
  }
  if (unpinnedBecause !== undefined) console.error(`not pinned to cores: ${unpinnedBecause}`);
  const other = options.against === undefined ? undefined : checkOut(root, options.against);
  const results = [];
  let faults = 0;
  try {
    const targets = listTargets(options, other?.folder);
    for (let turn = 1; turn <= options.rounds; turn += 1) {
      for (const calls of options.calls) {
        for (const together of options.together ? [targets] : targets.map((target) => [target])) {
          const arrive = meetingOf(together.length);
          const runs = together.map((target) => tryOnce(target, calls, { ...options, turn, arrive }));
          const outcomes = await Promise.all(runs);
          for (const { result } of outcomes) if (result !== undefined) results.push(result);
          faults += tellOutcomes(outcomes);
        }
      }
    }
  } finally {
    other?.remove();
  }
  const totals = results.length === 0 ? [] : summaries(results);
  for (const total of totals) console.log(JSON.stringify(total));
  if (results.length > 0) printTables(results, totals);
  return faults === 0 ? 0 : 1;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  process.exitCode = await runCalls(process.argv.slice(2)).catch((error) => {
    console.error(error.message);
    return 1;
  });
}
