/**
 * `npm run call`: plays a caller's recording through a server in real time, shows both sides while it lasts, writes
 * what the caller heard and prints the transcript with what the call was like. The phone runs in this process, so its
 * pacing does not depend on the server; its own lateness is among the figures. Takes the server's tokens and address
 * from `.env` and the environment. Exit code 0 after a clean call, else 1.
 */
import { readFileSync, realpathSync } from 'node:fs';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse as parseEnvFile } from 'dotenv';
import { sleep, systemClock, type Clock } from '../clock.js';
import { errorText, TelephonyError } from '../errors.js';
import { AUDIBLE_DB, createCallDisplay, LevelProbe, type CallDisplay } from './call-display.js';
import { CALL_HELP, readCallOptions, type CallOptions } from './call-options.js';
import { carrierLines, statisticsTable, transcriptLines } from './call-report.js';
import { readiness, startCallServer, type CallServer } from './call-server.js';
import { callStatistics } from './call-statistics.js';
import { fetchCallView, type CallView } from './call-view.js';
import { Phone } from './phone.js';
import type { PhoneRecord } from './phone-record.js';
import { type FixtureCaller, readFixtureCaller } from './fixture-caller.js';
import { checkWritable, readCallerSound, writeWav } from './sound-file.js';

export interface CallCommandDeps {
  readonly clock: Clock;
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Prints one line (or several). */
  readonly print: (text: string) => void;
  /** Where a live display may draw. */
  readonly screen: NodeJS.WriteStream;
  /** The built server, for a call that has to start one. */
  readonly serverEntry: string;
  /** Aborts when the caller is to hang up early. */
  readonly interrupt: AbortSignal;
}

const TICK_MS = 100;
const VIEW_INTERVAL_MS = 500;
/** After the call the server may need a moment to settle the last message. */
const FINAL_VIEW_TRIES = 10;
const FINAL_VIEW_INTERVAL_MS = 200;

/** Runs one call; returns the exit code. */
export async function runCallCommand(deps: CallCommandDeps): Promise<number> {
  let server: CallServer | undefined;
  try {
    const given = readCallOptions(deps.argv);
    if (given === 'help') {
      deps.print(CALL_HELP);
      return 0;
    }
    const options = { ...given, file: asGiven(given.file, deps.env), out: asGiven(given.out, deps.env) };
    const caller = await readCaller(options);
    await checkWritable(options.out);
    server = await findServer(options, deps);
    return await placeCall({ ...options, keys: caller.keys }, caller.sound, server, deps);
  } catch (error) {
    deps.print(`call: ${errorText(error)}`);
    return 1;
  } finally {
    await server?.stop();
  }
}

/** `npm run` goes to the package's folder; a path is meant from where npm was called. */
function asGiven(path: string, env: CallCommandDeps['env']): string {
  const from = env['INIT_CWD'];
  return from === undefined ? path : resolve(from, path);
}

/** A fixture's caller presses the keys that the fixture holds, and those of the command line too. */
async function readCaller({ file, keys }: CallOptions): Promise<FixtureCaller> {
  if (!/\.(ndjson|jsonl)$/i.test(file)) return { sound: await readCallerSound(file), keys };
  const caller = await readFixtureCaller(file);
  return { sound: caller.sound, keys: [...caller.keys, ...keys].sort((a, b) => a.atMs - b.atMs) };
}

async function findServer(options: CallOptions, deps: CallCommandDeps): Promise<CallServer> {
  const url = options.url ?? `http://127.0.0.1:${deps.env['PORT'] ?? '8080'}`;
  const state = await readiness(url);
  if (state === 'ready') return { url, logFile: undefined, stop: () => Promise.resolve() };
  if (state === 'busy') throw new TelephonyError('phone_failed', `the server at ${url} is draining or full`);
  if (options.url !== undefined) throw new TelephonyError('phone_failed', `no server is ready at ${url}`);
  deps.print(`No server at ${url}; starting one for this call.`);
  const { clock, env, serverEntry: entry, interrupt: signal } = deps;
  return startCallServer({ clock, entry, env, signal });
}

async function placeCall(
  options: CallOptions,
  voice: Uint8Array,
  server: CallServer,
  deps: CallCommandDeps,
): Promise<number> {
  const { clock, env, print, interrupt } = deps;
  const phone = new Phone({
    clock,
    url: server.url,
    publicUrl: env['PUBLIC_URL'],
    authToken: env['TWILIO_AUTH_TOKEN'],
    accountSid: env['TWILIO_ACCOUNT_SID'],
    agent: options.agent,
    from: options.from,
    keys: options.keys,
    voice,
  });
  const hangUp = (): void => phone.hangUp();
  interrupt.addEventListener('abort', hangUp);
  if (interrupt.aborted) throw new TelephonyError('phone_failed', 'interrupted before the call');
  const display = options.display ? createCallDisplay(deps.screen, print) : undefined;
  let failure: unknown;
  const token = consoleToken(server.url, env);
  const watching = watch({ phone, options, display, url: server.url, token, clock });
  try {
    await phone.call();
  } catch (error) {
    failure = error;
  } finally {
    interrupt.removeEventListener('abort', hangUp);
  }
  await watching;
  display?.done();
  const record = phone.record();
  const endReason = await report({ record, url: server.url, token, clock, print });
  if (record.durationMs > 0) {
    // A disk that has filled up meanwhile costs the recording, not the transcript.
    await writeHeard(options, record).then(
      () => print(`What the caller heard: ${options.out}`),
      (error: unknown) => (failure ??= error),
    );
  }
  if (failure !== undefined) print(`call: ${errorText(failure)}`);
  else if (record.streams.length === 0) print('call: the server took the call but opened no media stream');
  else if (endReason !== undefined && FAILED_ENDS.has(endReason))
    print(`call: the call failed: ${endReason}`);
  else return 0;
  if (server.logFile !== undefined) print(`The server's log is in ${server.logFile}.`);
  return 1;
}

