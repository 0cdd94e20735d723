/** A tool of a shipped agent, called as the server calls it: arguments read by its schema, with a context made by hand. */
import type { Agent, InputFrame, InputStream, Tool, ToolContext } from '../../src/index.js';

export function toolOf(agent: Agent, name: string): Tool {
  const tool = (agent.tools ?? []).find((one) => one.name === name);
  if (tool === undefined) throw new Error(`${agent.name} has no ${name}`);
  return tool;
}

/** What `execute` gets; throws what the model would be told of wrong arguments. */
export function argumentsOf(tool: Tool, args: object): unknown {
  const read = tool.readArguments(args);
  if ('error' in read) throw new Error(read.error);
  return read.args;
}

export async function call(
  agent: Agent,
  name: string,
  args: object = {},
  ctx: ToolContext = context(),
): Promise<Record<string, unknown>> {
  const tool = toolOf(agent, name);
  return (await tool.execute(argumentsOf(tool, args), ctx)) as Record<string, unknown>;
}

export function stream(agent: Agent, name: string, args: object, ctx: ToolContext): AsyncGenerator<unknown> {
  const tool = toolOf(agent, name);
  return tool.execute(argumentsOf(tool, args), ctx) as AsyncGenerator<unknown>;
}

export function context(changes: Partial<ToolContext> = {}): ToolContext {
  return {
    invocationId: 'run-2',
    callSid: 'CA1',
    appName: 'shop',
    userId: '+12025550123',
    sessionId: 'CA1',
    callerVerified: true,
    events: [],
    runConfig: { responseModalities: ['AUDIO'] },
    signal: new AbortController().signal,
    state: {},
    shared: { get: () => undefined, set() {}, waitFor: () => Promise.reject(new Error('not set')) },
    memory: { remember: async (_entity, facts) => facts.length, relate: async () => true },
    inputStream: undefined,
    callControl: { hangUp: () => ({ kind: 'accepted' }), transfer: () => ({ kind: 'accepted' }) },
    endInvocation: false,
    userScopes: () => [],
    getSecret: async () => null,
    followUp() {},
    saveArtifact: async () => 0,
    loadArtifact: async () => undefined,
    ...changes,
  };
}

/** Frames of an input stream that a test pushes. */
export class FrameSource implements InputStream {
  #frames: InputFrame[] = [];
  #wake: () => void = () => {};

  push(data: Uint8Array, mimeType = 'audio/pcm;rate=16000'): void {
    this.#frames.push({ data, mimeType });
    this.#wake();
  }

  drainLatest(): InputFrame | undefined {
    const latest = this.#frames.at(-1);
    this.#frames = [];
    return latest;
  }

  [Symbol.asyncIterator](): AsyncIterator<InputFrame> {
    return {
      next: async () => {
        while (this.#frames.length === 0) {
          await new Promise<void>((resolve) => {
            this.#wake = resolve;
          });
        }
        return { done: false, value: this.#frames.shift()! };
      },
    };
  }
}
