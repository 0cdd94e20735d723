/**
 * `npm run probe`: asks the agents that ship for each of their tools, whole, as it goes and live, and says what passed. Takes
 * the model from the environment; without a key the rehearsal answers. Exit 0, 1 if a turn failed, or 78 for a wrong command
 * line or model.
 */
import { parseArgs } from 'node:util';
import { config as loadDotenv } from 'dotenv';
import { systemClock } from './clock.js';
import { ConfigError, errorText } from './errors.js';
import { createLog } from './observe/pino-log.js';
import { type ProbeResult, probeAgent } from './probe/probe-run.js';
import { PROBE_TURNS } from './probe/probe-turns.js';

const AGENTS = [...new Set(PROBE_TURNS.map(({ agent }) => agent))];
const HELP = `Asks the agents that ship, and says what passed.

  npm run probe                          all of them
  npm run probe -- --agent NAME          one: ${AGENTS.join(', ')}
  npm run --silent probe -- --json       one JSON object a line

With GEMINI_API_KEY, or another of the SDK's credentials, the real model is asked; of it is checked only that the tools were
called and answered.
`;
const CONFIG_EXIT = 78;
const TURN_WIDTH = Math.max(...PROBE_TURNS.map(({ name }) => name.length));
/** What of the environment says which model answers: the probe has no door, no number and no database of its operator's. */
const OF_THE_MODEL = /^(MODEL|GEMINI_\w+|GOOGLE_\w+)$/;

function readArguments(args: readonly string[]): { agents: readonly string[]; json: boolean } | 'help' {
  const options = {
    agent: { type: 'string' },
    json: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  } as const;
  try {
    const { values } = parseArgs({ args: [...args], options });
    if (values.help) return 'help';
    const agents = AGENTS.filter((name) => values.agent === undefined || name === values.agent);
    if (agents.length === 0) throw new Error(`--agent is one of ${AGENTS.join(', ')}`);
    return { agents, json: values.json };
  } catch (error) {
    throw new ConfigError('config_invalid', `${errorText(error)} (--help tells the options)`);
  }
}

function lineOf({ passed, agent, mode, turn, calls, durationMs, fault }: ProbeResult): string {
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
  return [words.join('  ').trimEnd(), ...(passed ? [] : [`        ${fault}`])].join('\n');
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
    const turns = PROBE_TURNS.filter((turn) => turn.agent === agent);
    const results = await probeAgent({ agent, turns, model, clock: systemClock, log });
    for (const result of results) {
      process.stdout.write(`${args.json ? JSON.stringify(result) : lineOf(result)}\n`);
      if (!result.passed) process.exitCode = 1;
    }
  }
}

main().catch((error: unknown) => {
  process.stderr.write(`probe: ${errorText(error)}\n`);
  process.exitCode = error instanceof ConfigError ? CONFIG_EXIT : 1;
});
