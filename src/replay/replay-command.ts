/**
 * `npm run replay -- FILE...`: replays call fixtures against this server's own code and compares every message that it
 * writes. Takes from the environment where npm was called. Exit 0: all the same; 1: a difference, told as a dialogue; 78: a command line or a fixture that is wrong; 70: a
 * fault of the replay itself.
 */
import { readdirSync, statSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { AppError, ConfigError, errorText } from '../errors.js';
import { PACKAGE_ROOT } from '../package-root.js';
import { EXIT, faultText, type ReplayCommand, replayFiles } from './replay-run.js';

const HELP = `Replays recorded calls, and calls written by hand, against the server's own code on a virtual clock.

  npm run replay -- FILE... [options]

FILE is a call fixture (.ndjson), or a folder of them. Without one: fixtures/calls.

  --update       write what the server does now into the files
  --agent NAME   another agent than the file names: a name under agents/, or a path
  --show         print each call as a dialogue
  --help         this text
`;
function readArguments(args: readonly string[]): ReplayCommand | 'help' {
  try {
    const { values, positionals } = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        update: { type: 'boolean', default: false },
        show: { type: 'boolean', default: false },
        agent: { type: 'string' },
        help: { type: 'boolean', default: false },
      },
    });
    if (values.help) return 'help';
    // `npm run` goes to the package's folder; a path is meant from where npm was called.
    const from = process.env['INIT_CWD'] ?? '.';
    const named = positionals.map((path) => asShown(resolve(from, path)));
    const files = (named.length === 0 ? [join(PACKAGE_ROOT, 'fixtures', 'calls')] : named).flatMap(
      fixturesAt,
    );
    return { files, update: values.update, show: values.show, agent: values.agent };
  } catch (error) {
    if (error instanceof ConfigError) throw error;
    throw new ConfigError('config_invalid', `${errorText(error)} (--help tells the options)`);
  }
}

/** Shorter where it lies below. */
function asShown(path: string): string {
  const below = relative('.', path);
  return below === '' || below.startsWith('..') ? path : below;
}

function fixturesAt(path: string): string[] {
  const found = statSync(path, { throwIfNoEntry: false });
  // What is not there is told like a file that cannot be read, and the others are replayed.
  if (found?.isDirectory() !== true) return [path];
  const files = readdirSync(path).filter((name) => name.endsWith('.ndjson'));
  if (files.length === 0) throw new ConfigError('config_invalid', `${path} holds no .ndjson file`);
  return files.sort().map((name) => join(path, name));
}

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

async function main(args: readonly string[]): Promise<number> {
  const command = readArguments(args);
  if (command === 'help') {
    print(HELP);
    return 0;
  }
  return replayFiles(command, { print, printError: (text) => process.stderr.write(`${text}\n`) });
}

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  const isWrongUse = error instanceof AppError;
  process.stderr.write(`${isWrongUse ? error.message : faultText(error)}\n`);
  process.exitCode = isWrongUse ? EXIT.unreadable : EXIT.failed;
}
