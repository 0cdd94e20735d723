/**
 * All turns of the probe with one agent, in all modes at once: a server in this process for it alone, on a database of its own
 * that is gone afterwards.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadAgents } from '../agent/agent-catalog.js';
import type { Clock } from '../clock.js';
import { readConfig } from '../config.js';
import { ConfigError, errorText } from '../errors.js';
import type { Log } from '../observe/log.js';
import { PACKAGE_ROOT } from '../package-root.js';
import { type RunningServer, startServer } from '../server.js';
import { type Answer, converse, type ProbeMode } from './probe-conversation.js';
import { modesOf, type ProbeTurn } from './probe-turns.js';

export interface ProbeResult {
  readonly agent: string;
  readonly mode: ProbeMode;
  readonly turn: string;
  readonly passed: boolean;
  /** What is wrong; empty where nothing is. */
  readonly fault: string;
  /** Functions and what each came to. */
  readonly calls: readonly { readonly name: string; readonly answer: 'result' | 'error' }[];
  /** What each answered, and what was said; told of one call that somebody tries. */
  readonly told?: { readonly responses: Answer['responses']; readonly text: string };
  readonly durationMs: number;
}

export interface ProbeRunOptions {
  /** A name under `agents/`, or a path. */
  readonly agent: string;
  readonly turns: readonly ProbeTurn[];
  /** Of the environment only what says which model answers. */
  readonly model: Readonly<Record<string, string>>;
  readonly clock: Clock;
  readonly log: Log;
}

/** In the order of the turns. Rejects with a ConfigError where no such server can be started. */
export async function probeAgent(options: ProbeRunOptions): Promise<readonly ProbeResult[]> {
  const { agent, turns, model, clock, log } = options;
  const folder = mkdtempSync(join(tmpdir(), 'earshot-probe-'));
  let server: RunningServer | undefined;
  try {
    const config = readConfig({
      ...model,
      AGENT: agent,
      PORT: '0',
      DATA_DIR: folder,
      DATABASE_URL: `sqlite:${join(folder, 'probe.db')}`,
    });
    server = await startServer(config, { clock, log });
    const at = { url: server.url, app: server.agent, isRehearsal: config.gemini === undefined, clock };
    const asked = turns.flatMap((turn) => modesOf(turn).map((mode) => probeTurn(turn, mode, at)));
    return await Promise.all(asked);
  } finally {
    await server?.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** One call, written out, in every mode: what its tool answers and what is said of it. The rehearsal calls it, for which no dialogue
 * need be written. Rejects with a ConfigError where the agent has no such tool. */
export async function probeCall(
  options: Omit<ProbeRunOptions, 'turns' | 'model'> & { readonly call: string },
): Promise<readonly ProbeResult[]> {
  const { agent, call, clock, log } = options;
  const name = /^[\w.:-]+/.exec(call)?.[0] ?? call;
  const folder = join(PACKAGE_ROOT, 'agents');
  const { tools = [] } = (await loadAgents({ selected: agent, folder, clock, log })).default;
  const names = tools.map((tool) => tool.name);
  if (!names.includes(name))
    throw new ConfigError('agent_invalid', `there is no tool named ${name}; there are: ${names.join(', ')}`);
  const turns = [{ agent, name: call, says: [[{ text: call, calls: [name] }]], isTold: true }];
  return probeAgent({ ...options, turns, model: { MODEL: 'rehearsal' } });
}

interface At {
  readonly url: string;
  readonly app: string;
  readonly isRehearsal: boolean;
  readonly clock: Clock;
}

/** Never rejects. */
async function probeTurn(turn: ProbeTurn, mode: ProbeMode, at: At): Promise<ProbeResult> {
  const { clock, isRehearsal } = at;
  const begunMs = clock.nowMs();
  const answers: Answer[] = [];
  let fault: string | undefined;
  try {
    for (const [index, lines] of turn.says.entries()) {
      // A user of its own for each turn, so that nothing is remembered from another.
      const userId = `probe, ${mode}, ${turn.name}`;
      const sessionId = `${userId}, ${index + 1}`;
      const answer = await converse({ ...at, userId, sessionId, lines, shows: turn.shows }, mode, clock);
      answers.push(answer);
      const calls = lines.flatMap((line) => line.calls);
      fault ??= calledWrongly(answer, calls, isRehearsal);
    }
    if (isRehearsal) fault ??= turn.fault?.(answers);
  } catch (error) {
    fault ??= errorText(error);
  }
  const calls = answers.flatMap(({ responses }) =>
    responses.map(
      ({ name, response }) => ({ name, answer: 'error' in response ? 'error' : 'result' }) as const,
    ),
  );
  const durationMs = Math.round(clock.nowMs() - begunMs);
  return {
    agent: turn.agent,
    mode,
    turn: turn.name,
    passed: fault === undefined,
    fault: fault ?? '',
    calls,
    durationMs,
    ...(turn.isTold === true && {
      told: {
        responses: answers.flatMap(({ responses }) => responses),
        text: answers.map(({ text }) => text).join(' '),
      },
    }),
  };
}

/** The rehearsal calls what its dialogue says and nothing else; a real model may look twice. */
function calledWrongly(
  { responses, text }: Answer,
  calls: readonly string[],
  isRehearsal: boolean,
): string | undefined {
  const left = responses.map(({ name }) => name);
  for (const name of calls) {
    const at = left.indexOf(name);
    if (at < 0) return `${name} was not called and answered`;
    left.splice(at, 1);
  }
  if (isRehearsal && left.length > 0) return `${left.join(', ')} was called, too`;
  return text.trim() === '' ? 'nothing was said' : undefined;
}
