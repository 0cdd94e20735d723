/**
 * Calls whose agent is busy with ordinary asynchronous tools: the server's own path from a function call to its answer, with a
 * guard in front. Each call asks for all of its tools at once, and again as soon as they are answered. Needs a build.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { defineAgent } from '../dist/agent/agent.js';
import { definePlugin } from '../dist/agent/plugin.js';
import { defineTool } from '../dist/agent/tool.js';
import { systemClock } from '../dist/clock.js';
import { silentLog } from '../dist/observe/log.js';
import { ToolCalls } from '../dist/tool/tool-calls.js';
import { NO_LINE, ToolRuns } from '../dist/tool/tool-runs.js';

/** A tool waits for a database or a service, so long or up to half as long again, and reads some 12 kB of JSON of it. */
const REPLY_MS = 200;
const REPLY = JSON.stringify(
  Array.from({ length: 200 }, (_, n) => ({
    id: `A-${10_000 + n}`,
    what: 'an enamel kettle',
    totals: [n, n + 1, n + 2],
  })),
);

function agentWith(tools) {
  return defineAgent({
    name: 'bench',
    instruction: 'Be busy.',
    tools: Array.from({ length: tools }, (_, n) =>
      defineTool({
        name: `look_up_${n}`,
        description: 'Looks something up.',
        parameters: { type: 'object', properties: { order: { type: 'string' } }, required: ['order'] },
        async execute({ order }) {
          await sleep(REPLY_MS * (1 + Math.random() / 2));
          return { order, found: JSON.parse(REPLY).slice(0, 20) };
        },
      }),
    ),
    plugins: [definePlugin({ name: 'policy', beforeTool: () => undefined })],
  });
}

/** Keeps the tools of so many calls busy until `signal` aborts; resolves with how many function calls were answered. */
export async function busyTools({ calls, toolsPerCall, signal }) {
  const agent = agentWith(toolsPerCall);
  const runs = new ToolRuns({
    store: undefined,
    agentNamed: () => agent,
    runInWorker: () => () => Promise.reject(new Error('no worker here')),
    tellLate: () => Promise.resolve(),
    clock: systemClock,
    log: silentLog,
  });
  const answered = await Promise.all(
    Array.from({ length: calls }, async (_, n) => {
      // No two callers ring in the same instant.
      await sleep((n * 1_000) / calls);
      return busyCall({ agent, runs, callSid: `CA${n}`, signal });
    }),
  );
  return answered.reduce((sum, each) => sum + each, 0);
}

async function busyCall({ agent, runs, callSid, signal }) {
  const nothing = () => {};
  let answered = 0;
  const identity = {
    invocationId: callSid,
    callSid,
    appName: agent.name,
    userId: `anonymous:${callSid}`,
    sessionId: callSid,
    callerVerified: false,
  };
  const calls = new ToolCalls({
    host: {
      events: { called: nothing, responded: nothing, withdrawn: nothing, changed: nothing },
      answer: (responses) => (answered += responses.length),
      update: nothing,
      forgetUpdate: nothing,
      endInvocation: nothing,
      enter: (happens) => happens(),
    },
    work: (listener) =>
      runs.open({
        agent,
        identity,
        builtIn: [],
        history: [],
        callControl: NO_LINE,
        isLive: true,
        listener,
        listen: nothing,
      }),
    autoExecute: true,
    autoRespond: true,
    responses: 'group',
    log: silentLog,
  });
  for (let round = 0; !signal.aborted; round += 1)
    await calls.dispatch(
      agent.tools.map(({ name }, n) => ({ id: `${round}-${n}`, name, args: { order: `A-${n}` } })),
    );
  await calls.close();
  return answered;
}
