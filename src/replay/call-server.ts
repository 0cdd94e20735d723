/**
 * The server that a call goes to when the command was given none: the local one if it is ready, else a child process
 * of the built server on a free port, with its log in a file, ended by SIGTERM and its drain awaited, bounded.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { sleep, type Clock } from '../clock.js';
import { TelephonyError } from '../errors.js';
import { CALL_SERVER_READY_MAX_MS, CALL_SERVER_STOP_MAX_MS } from '../limits.js';
import { makeFolder } from '../make-folder.js';

export interface CallServer {
  readonly url: string;
  /** Undefined for a server that was running already. */
  readonly logFile: string | undefined;
  /** Ends a server that was started here; a no-op otherwise. Idempotent. */
  stop(): Promise<void>;
}

export interface StartedServerOptions {
  readonly clock: Clock;
  /** The server's entry, such as `dist/main.js`. */
  readonly entry: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly signal: AbortSignal;
}

const POLL_INTERVAL_MS = 100;
const READY_TIMEOUT_MS = 1_000;
const LOG_TAIL_LINES = 10;

/** `ready`, `busy` (there, but draining or full), or `absent`. */
export async function readiness(url: string): Promise<'ready' | 'busy' | 'absent'> {
  try {
    const response = await fetch(`${url}/readyz`, { signal: AbortSignal.timeout(READY_TIMEOUT_MS) });
    await response.arrayBuffer();
    if (response.status === 503) return 'busy';
    return response.status === 200 ? 'ready' : 'absent';
  } catch {
    return 'absent';
  }
}

/** A port that was free a moment ago. */
function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once('error', reject);
    probe.listen(0, '127.0.0.1', () => {
      const address = probe.address();
      probe.close(() => {
        if (typeof address === 'object' && address !== null) resolve(address.port);
        else reject(new Error('no port'));
      });
    });
  });
}

/** Starts a server and waits until it takes calls. Throws TelephonyError with the tail of its log if it does not. */
export async function startCallServer(options: StartedServerOptions): Promise<CallServer> {
  const { clock, entry, env, signal } = options;
  const folder = env['DATA_DIR'] ?? 'data';
  makeFolder(folder);
  const logFile = join(folder, 'call-server.log');
  const port = await freePort();
  const log = openSync(logFile, 'w', 0o600);
  // A group of its own, so that Ctrl-C reaches the command first: it hangs up, and then stops the server.
  const child = spawn(process.execPath, [entry], {
    env: { ...env, HOST: '127.0.0.1', PORT: String(port) },
    stdio: ['ignore', log, log],
    detached: true,
  });
  closeSync(log);
  let failure: Error | undefined;
  child.once('error', (error) => (failure = error));
  const killAtExit = (): void => void child.kill('SIGKILL');
  process.once('exit', killAtExit);
  const stop = async (): Promise<void> => {
    await stopChild(child, clock);
    process.removeListener('exit', killAtExit);
  };
  const url = `http://127.0.0.1:${port}`;
  const deadline = clock.nowMs() + CALL_SERVER_READY_MAX_MS;
  while ((await readiness(url)) !== 'ready') {
    const gone = failure !== undefined || hasExited(child);
    if (gone || signal.aborted || clock.nowMs() > deadline) {
      await stop();
      const why = signal.aborted
        ? 'was stopped'
        : gone
          ? 'ended before it took calls'
          : 'did not get ready in time';
      throw new TelephonyError(
        'phone_failed',
        `the server ${why}; ${logFile} ends with:\n${logTail(logFile)}`,
      );
    }
    await sleep(clock, POLL_INTERVAL_MS);
  }
  return { url, logFile, stop };
}

function hasExited(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null;
}

async function stopChild(child: ChildProcess, clock: Clock): Promise<void> {
  if (child.pid === undefined || hasExited(child)) return;
  await new Promise<void>((resolve) => {
    const timer = clock.setTimer(CALL_SERVER_STOP_MAX_MS, () => child.kill('SIGKILL'));
    child.once('exit', () => {
      timer.cancel();
      resolve();
    });
    child.kill('SIGTERM');
  });
}

function logTail(file: string): string {
  return readFileSync(file, 'utf8').trimEnd().split('\n').slice(-LOG_TAIL_LINES).join('\n');
}
