/**
 * `npm run store -- …`: what an operator does with stored conversations: forget a caller, let old ones go, take a copy and
 * put one back. Works on the database that the environment names, while the server runs or not. Exits as `EXIT` says, with one line on what is wrong.
 */
import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
import { pipeline } from 'node:stream/promises';
import { parseArgs } from 'node:util';
import { config as loadDotenv } from 'dotenv';
import { systemClock } from './clock.js';
import { readConfig } from './config.js';
import { complaint, ConfigError, errorText, StoreError } from './errors.js';
import { silentLog } from './observe/log.js';
import { openStore } from './store/open-store.js';
import { prune } from './store/retention.js';
import type { DeletedCounts, Store } from './store/store.js';

const HELP = `Stored conversations.

  npm run store -- forget USER [--app NAME]     delete everything of one caller
  npm run store -- prune DAYS                   delete sessions without activity for so many days
  npm run --silent store -- export [--app NAME] [--user USER]   write sessions as JSON lines
  npm run store -- import FILE                  read them back; sessions that are there stay as they are
  npm run store -- settle KEY --app NAME --reason TEXT --response JSON [--by NAME]   an open ledger entry was done
  npm run store -- release KEY --app NAME --reason TEXT [--by NAME]    it was certainly not done

USER is a caller's number, such as +15550100001, or a user id of the text modes.
`;
/** As in sysexits.h. */
const EXIT = {
  /** The command line is wrong. */
  usage: 64,
  /** A line of the file is not one of an export, or holds what cannot be stored. */
  data: 65,
  /** The file cannot be read. */
  noInput: 66,
  /** The database did not do it; another try may help. */
  failed: 1,
  /** The database or its address is wrong. */
  config: 78,
} as const;

/** Something that is wrong with the command, and what it exits with. */
class CommandError extends Error {
  readonly exit: number;

  constructor(exit: number, message: string, options?: ErrorOptions) {
    super(message, options);
    this.exit = exit;
  }
}

/** Why a file cannot be read, by the code of the operating system. */
const FILE_FAULTS: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  EISDIR: 'it is a folder',
  EACCES: 'it may not be read',
  EPERM: 'it may not be read',
};

interface Arguments {
  readonly command: string;
  readonly subject: string | undefined;
  readonly app: string | undefined;
  readonly user: string | undefined;
  readonly reason: string | undefined;
  readonly response: string | undefined;
  readonly by: string | undefined;
}

function readArguments(args: readonly string[]): Arguments | 'help' {
  try {
    const { values, positionals } = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        app: { type: 'string' },
        user: { type: 'string' },
        reason: { type: 'string' },
        response: { type: 'string' },
        by: { type: 'string' },
        help: { type: 'boolean', default: false },
      },
    });
    const [command, subject] = positionals;
    if (values.help || command === undefined || command === 'help') return 'help';
    const { app, user, reason, response, by } = values;
    return { command, subject, app, user, reason, response, by };
  } catch (error) {
    throw new CommandError(EXIT.usage, `${errorText(error)} (--help tells the commands)`);
  }
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

function printCounts({ sessions, events, stateKeys, artifactVersions, memoryFacts }: DeletedCounts): void {
  print(
    `deleted: ${sessions} sessions, ${events} events, ${stateKeys} state keys, ${artifactVersions} artifacts, ${memoryFacts} memories`,
  );
}

function required(subject: string | undefined, what: string): string {
  if (subject !== undefined && subject !== '') return subject;
  throw new CommandError(EXIT.usage, `name ${what} (--help tells the commands)`);
}

/** As fast as they are taken. Whoever reads only the beginning, as `head`, has what was wanted. */
async function write(lines: AsyncIterable<string>): Promise<void> {
  try {
    await pipeline(
      lines,
      async function* (each) {
        for await (const line of each) yield `${line}\n`;
      },
      process.stdout,
      { end: false },
    );
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EPIPE')) throw error;
  }
}

