/**
 * Streaming tools of one run: begun when the model first calls them, each with its own copy of the caller's input if it
 * asks for one, until they end, are stopped, or the run is over. A value becomes an update for the model.
 */
import type { Tool } from '../agent/tool.js';
import { type Clock, nextTurn, within } from '../clock.js';
import type { Log } from '../observe/log.js';
import {
  INPUT_STREAM_MAX_FRAMES,
  INPUT_STREAM_MAX_IMAGES,
  STREAMING_STOP_MAX_MS,
  STREAMING_VALUES_PER_S_MAX,
  UPDATE_MAX_CHARS,
} from '../tool-limits.js';
import { timed } from './blocking.js';
import { canonicalJson } from './canonical-json.js';
import { hasChanges } from './changes.js';
import { InputTap } from './input-tap.js';
import type { CallScope } from './invocation.js';
import type { RunSecrets } from './run-secrets.js';
import { errorResponse, type Response, responseOf } from './tool-result.js';
import type { WorkListener } from './tool-work.js';
import { withinTime } from './within-time.js';

interface Running {
  readonly tool: Tool;
  /** The arguments, to tell a repeat. */
  readonly asked: string;
  readonly controller: AbortController;
  readonly input: InputTap | undefined;
  readonly scope: CallScope;
  readonly after: StreamingStart['after'];
  /** Resolves when its `finally` has run. */
  over: Promise<void>;
  /** Once it is told to stop; resolves when it has ended, or had its time. */
  stopping: Promise<void> | undefined;
}

export interface StreamingStart {
  readonly tool: Tool;
  readonly args: unknown;
  /** Makes the context of the run that begins. */
  readonly scope: (signal: AbortSignal, input: InputTap | undefined) => CallScope;
  /** Looks each value over before anybody is told; undefined where nobody does. Never rejects. */
  readonly after:
    ((value: Response, ctx: CallScope['ctx'], signal: AbortSignal) => Promise<Response>) | undefined;
}

export interface StreamingToolsOptions {
  readonly listener: Pick<WorkListener, 'update' | 'ended' | 'forget' | 'changed' | 'ends'>;
  readonly secrets: RunSecrets;
  readonly clock: Clock;
  readonly log: Log;
}

export class StreamingTools {
  readonly #options: StreamingToolsOptions;
  readonly #running = new Map<string, Running>();
  /** Being stopped: they have a second. */
  readonly #ending = new Set<Running>();
  #isClosed = false;

  constructor(options: StreamingToolsOptions) {
    this.#options = options;
  }