interface WatchOptions {
  readonly phone: Phone;
  readonly options: CallOptions;
  readonly display: CallDisplay | undefined;
  readonly url: string;
  readonly token: string | undefined;
  readonly clock: Clock;
}

/** Draws the display, and hangs up once the caller has nothing left to say and the agent has long been silent. */
async function watch({ phone, options, display, url, token, clock }: WatchOptions): Promise<void> {
  const probe = new LevelProbe();
  let view: CallView | undefined;
  let asking = false;
  let nextViewMs = clock.nowMs();
  let quietSinceMs = clock.nowMs();
  const lastKeyMs = options.keys.at(-1)?.atMs ?? 0;
  while (phone.state !== 'ended') {
    const now = clock.nowMs();
    const busy = phone.hasVoiceLeft || phone.elapsedMs < lastKeyMs || phone.state !== 'talking';
    if (busy || probe.read(phone).heardDb > AUDIBLE_DB) quietSinceMs = now;
    if (now - quietSinceMs >= options.lingerMs) phone.hangUp();
    if (display !== undefined && !asking && now >= nextViewMs) {
      asking = true;
      nextViewMs = now + VIEW_INTERVAL_MS;
      void fetchCallView(url, phone.callSid, token).then((answer) => {
        asking = false;
        if (!('missing' in answer)) view = answer;
      });
    }
    display?.update(phone, view);
    await sleep(clock, TICK_MS);
  }
}

async function writeHeard(options: CallOptions, record: PhoneRecord): Promise<void> {
  if (options.stereo) await writeWav(options.out, record.said, record.heard);
  else await writeWav(options.out, record.heard);
}

interface ReportOptions {
  readonly record: PhoneRecord;
  readonly url: string;
  readonly token: string | undefined;
  readonly clock: Clock;
  readonly print: (text: string) => void;
}

/** The server's end reasons that mean that it could not hold the call. */
const FAILED_ENDS: ReadonlySet<string> = new Set([
  'model_unreachable',
  'model_lost',
  'carrier_lost',
  'internal_error',
]);

/** Returns the server's reason, if it gave one. */
async function report({ record, url, token, clock, print }: ReportOptions): Promise<string | undefined> {
  const view = await finalView(url, record.callSid, token, clock);
  print('');
  if ('missing' in view) print(`No transcript: ${view.missing}.`);
  else for (const line of transcriptLines(view)) print(line);
  for (const line of carrierLines(record)) print(line);
  print('');
  print(statisticsTable(callStatistics(record)));
  for (const warning of record.warnings) print(`  warning: ${warning}`);
  if (record.warningsMore > 0) print(`  and ${record.warningsMore} more warnings`);
  const reason = 'missing' in view || typeof view.endReason !== 'string' ? undefined : view.endReason;
  print('');
  print(`Ended by the ${record.endedBy ?? 'caller'}${reason === undefined ? '' : `, reason ${reason}`}.`);
  return reason;
}

async function finalView(
  url: string,
  callSid: string,
  token: string | undefined,
  clock: Clock,
): Promise<CallView | { readonly missing: string }> {
  let view = await fetchCallView(url, callSid, token);
  for (let tries = 1; tries < FINAL_VIEW_TRIES && !('missing' in view) && view.state !== 'ended'; tries++) {
    await sleep(clock, FINAL_VIEW_INTERVAL_MS);
    view = await fetchCallView(url, callSid, token);
  }
  return view;
}

/** The token never travels in the clear to another machine. */
function consoleToken(url: string, env: Readonly<Record<string, string | undefined>>): string | undefined {
  const { protocol, hostname } = new URL(url);
  const safe = protocol === 'https:' || /^(?:localhost|127\.[\d.]+|\[::1\])$/.test(hostname);
  return safe ? env['CONSOLE_TOKEN'] : undefined;
}

function readEnv(): Record<string, string | undefined> {
  let fromFile: Record<string, string> = {};
  try {
    fromFile = parseEnvFile(readFileSync('.env'));
  } catch {
    // A server and its caller need no .env.
  }
  return { ...fromFile, ...process.env };
}

async function main(): Promise<void> {
  const interrupt = new AbortController();
  // The first signal hangs up, and the recording is still written; a second one gives up at once.
  const onSignal = (): void => {
    if (interrupt.signal.aborted) process.exit(130);
    interrupt.abort();
  };
  process.on('SIGINT', onSignal);
  process.on('SIGTERM', onSignal);
  process.exitCode = await runCallCommand({
    clock: systemClock,
    argv: process.argv.slice(2),
    env: readEnv(),
    print: (text) => void process.stdout.write(`${text}\n`),
    screen: process.stdout,
    serverEntry: fileURLToPath(new URL('../main.js', import.meta.url)),
    interrupt: interrupt.signal,
  });
  process.removeListener('SIGINT', onSignal);
  process.removeListener('SIGTERM', onSignal);
}

if (process.argv[1] !== undefined && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url))
  await main();
