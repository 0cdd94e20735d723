/**
 * `npm run probe`: asks the agents that ship for each of their tools, whole, as it goes and live, and says what passed. Takes
 * the model from the environment; without a key the rehearsal answers. With `--call`, one tool of any agent. Exit 0, 1 if a turn failed, or 78 for a wrong command
 * line or model.
 */
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { config as loadDotenv } from 'dotenv';
import { systemClock } from './clock.js';
import { complaint, ConfigError, errorText } from './errors.js';
import { createLog } from './observe/pino-log.js';
import { type ProbeResult, probeAgent, probeCall } from './probe/probe-run.js';
import { PROBE_TURNS } from './probe/probe-turns.js';

const AGENTS = [...new Set(PROBE_TURNS.map(({ agent }) => agent))];
const HELP = `Asks the agents that ship, and says what passed.

  npm run probe                          all of them
  npm run probe -- --agent NAME          one: ${AGENTS.join(', ')}
  npm run --silent probe -- --json       one JSON object a line
  npm run probe -- --agent PATH --call 'TOOL {"ARGUMENT":"VALUE"}'
                                         one tool of any agent, in every mode, and what it answers

With GEMINI_API_KEY, or another of the SDK's credentials, the real model is asked; of it is checked only that the tools were
called and answered. One tool is always called by the rehearsal.
`;
const CONFIG_EXIT = 78;
const TURN_WIDTH = Math.max(...PROBE_TURNS.map(({ name }) => name.length));
/** What of the environment says which model answers: the probe has no door, no number and no database of its operator's. */
const OF_THE_MODEL = /^(MODEL|GEMINI_\w+|GOOGLE_\w+)$/;

interface Arguments {
  readonly agents: readonly string[];
  readonly call: string | undefined;
  readonly json: boolean;
}

function readArguments(args: readonly string[]): Arguments | 'help' {
  const options = {
    call: { type: 'string' },
    agent: { type: 'string' },
    json: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  } as const;
  try {
    const { values } = parseArgs({ args: [...args], options });
    if (values.help) return 'help';
    const { agent, call, json } = values;
    if (call !== undefined) {
      if (agent === undefined) throw new Error('--call needs --agent, a name or a path');
      return { agents: [asGiven(agent)], call: call.trim(), json };
    }
    const agents = AGENTS.filter((name) => agent === undefined || name === agent);
    if (agents.length === 0) throw new Error(`--agent is one of ${AGENTS.join(', ')}`);
    return { agents, call, json };
  } catch (error) {
    throw new ConfigError('config_invalid', `${errorText(error)} (--help tells the options)`);
  }
}

/** `npm run` goes to the package's folder; a path is meant from where npm was called. */
function asGiven(agent: string): string {
  return /[/\\.]/.test(agent) ? resolve(process.env['INIT_CWD'] ?? '.', agent) : agent;
}

function lineOf({ passed, agent, mode, turn, calls, durationMs, fault, told }: ProbeResult): string {
  const called = calls.map(({ name, answer }) => (answer === 'error' ? `${name} (error)` : name)).join(', ');
  const seconds = `${(durationMs / 1_000).toFixed(1)} s`;
  const words = [
    passed ? 'passed' : 'FAILED',
    agent.padEnd(9),
    mode.padEnd(4),
    turn.padEnd(TURN_WIDTH),
    seconds,
    called,
  ];
  const more = [
    ...(passed ? [] : [fault]),
    ...(told?.responses ?? []).map(({ name, response }) => `${name} answers ${JSON.stringify(response)}`),
    ...(told === undefined || told.text === '' ? [] : [`said: ${told.text}`]),
  ];
  return [words.join('  ').trimEnd(), ...more.map((line) => `        ${line}`)].join('\n');
}

async function main(): Promise<void> {
  const args = readArguments(process.argv.slice(2));
  if (args === 'help') {
    process.stdout.write(HELP);
    return;
  }
  loadDotenv({ quiet: true });
  const model = Object.fromEntries(
    Object.entries(process.env).flatMap(([name, value]) =>
      OF_THE_MODEL.test(name) && value !== undefined ? [[name, value]] : [],
    ),
  );
  const log = createLog({ level: 'error', pretty: false }, process.stderr);
  for (const agent of args.agents) {
    const at = { agent, clock: systemClock, log };
    const turns = PROBE_TURNS.filter((turn) => turn.agent === agent);
    const results =
      args.call === undefined
        ? await probeAgent({ ...at, turns, model })
        : await probeCall({ ...at, call: args.call });
    for (const result of results) {
      process.stdout.write(`${args.json ? JSON.stringify(result) : lineOf(result)}\n`);
      if (!result.passed) process.exitCode = 1;
    }
  }
}

main().catch((error: unknown) => {
  process.stderr.write(complaint('probe', error));
  process.exitCode = error instanceof ConfigError ? CONFIG_EXIT : 1;
});