  counts(): Readonly<Record<string, number>> {
    const taps = [...this.#running.values()].filter(({ input }) => input !== undefined).length;
    return { streamingTools: this.#running.size + this.#ending.size, inputStreams: taps };
  }

  /** Of those that run, and of those that are being stopped. */
  get scopes(): readonly CallScope[] {
    return [...this.#running.values(), ...this.#ending].map(({ scope }) => scope);
  }

  /** Asked for each of the caller's frames: where nothing runs it costs nothing. */
  get wantsSound(): boolean {
    if (this.#running.size === 0) return false;
    for (const { tool } of this.#running.values()) if (tool.input === 'sound') return true;
    return false;
  }

  onSound(pcm16k: Uint8Array): void {
    this.#feed('sound', () => ({ mimeType: 'audio/pcm;rate=16000', data: Uint8Array.from(pcm16k) }));
  }

  onImage(mimeType: string, image: Uint8Array): void {
    this.#feed('image', () => ({ mimeType, data: Uint8Array.from(image) }));
  }

  /** Begins it, or says that it is running already; with other arguments it begins anew, behind the end of the old one. */
  start({ tool, args, scope, after }: StreamingStart): Response {
    const { name } = tool;
    if (this.#isClosed) return errorResponse(`${name} was not begun: the conversation is over.`);
    const asked = canonicalJson(args);
    const before = this.#running.get(name);
    if (before?.asked === asked)
      return { status: 'running', message: `${name} is running already. Its results will come.` };
    const input = tool.input === undefined ? undefined : new InputTap(FRAMES_MAX[tool.input]);
    const controller = new AbortController();
    const running: Running = {
      tool,
      asked,
      controller,
      input,
      scope: scope(controller.signal, input),
      after,
      over: Promise.resolve(),
      stopping: undefined,
    };
    if (before !== undefined) void this.#stop(before);
    const formerOnes = [...this.#ending].filter((one) => one.tool.name === name);
    const stopped = Promise.all(formerOnes.map((one) => this.#stop(one)));
    this.#running.set(name, running);
    running.over = this.#run(running, args, stopped);
    return {
      status: 'pending',
      message: `${name} is running. Its results will come by themselves: do not wait for them, and do not call it again.`,
    };
  }

  /** False: it does not run. True: it has ended, or was given up after a second. */
  async stop(name: string): Promise<boolean> {
    const running = this.#running.get(name);
    if (running === undefined) {
      this.#options.listener.forget(name);
      return false;
    }
    await this.#stop(running);
    return true;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all([...this.#running.values(), ...this.#ending].map((running) => this.#stop(running)));
  }

  #stop(running: Running): Promise<void> {
    running.stopping ??= this.#end(running);
    return running.stopping;
  }

  async #end(running: Running): Promise<void> {
    const { clock, log, listener } = this.#options;
    const { name } = running.tool;
    if (this.#running.get(name) === running) this.#running.delete(name);
    this.#ending.add(running);
    running.input?.close();
    running.controller.abort(new Error('the tool was stopped'));
    listener.ended(name, true);
    try {
      await withinTime(running.over, { clock, delayMs: STREAMING_STOP_MAX_MS });
    } catch {
      log.warn({ tool: name }, 'a streaming tool did not end when it was stopped');
      this.#tellChanges(running.scope);
      running.scope.close();
    }
    this.#ending.delete(running);
  }

  #feed(input: 'sound' | 'image', frame: () => Parameters<InputTap['push']>[0]): void {
    for (const running of this.#running.values()) {
      if (running.tool.input === input) running.input?.push(frame());
    }
  }

  /** Never rejects. */
  async #run(running: Running, args: unknown, before: Promise<unknown>): Promise<void> {
    const { tool, scope, input } = running;
    const { listener, secrets, log } = this.#options;
    const { name } = tool;
    await before;
    try {
      await this.#values(running, args);
    } catch (error) {
      log.warn({ tool: name, pii: { cause: secrets.errorText(error) } }, 'a streaming tool failed');
      if (running.stopping === undefined)
        listener.update({ text: `${name} has failed and is over.`, interrupts: false });
    }
    this.#tellChanges(scope);
    scope.close();
    input?.close();
    if (this.#running.get(name) === running) {
      this.#running.delete(name);
      listener.ended(name, false);
    }
  }

  /** Until it ends or is stopped. Rejects with what it throws. */
  async #values(running: Running, args: unknown): Promise<void> {
    const { tool, scope, controller } = running;
    const { signal } = controller;
    if (signal.aborted) return;
    const source = iteratorOf(await this.#timed(tool, () => tool.execute(args, scope.ctx)));
    const pace = new Pace(this.#options.clock, signal);
    let failure: { readonly error: unknown } | undefined;
    try {
      while (!signal.aborted) {
        const next = (async () => this.#timed(tool, () => source.next()))();
        const step = await withinTime(next, { ...this.#options, delayMs: undefined, signal });
        this.#tellChanges(scope);
        if (step.done !== true && !signal.aborted) await this.#tellValue(running, step.value);
        if (scope.ctx.endInvocation) this.#options.listener.ends();
        if (step.done === true || signal.aborted) break;
        // One that waits for nothing would let nobody else have a turn.
        await nextTurn();
        await pace.next();
      }
    } catch (error) {
      if (!signal.aborted) failure = { error };
    }
    // A generator that still works on its next value ends when it has it; who stops it waits for that, for a second.
    await source.return?.();
    if (failure !== undefined) throw failure.error;
  }

  #timed<Value>({ name }: Tool, begin: () => Value): Value {
    return timed(this.#options, { tool: name }, begin);
  }

  async #tellValue({ tool, scope, after, controller: { signal } }: Running, value: unknown): Promise<void> {
    const { listener, secrets } = this.#options;
    const { name, interrupts } = tool;
    let response = responseOf(value, (error) => secrets.errorText(error));
    if (after !== undefined) response = await after(response, scope.ctx, signal);
    if (signal.aborted) return;
    const text = `${name} reports: ${textOf(secrets.json(response))}`.slice(0, UPDATE_MAX_CHARS);
    listener.update({ replaces: name, text, interrupts });
  }

  #tellChanges(scope: CallScope): void {
    const actions = scope.takeActions();
    if (hasChanges(actions)) void this.#options.listener.changed(actions);
  }
}

const FRAMES_MAX = { sound: INPUT_STREAM_MAX_FRAMES, image: INPUT_STREAM_MAX_IMAGES } as const;

/** A text is told as it is, without what it is wrapped in. */
function textOf(response: Response): string {
  const { result } = response;
  return typeof result === 'string' && Object.keys(response).length === 1 ? result : JSON.stringify(response);
}

/** A generator is not asked for more than somebody could use. */
class Pace {
  readonly #clock: Clock;
  readonly #aborted: Promise<void>;
  #secondFromMs: number;
  #values = 0;

  constructor(clock: Clock, signal: AbortSignal) {
    this.#clock = clock;
    this.#secondFromMs = clock.nowMs();
    this.#aborted = new Promise((resolve) => {
      signal.addEventListener('abort', () => resolve(), { once: true });
    });
  }

  /** Resolves when the next value may be asked for, or nobody wants one any more. */
  async next(): Promise<void> {
    this.#values += 1;
    const leftMs = this.#secondFromMs + 1_000 - this.#clock.nowMs();
    if (leftMs > 0 && this.#values < STREAMING_VALUES_PER_S_MAX) return;
    if (leftMs > 0) await within(this.#clock, leftMs, this.#aborted);
    this.#secondFromMs = this.#clock.nowMs();
    this.#values = 0;
  }
}

function iteratorOf(value: unknown): AsyncIterator<unknown> {
  if (typeof value === 'object' && value !== null && Symbol.asyncIterator in value)
    return (value as AsyncIterable<unknown>)[Symbol.asyncIterator]();
  throw new TypeError('it returned no async generator');
}
