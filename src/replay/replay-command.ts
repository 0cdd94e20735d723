/**
 * `npm run replay -- FILE...`: replays call fixtures against this server's own code and compares every message that it
 * writes. Exit 0: all the same; 1: a difference, told as a dialogue; 78: a command line or a fixture that is wrong.
 */
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { systemClock } from '../clock.js';
import { AppError, ConfigError, errorText } from '../errors.js';
import { readFixture } from '../fixture/fixture-reader.js';
import { PACKAGE_ROOT } from '../package-root.js';
import { AgentShelf } from './agent-shelf.js';
import { renewFixture } from './fixture-renewal.js';
import { dialogueDiff, dialogueOf } from './dialogue-diff.js';
import { compareReplay } from './replay-comparison.js';
import { replay } from './replay.js';

const HELP = `Replays recorded calls, and calls written by hand, against the server's own code on a virtual clock.

  npm run replay -- FILE... [options]

FILE is a call fixture (.ndjson), or a folder of them. Without one: fixtures/calls.

  --update       write what the server does now into the files
  --agent NAME   another agent than the file names: a name under agents/, or a path
  --show         print each call as a dialogue
  --help         this text
`;
const DIFFERENT = 1;
const CONFIG_EXIT = 78;

interface ReplayCommand {
  readonly files: readonly string[];
  readonly update: boolean;
  readonly show: boolean;
  readonly agent: string | undefined;
}

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
    const files = (
      positionals.length === 0 ? [join(PACKAGE_ROOT, 'fixtures', 'calls')] : positionals
    ).flatMap(fixturesAt);
    return { files, update: values.update, show: values.show, agent: values.agent };
  } catch (error) {
    if (error instanceof ConfigError) throw error;
    throw new ConfigError('config_invalid', `${errorText(error)} (--help tells the options)`);
  }
}

function fixturesAt(path: string): string[] {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found === undefined) throw new ConfigError('config_invalid', `${path} does not exist`);
  if (!found.isDirectory()) return [path];
  const files = readdirSync(path).filter((name) => name.endsWith('.ndjson'));
  if (files.length === 0) throw new ConfigError('config_invalid', `${path} holds no .ndjson file`);
  return files.sort().map((name) => join(path, name));
}

async function replayOne(file: string, command: ReplayCommand, shelf: AgentShelf): Promise<boolean> {
  const fixture = await readFixture(file);
  const agents = await shelf.of(fixture, command.agent);
  if (command.update) {
    await renewFixture(fixture, agents);
    print(`written  ${file}`);
    return true;
  }
  const startedMs = systemClock.nowMs();
  const result = await replay(fixture, { agents });
  const tookMs = systemClock.nowMs() - startedMs;
  const speed = `${(result.durationMs / 1000).toFixed(1)} s of call in ${Math.round(tookMs)} ms`;
  if (command.show) print(dialogueOf(result.lines));
  const comparison = compareReplay(fixture.lines, result.lines);
  if (comparison.differences === 0 && result.unsaid.length === 0) {
    print(`same     ${file}: ${speed}`);
    return true;
  }
  print(`differs  ${file}: ${comparison.differences} messages; ${speed}`);
  for (const { at, leg } of result.unsaid.slice(0, 1)) {
    print(
      `  at ${(at / 1000).toFixed(3)} the ${leg} leg says something that the server no longer listens to`,
    );
  }
  print(dialogueDiff(fixture.lines, comparison));
  return false;
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
  const shelf = new AgentShelf();
  let same = 0;
  for (const file of command.files) if (await replayOne(file, command, shelf)) same += 1;
  const different = command.files.length - same;
  if (!command.update && command.files.length > 1) print(`${same} the same, ${different} different`);
  return different === 0 ? 0 : DIFFERENT;
}

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  process.stderr.write(`${error instanceof AppError ? error.message : errorText(error)}\n`);
  process.exitCode = CONFIG_EXIT;
}
