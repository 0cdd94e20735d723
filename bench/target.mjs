/**
 * A server under test as a child process on core 0: the product, the bare relay, or another commit of the product. It
 * is known from outside only: environment in, the contract's doors, SIGTERM to end.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { pinned } from './machine.mjs';

const READY_TIMEOUT_MS = 20_000;
const STOP_TIMEOUT_MS = 15_000;
const OUTPUT_KEPT_CHARS = 4_000;
export const SERVER_CORE = 0;

/** Empty means unset to the server, and an empty variable keeps a developer's `.env` from deciding. */
const UNSET = [
  'PUBLIC_URL',
  'CONSOLE_TOKEN',
  'METRICS_TOKEN',
  'AGENT',
  'GOOGLE_API_KEY',
  'GOOGLE_GENAI_USE_ENTERPRISE',
  'GOOGLE_GENAI_USE_VERTEXAI',
  'GEMINI_MODEL',
  'TWILIO_ACCOUNT_SID',
  'TWILIO_AUTH_TOKEN',
  'TWILIO_API_KEY',
  'TWILIO_API_SECRET',
  'TWILIO_SHARED_KEY',
  'MAX_CALL_MINUTES',
  'RECORD_CALLS',
  'CALL_WEBHOOK_URL',
  'LOG_PRETTY',
  'EARSHOT_DEBUG',
];

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}

/** The environment of the contract: loopback, no token, no account, all calls admitted. */
function environment({ port, modelPort, dataFolder }) {
  const { PATH, HOME } = process.env;
  return {
    PATH,
    HOME,
    ...Object.fromEntries(UNSET.map((name) => [name, ''])),
    HOST: '127.0.0.1',
    PORT: String(port),
    MODEL: 'gemini',
    GEMINI_API_KEY: 'bench',
    GOOGLE_GEMINI_BASE_URL: `http://127.0.0.1:${modelPort}`,
    LOG_LEVEL: 'warn',
    MAX_CALLS: '10000',
    IDLE_REPROMPT_SECONDS: '0',
    GREETING_PROTECTION_SECONDS: '0',
    DATA_DIR: dataFolder,
    DATABASE_URL: `sqlite:${dataFolder}/earshot.db`,
  };
}

export class Target {
  #child;
  #exit;
  #output = '';
  url;

  constructor(child, url) {
    this.#child = child;
    this.url = url;
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8');
      stream.on('data', (text) => {
        this.#output = (this.#output + text).slice(-OUTPUT_KEPT_CHARS);
      });
    }
    this.#exit = new Promise((resolve) => {
      child.once('error', (error) => resolve(String(error)));
      child.once('exit', (code, signal) => resolve(signal ?? `code ${code}`));
    });
  }

  get pid() {
    return this.#child.pid;
  }

  /** The last the server wrote. */
  get output() {
    return this.#output;
  }

  get ended() {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  /** Resolves when the server is gone, to how it ended. */
  get exit() {
    return this.#exit;
  }

  /** SIGTERM, and SIGKILL where that does not end it. */
  async stop() {
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), STOP_TIMEOUT_MS);
    this.#child.kill('SIGTERM');
    const ended = await this.#exit;
    clearTimeout(timer);
    return ended;
  }
}

/** Starts `{ folder, script, nodeArgs, cores, env }` and waits for `GET /healthz` to say 200. */
export async function startTarget({ folder, script, nodeArgs, cores, env = {} }, { modelPort, dataFolder }) {
  const port = await freePort();
  const [command, ...args] = pinned(cores, [process.execPath, ...nodeArgs, script]);
  const child = spawn(command, args, {
    cwd: folder,
    env: { ...environment({ port, modelPort, dataFolder }), ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const target = new Target(child, `http://127.0.0.1:${port}`);
  const giveUpAt = performance.now() + READY_TIMEOUT_MS;
  while (!target.ended && performance.now() < giveUpAt) {
    const answer = await fetch(`${target.url}/healthz`).catch(() => undefined);
    await answer?.arrayBuffer();
    if (answer?.ok === true) return target;
    await sleep(50);
  }
  const ended = target.ended ? 'it ended' : 'no answer in time';
  await target.stop();
  throw new Error(`${script} did not become ready (${ended}):\n${target.output}`);
}
