/**
 * The process: reads the environment, starts the server, says where it is, and on SIGTERM, SIGINT or SIGHUP drains and exits 0.
 * Errors for which nobody waits are logged, and too many of them make it drain and exit 1 (`stray-errors.ts`).
 * A second signal, a second later or more, cuts what is left, a third one ends it as it stands; both exit 1. What keeps it from
 * starting is a line for each fault, and exit 78 where something has to be mended first, 1 where starting again may help.
 */
import { config as loadDotenv } from 'dotenv';
import { systemClock, within } from './clock.js';
import { type Config, readConfig, startWarnings } from './config.js';
import { lookAtDataFolder } from './data-folder.js';
import { AppError, complaint, ConfigError, StoreError } from './errors.js';
import { HURRIED_CLOSE_MAX_MS } from './limits.js';
import type { Log } from './observe/log.js';
import { createLog } from './observe/pino-log.js';
import { type RunningServer, startServer } from './server.js';
import { StrayErrors } from './stray-errors.js';

/** EX_CONFIG of sysexits(3). */
const EXIT_MEND_FIRST = 78;
const EXIT_FAILED = 1;
/** A signal to npm's whole process group arrives twice, once by itself and once passed on by npm: that is one wish. */
const SAME_SIGNAL_MS = 1_000;

function readEnvironment(): Config {
  loadDotenv({ quiet: true });
  return readConfig(process.env);
}

function complain(error: unknown): never {
  const known = error instanceof AppError;
  process.stderr.write(complaint('earshot', error));
  if (!known && error instanceof Error) process.stderr.write(`${error.stack ?? ''}\n`);
  const needsMending = error instanceof ConfigError || (error instanceof StoreError && !error.retryable);
  process.exit(needsMending ? EXIT_MEND_FIRST : EXIT_FAILED);
}

function announce(server: RunningServer, config: Config, log: Log): void {
  log.info({ url: server.url, model: config.MODEL, agent: server.agent }, 'earshot is ready for calls');
  for (const warning of startWarnings(config)) log.warn({}, warning);
  // With the database elsewhere and no recordings nothing is written there, so that this alone keeps no server from starting.
  const { fault } = lookAtDataFolder(config.DATA_DIR);
  if (fault !== undefined) log.warn({ fault }, 'nothing can be written into DATA_DIR; nothing needs to be');
  process.stdout.write(
    [
      '',
      `  Earshot answers at ${server.url}/twilio/voice (${config.MODEL} model, agent ${server.agent}).`,
      `  Place a call:  npm run call -- fixtures/callers/barge-in.wav${config.PORT === 8080 ? '' : ` --url ${server.url}`}`,
      `  Watch calls:   ${server.url}/calls  and  ${server.url}/metrics  (a console page is not built yet)`,
      '',
    ].join('\n') + '\n',
  );
}

/** What a signal does: the first one drains, the second one waits for nobody any more. */
class Stopping {
  readonly #server: RunningServer;
  readonly #log: Log;
  #askedAtMs: number | undefined;
  #isDraining = false;
  #exitCode = 0;
  #isHurried = false;

  constructor(server: RunningServer, log: Log) {
    this.#server = server;
    this.#log = log;
  }

  ask(signal: NodeJS.Signals): void {
    const nowMs = systemClock.nowMs();
    if (this.#askedAtMs !== undefined && nowMs - this.#askedAtMs < SAME_SIGNAL_MS) return;
    const isFirst = this.#askedAtMs === undefined;
    this.#askedAtMs = nowMs;
    if (this.#isHurried) process.exit(EXIT_FAILED);
    if (isFirst) {
      this.#log.info({ signal }, 'asked to stop');
      return this.#begin();
    }
    this.#isHurried = true;
    this.#log.warn({ signal }, 'asked to stop once more: calls and runs that are going on are cut');
    this.#cut().catch(complain);
  }

  /** As for a signal, but whoever watches the process hears that it has failed. */
  fail(): void {
    this.#exitCode = EXIT_FAILED;
    this.#begin();
  }

  #begin(): void {
    if (this.#isDraining) return;
    this.#isDraining = true;
    this.#drain().catch(complain);
  }

  async #drain(): Promise<void> {
    await this.#server.drain();
    if (this.#isHurried) return;
    await this.#server.close();
    if (this.#isHurried) return;
    this.#log.info({}, 'earshot has stopped');
    process.exit(this.#exitCode);
  }

  /** Cutting ends the drain, too. */
  async #cut(): Promise<never> {
    await within(systemClock, HURRIED_CLOSE_MAX_MS, this.#server.close());
    process.exit(EXIT_FAILED);
  }
}

async function main(): Promise<void> {
  // A reader of our output that goes away must not take the calls with it.
  process.stdout.on('error', () => {});
  const config = readEnvironment();
  const log = createLog({ level: config.LOG_LEVEL, pretty: config.LOG_PRETTY });
  let stopping: Stopping | undefined;
  const strayErrors = new StrayErrors({
    clock: systemClock,
    log,
    onGivenUp: () => (stopping === undefined ? process.exit(EXIT_FAILED) : stopping.fail()),
  });
  strayErrors.watch(process);
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) {
    process.on(signal, () => {
      if (stopping !== undefined) return stopping.ask(signal);
      log.info({ signal }, 'asked to stop before it was ready');
      process.exit(0);
    });
  }
  const server = await startServer(config, {
    clock: systemClock,
    log,
    strayErrors: () => strayErrors.counts,
  });
  stopping = new Stopping(server, log);
  announce(server, config, log);
}

main().catch(complain);
