/** Tools that a test holds in its hands, and what a call's tools look like from outside. */
import type { Event } from '../../src/event/event.js';
import { functionCalls, functionResponses } from '../../src/event/event.js';
import {
  type AgentDefinition,
  defineAgent,
  defineTool,
  type Tool,
  type ToolDefinition,
} from '../../src/index.js';
import type { FrameReader } from './frame-reader.js';
import type { JsonObject, ScriptedConnection } from './scripted-gemini.js';
import { saidBy } from './stage.js';

/** One name of each row of the capability table that Google serves. */
export const LIVE_MODELS = [
  'gemini-3.8-live',
  'gemini-3.1-flash-live-preview',
  'gemini-2.5-flash-native-audio-preview-12-2025',
] as const;

export const GREETING = 'Hello, this is the desk.';

/** An agent that answers calls of `Stage`: greeted word for word. */
export function desk(definition: Partial<AgentDefinition> = {}): ReturnType<typeof defineAgent> {
  return defineAgent({ name: 'desk', instruction: 'Serve.', greeting: GREETING, ...definition });
}

/** A tool whose runs wait until the test lets them go, each with what it returns or throws. */
export class HeldTool {
  readonly tool: Tool;
  /** Runs that were begun. */
  runs = 0;
  /** Runs that go on, and the most of them at once. */
  running = 0;
  peak = 0;
  /** Aborted, in order. */
  readonly aborted: string[] = [];
  #waiting: ((end: () => unknown) => void)[] = [];

  constructor(name: string, options: Partial<ToolDefinition> = {}, heeds = true) {
    this.tool = defineTool({
      name,
      description: `Does ${name}.`,
      ...options,
      execute: (_args, { signal }) => this.#run(signal, heeds),
    });
  }

  /** The oldest run ends. */
  letGo(end: () => unknown = () => ({ message: `${this.tool.name} is done.` })): void {
    const next = this.#waiting.shift();
    if (next === undefined) throw new Error(`${this.tool.name} is not running`);
    next(end);
  }

  get isWaiting(): boolean {
    return this.#waiting.length > 0;
  }

  async #run(signal: AbortSignal, heeds: boolean): Promise<unknown> {
    this.runs += 1;
    this.running += 1;
    this.peak = Math.max(this.peak, this.running);
    try {
      const end = await new Promise<() => unknown>((resolve, reject) => {
        this.#waiting.push(resolve);
        signal.addEventListener('abort', () => {
          this.aborted.push((signal.reason as Error).message);
          if (!heeds) return;
          this.#waiting = this.#waiting.filter((one) => one !== resolve);
          reject(signal.reason as Error);
        });
      });
      return end();
    } finally {
      this.running -= 1;
    }
  }
}

export interface AnsweredCall {
  readonly id: string;
  readonly name: string;
  readonly response: JsonObject;
}

/** Frames of answers that the model got, each with its answers. */
export function answersTo(model: ScriptedConnection): AnsweredCall[][] {
  return model.received.flatMap(({ toolResponse }) =>
    toolResponse === undefined
      ? []
      : [(toolResponse as { functionResponses: AnsweredCall[] }).functionResponses],
  );
}

/** The answer to one call, once it is there. */
export async function answerTo(model: ScriptedConnection, id: string): Promise<AnsweredCall> {
  const find = (): AnsweredCall | undefined =>
    answersTo(model)
      .flat()
      .find((answer) => answer.id === id);
  await model.waitUntil(() => find() !== undefined);
  return find()!;
}

/** `id name state` of each tool frame. */
export function toolFrames(watcher: FrameReader): string[] {
  return watcher.of('tool').map(({ callId, name, state }) => `${callId} ${name} ${state}`);
}

/** A session as lines: words, `call c1 c2`, `response c1`. */
export function linesOf(events: readonly Event[]): string[] {
  return events.flatMap((event) => {
    const calls = functionCalls(event).map(({ id }) => id);
    const responses = functionResponses(event).map(({ id }) => id);
    return [
      ...saidBy(event),
      ...(calls.length > 0 ? [`call ${calls.join(' ')}`] : []),
      ...(responses.length > 0 ? [`response ${responses.join(' ')}`] : []),
    ];
  });
}
