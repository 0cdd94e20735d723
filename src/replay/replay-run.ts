/**
 * Replays or renews one fixture after the other and tells how each went. What is wrong with one ends that one only.
 */
import { systemClock } from '../clock.js';
import { ConfigError, errorText, FixtureError } from '../errors.js';
import type { Fixture, FixtureLine } from '../fixture/fixture-format.js';
import { readFixture } from '../fixture/fixture-reader.js';
import { AgentShelf } from './agent-shelf.js';
import { dialogueDiff, dialogueOf, listOf } from './dialogue-diff.js';
import { renewFixture } from './fixture-renewal.js';
import { compareReplay } from './replay-comparison.js';
import { replay } from './replay.js';

export interface ReplayCommand {
  readonly files: readonly string[];
  readonly update: boolean;
  readonly show: boolean;
  /** Another agent than the files name. */
  readonly agent: string | undefined;
}

export interface ReplayPrinter {
  readonly print: (text: string) => void;
  readonly printError: (text: string) => void;
}

/** From good to bad, with the exit code of a run in which it is the worst. `unreadable` is EX_CONFIG, `failed`, a fault of the
 * replay itself, EX_SOFTWARE of sysexits.h. */
export const EXIT = { same: 0, written: 0, different: 1, unheard: 1, unreadable: 78, failed: 70 } as const;
type Outcome = keyof typeof EXIT;

const SUMMARY: Readonly<Record<Outcome, string>> = {
  same: 'the same',
  written: 'written',
  different: 'different',
  unheard: 'written with lines that nobody hears',
  unreadable: 'unreadable',
  failed: 'failed',
};

/** Returns the exit code. @throws ConfigError for an `agent` of the command's that cannot be loaded. */
export async function replayFiles(command: ReplayCommand, printer: ReplayPrinter): Promise<number> {
  const shelf = new AgentShelf();
  const counts = new Map<Outcome, number>(
    command.update
      ? [['written', 0]]
      : [
          ['same', 0],
          ['different', 0],
        ],
  );
  for (const file of command.files) {
    const outcome = await replayFile(file, { command, shelf, ...printer });
    counts.set(outcome, (counts.get(outcome) ?? 0) + 1);
  }
  const outcomes = Object.keys(EXIT) as Outcome[];
  if (command.files.length > 1) {
    const told = outcomes.filter((outcome) => counts.has(outcome));
    printer.print(told.map((outcome) => `${counts.get(outcome)} ${SUMMARY[outcome]}`).join(', '));
  }
  const worst = outcomes.findLast((outcome) => (counts.get(outcome) ?? 0) > 0);
  return worst === undefined ? 0 : EXIT[worst];
}

/** A fault of our own, with where it happened. */
export function faultText(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : errorText(error);
}

interface Run extends ReplayPrinter {
  readonly command: ReplayCommand;
  readonly shelf: AgentShelf;
}

async function replayFile(file: string, run: Run): Promise<Outcome> {
  try {
    const fixture = withItsEnd(await readFixture(file));
    return await (run.command.update ? updateOne(fixture, run) : replayOne(fixture, run));
  } catch (error) {
    if (error instanceof ConfigError) throw error;
    if (error instanceof FixtureError) {
      run.printError(error.message);
      return 'unreadable';
    }
    run.printError(`failed   ${file}: ${faultText(error)}`);
    return 'failed';
  }
}

/** A recording whose server was killed, or whose disk was full, says nothing of its end: it is compared as far as it goes. */
function withItsEnd(fixture: Fixture): Fixture {
  const { path, header, lines } = fixture;
  const last = lines.at(-1);
  if (last === undefined) throw new FixtureError('fixture_invalid', `${path}: holds no message to replay`);
  if (header.made === 'by hand' || lines.some(({ leg }) => leg === 'call')) return fixture;
  const truncated = 'it breaks off before the end of the call';
  return { ...fixture, lines: [...lines, { at: last.at, leg: 'call', dir: 'out', truncated }] };
}

async function updateOne(fixture: Fixture, { command, shelf, print }: Run): Promise<Outcome> {
  const { lines, unsaid } = await renewFixture(fixture, await shelf.of(fixture, command.agent));
  if (command.show) print(dialogueOf(lines));
  if (unsaid.length === 0) {
    print(`written  ${fixture.path}`);
    return 'written';
  }
  print(`written  ${fixture.path}, with ${unheardText(unsaid)}:\n${listOf(unsaid)}`);
  return 'unheard';
}

async function replayOne(fixture: Fixture, { command, shelf, print }: Run): Promise<Outcome> {
  const agents = await shelf.of(fixture, command.agent);
  const startedMs = systemClock.nowMs();
  const { lines, unsaid, durationMs } = await replay(fixture, { agents });
  const tookMs = systemClock.nowMs() - startedMs;
  const speed = `${(durationMs / 1000).toFixed(1)} s of call in ${Math.round(tookMs)} ms`;
  if (command.show) print(dialogueOf(lines));
  const comparison = compareReplay(fixture.lines, lines, fixture.header.made);
  const { differences } = comparison;
  const isSame = differences === 0 && unsaid.length === 0;
  const what = [
    ...(differences > 0 ? [`${differences} ${differences === 1 ? 'message' : 'messages'}`] : []),
    ...(unsaid.length > 0 ? [unheardText(unsaid)] : []),
  ];
  print(
    isSame ? `same     ${fixture.path}: ${speed}` : `differs  ${fixture.path}: ${what.join(', ')}; ${speed}`,
  );
  const { truncated } = comparison;
  if (truncated !== undefined) {
    const { at, why } = truncated;
    print(`  the recording is incomplete from ${(at / 1000).toFixed(3)} on (${why}); compared up to there`);
  }
  if (unsaid.length > 0) print(`Nobody hears:\n${listOf(unsaid)}`);
  if (differences > 0) print(dialogueDiff(fixture.lines, comparison));
  return isSame ? 'same' : 'different';
}

function unheardText({ length }: readonly FixtureLine[]): string {
  return length === 1 ? '1 line that nobody hears' : `${length} lines that nobody hears`;
}
