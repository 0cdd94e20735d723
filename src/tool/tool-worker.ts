/**
 * What runs in a worker thread: one tool's handler at a time, found in its agent's module, which is loaded once per
 * thread. Everything that it is asked is answered, or the thread is dead; `tool-thread.ts` is the other side.
 */
import assert from 'node:assert/strict';
import { parentPort } from 'node:worker_threads';
import type { Agent } from '../agent/agent.js';
import { loadAgent } from '../agent/agent-module.js';
import type { Tool } from '../agent/tool.js';
import { systemClock } from '../clock.js';
import { errorText } from '../errors.js';
import type { Event } from '../event/event.js';
import { handedOut, isInstance, textOf } from '../foreign.js';
import {
  TOOL_RESULT_MAX_CHARS,
  TOOL_WORKER_ERROR_MAX_CHARS,
  TOOL_WORKER_SECRETS_WAITING_MAX,
  TOOL_WORKER_STATE_MAX_CHARS,
} from '../tool-limits.js';
import { jsonOf } from './tool-result.js';
import { WorkerContext } from './worker-context.js';
import type { CallOrder, SecretAnswer, WorkerAnswer, WorkerSnapshot } from './worker-messages.js';

interface Ask {
  readonly resolve: (value: string | null) => void;
  readonly reject: (error: Error) => void;
}

assert(parentPort !== null, 'this file is run as a worker thread');
const port = parentPort;
const agents = new Map<string, Promise<Agent>>();
const asks = new Map<number, Ask>();
let nextAsk = 1;

port.on('message', (message: CallOrder | SecretAnswer) => {
  if (message.kind === 'secret') answerAsk(message);
  else void carryOut(message);
});

function send(answer: WorkerAnswer): void {
  port.postMessage(answer, []);
}

async function carryOut(order: CallOrder): Promise<void> {
  const { id } = order;
  send({ kind: 'taken', id });
  let isBegun = false;
  try {
    const tool = await findTool(order);
    const read = tool.readArguments(JSON.parse(order.argsJson));
    if ('error' in read) throw new Error(read.error);
    const ctx = contextOf(order);
    isBegun = true;
    const result = await tool.execute(read.args, ctx);
    send({
      kind: 'done',
      id,
      resultJson: resultJson(result),
      stateDeltaJson: stateDeltaJson(ctx),
      endInvocation: ctx.endInvocation,
    });
  } catch (error) {
    // By name: the author's module may have another copy of the package, with a class of its own.
    const nothingDone = !isBegun || (isInstance(error, Error) && textOf(error, 'name') === 'NothingDone');
    const message = errorText(error).slice(0, TOOL_WORKER_ERROR_MAX_CHARS);
    send({ kind: 'failed', id, message, nothingDone });
  }
}

async function findTool({ module, tool: name }: CallOrder): Promise<Tool> {
  const loading = agents.get(module) ?? loadAgent(module, systemClock);
  agents.set(module, loading);
  try {
    const agent = await loading;
    const tool = agent.tools?.find((each) => each.name === name && each.worker);
    if (tool !== undefined) return tool;
  } catch (error) {
    // What was not there may be there for the next call.
    agents.delete(module);
    throw error;
  }
  throw new Error(`the agent's module ${module} has no worker tool ${name}`);
}

function contextOf({ id, snapshotJson, eventsJson }: CallOrder): WorkerContext {
  const snapshot = JSON.parse(snapshotJson) as Omit<WorkerSnapshot, 'events'>;
  const events = JSON.parse(eventsJson) as Event[];
  return new WorkerContext({ ...snapshot, events }, (name) => handedOut(() => askSecret(id, name)));
}

/** The server looks it up, for only there the agent's `getSecret` may be called. */
function askSecret(id: number, name: unknown): Promise<string | null> {
  return new Promise((resolve, reject) => {
    if (typeof name !== 'string') throw new TypeError('getSecret: a name is text');
    if (asks.size >= TOOL_WORKER_SECRETS_WAITING_MAX)
      throw new Error(`getSecret: ${TOOL_WORKER_SECRETS_WAITING_MAX} secrets are asked for already`);
    const ask = nextAsk++;
    asks.set(ask, { resolve, reject });
    send({ kind: 'askSecret', id, ask, name });
  });
}

function answerAsk(answer: SecretAnswer): void {
  const waiting = asks.get(answer.ask);
  asks.delete(answer.ask);
  if ('value' in answer) waiting?.resolve(answer.value);
  else waiting?.reject(new Error(answer.error));
}

function resultJson(result: unknown): string | undefined {
  const json = told(result);
  if (json === undefined) return undefined;
  if (json.length > TOOL_RESULT_MAX_CHARS)
    throw new Error(`The tool ran, but its result is too long to tell (${json.length} characters).`);
  return json;
}

function stateDeltaJson(ctx: WorkerContext): string {
  const json = JSON.stringify(ctx.takeStateDelta());
  if (json.length > TOOL_WORKER_STATE_MAX_CHARS)
    throw new Error(
      `The tool ran, but its changes of the state are too long to keep (${json.length} characters).`,
    );
  return json;
}

function told(result: unknown): string | undefined {
  try {
    return jsonOf(result);
  } catch (error) {
    throw new Error(`The tool ran, but ${errorText(error)}`, { cause: error });
  }
}