/** Rejects where the file cannot be read; readline by itself would not tell its reader (its documentation, "asyncIterator"). */
async function* linesOf(path: string): AsyncGenerator<string> {
  const input = createReadStream(path);
  const lines = createInterface({ input, crlfDelay: Infinity });
  let failure: Error | undefined;
  input.on('error', (error) => {
    failure = error;
    lines.close();
  });
  try {
    yield* lines;
  } catch (error) {
    // Some versions of readline do tell.
    failure = error instanceof Error ? error : new Error(errorText(error));
  }
  if (failure === undefined) return;
  const why = 'code' in failure ? FILE_FAULTS[String(failure.code)] : undefined;
  throw new CommandError(EXIT.noInput, `${path} cannot be read: ${why ?? errorText(failure)}`, {
    cause: failure,
  });
}

/** Of what a person has found out about an open entry of the ledger. */
async function close(store: Store, args: Arguments): Promise<void> {
  const { command, subject, app, reason, response, by } = args;
  const isSettled = command === 'settle';
  if (!isSettled && response !== undefined)
    throw new CommandError(EXIT.usage, '--response belongs to settle: what was not done has no answer');
  const outcome = await store.closeEntry({
    key: required(subject, 'a key of the ledger'),
    appName: required(app, 'its app with --app'),
    reason: required(reason, 'the reason with --reason'),
    ...(by !== undefined && { by }),
    ...(isSettled && {
      response: jsonObject(required(response, 'what repeats are answered with --response')),
    }),
  });
  if (outcome === 'unknown') throw new CommandError(EXIT.data, 'there is no such entry in the ledger');
  if (outcome === 'notOpen') throw new CommandError(EXIT.data, 'the entry is not open: it is done already');
  print(isSettled ? 'settled' : 'released');
}

function jsonObject(text: string): Readonly<Record<string, unknown>> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    value = undefined;
  }
  if (typeof value === 'object' && value !== null && !Array.isArray(value))
    return value as Readonly<Record<string, unknown>>;
  throw new CommandError(EXIT.usage, '--response must be a JSON object');
}

async function run(store: Store, args: Arguments): Promise<void> {
  const { command, subject, app, user } = args;
  switch (command) {
    case 'settle':
    case 'release':
      return close(store, args);
    case 'forget':
      printCounts(
        await store.deleteUser(app === undefined ? 'all' : { appName: app }, required(subject, 'a user')),
      );
      return;
    case 'prune': {
      printCounts(await prune(store, systemClock, Number(required(subject, 'a number of days'))));
      return;
    }
    case 'export': {
      const filter = {
        ...(app !== undefined && { appName: app }),
        ...(user !== undefined && { userId: user }),
      };
      await write(store.exportSessions(filter));
      return;
    }
    case 'import': {
      const lines = linesOf(required(subject, 'a file'));
      const { sessions, events, skippedSessions } = await store.importSessions(lines);
      print(
        `imported: ${sessions} sessions, ${events} events; ${skippedSessions} sessions were there already`,
      );
      return;
    }
    default:
      throw new CommandError(EXIT.usage, `there is no command "${command}" (--help tells the commands)`);
  }
}

async function main(): Promise<void> {
  const args = readArguments(process.argv.slice(2));
  if (args === 'help') return print(HELP);
  loadDotenv({ quiet: true });
  // Only the database's address is wanted here, which may follow from DATA_DIR: what else is set need not be right.
  const { DATABASE_URL, DATA_DIR } = process.env;
  const { DATABASE_URL: url } = readConfig({ DATABASE_URL, DATA_DIR });
  const store = await openStore(url, { clock: systemClock, log: silentLog });
  try {
    await run(store, args);
  } finally {
    await store.close();
  }
}

function exitOf(error: unknown): number {
  if (error instanceof CommandError) return error.exit;
  if (error instanceof ConfigError) return EXIT.config;
  if (!(error instanceof StoreError)) return EXIT.failed;
  if (error.code === 'store_unusable') return EXIT.config;
  return error.code === 'store_refused' ? EXIT.data : EXIT.failed;
}

main().catch((error: unknown) => {
  process.stderr.write(complaint('store', error));
  process.exitCode = exitOf(error);
});
