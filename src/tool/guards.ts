/**
 * What stands between the model's call and the handler, and between the handler's result and the model: plugins by
 * priority, then the agent's own callback. The first value ends a stage. A guard that breaks refuses: a plugin in front of a
 * tool that throws or hangs is a refusal that names tool and cause, never a call that runs all the same.
 */
import type { Agent } from '../agent/agent.js';
import type { AfterTool, BeforeTool, Plugin } from '../agent/plugin.js';
import type { ToolContext } from '../agent/tool-context.js';
import type { Clock } from '../clock.js';
import type { Log } from '../observe/log.js';
import { GUARD_TIMEOUT_MS } from '../tool-limits.js';
import { timed } from './blocking.js';
import type { RunSecrets } from './run-secrets.js';
import { errorResponse, guardResponse, type Response } from './tool-result.js';
import { withinTime } from './within-time.js';

export interface GuardedCall {
  readonly tool: string;
  /** A copy of what the model passed; guards may change it. */
  readonly args: Record<string, unknown>;
  readonly ctx: ToolContext;
}

export type Verdict =
  /** `passed`: those who looked and let it go on, in order. */
  | { readonly kind: 'run'; readonly passed: readonly string[] }
  /** The result in the tool's place; the stage behind the tool sees it. */
  | { readonly kind: 'substitute'; readonly response: Response; readonly by: string }
  /** The result is this error, and nobody sees it any more. */
  | { readonly kind: 'refused'; readonly response: Response; readonly by: string };

/** Who is asked about which tool, and until when. */
interface Waited {
  readonly tool: string;
  readonly guard: string;
  readonly signal: AbortSignal;
}

const CALLBACK = 'agent';

export class Guards {
  readonly #agent: Agent;
  readonly #plugins: readonly Plugin[];
  readonly #timeoutMs: number;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #textOf: (error: unknown) => string;

  constructor(
    agent: Agent,
    deps: { readonly secrets: RunSecrets; readonly clock: Clock; readonly log: Log },
  ) {
    this.#agent = agent;
    this.#plugins = (agent.plugins ?? []).toSorted((a, b) => (a.priority ?? 0) - (b.priority ?? 0));
    this.#timeoutMs = agent.runConfig?.guardTimeoutMs ?? GUARD_TIMEOUT_MS;
    this.#clock = deps.clock;
    this.#log = deps.log;
    this.#textOf = (error) => deps.secrets.errorText(error);
  }

  /** Whether anybody looks at results. */
  get hasAfter(): boolean {
    return (
      this.#agent.afterTool !== undefined || this.#plugins.some((plugin) => plugin.afterTool !== undefined)
    );
  }

  async before(call: GuardedCall, signal: AbortSignal): Promise<Verdict> {
    // Arguments are changed in place: a change that the handler would not see must not be judged by the next guard.
    Object.freeze(call);
    const by = (guard: string): Waited => ({ tool: call.tool, guard, signal });
    const passed: string[] = [];
    for (const plugin of this.#plugins) {
      if (plugin.beforeTool === undefined) continue;
      try {
        const value = await this.#wait(by(plugin.name), () => plugin.beforeTool?.(call));
        const response = guardResponse(value, this.#textOf);
        if (response !== undefined) return { kind: 'substitute', response, by: plugin.name };
      } catch (error) {
        return this.#refused(call, plugin.name, error);
      }
      passed.push(plugin.name);
    }
    const { beforeTool } = this.#agent;
    if (beforeTool === undefined) return { kind: 'run', passed };
    try {
      const value = await this.#wait(by(CALLBACK), () => beforeTool(call));
      const response = guardResponse(value, this.#textOf);
      if (response !== undefined) return { kind: 'substitute', response, by: CALLBACK };
    } catch (error) {
      return this.#refused(call, CALLBACK, error);
    }
    return { kind: 'run', passed: [...passed, CALLBACK] };
  }

  /** Never rejects. Once `signal` is aborted nobody listens any more. */
  async after(call: GuardedCall, response: Response, signal: AbortSignal): Promise<Response> {
    const by = (guard: string): Waited => ({ tool: call.tool, guard, signal });
    for (const plugin of this.#plugins) {
      if (plugin.afterTool === undefined) continue;
      try {
        const value = await this.#wait(by(plugin.name), () => plugin.afterTool?.(seen(call, response)));
        const replaced = guardResponse(value, this.#textOf);
        if (replaced !== undefined) return replaced;
      } catch (error) {
        if (signal.aborted) return response;
        // The tool has run: its own result stands.
        this.#log.error(
          { tool: call.tool, plugin: plugin.name, pii: { cause: this.#textOf(error) } },
          'a plugin failed',
        );
      }
    }
    const { afterTool } = this.#agent;
    if (afterTool === undefined) return response;
    try {
      const value = await this.#wait(by(CALLBACK), () => afterTool(seen(call, response)));
      return guardResponse(value, this.#textOf) ?? response;
    } catch (error) {
      return errorResponse(this.#textOf(error));
    }
  }

  #refused({ tool }: BeforeTool, by: string, error: unknown): Verdict {
    const cause = this.#textOf(error);
    this.#log.warn({ tool, guard: by, pii: { cause } }, 'a call was refused by a guard that failed');
    const response = errorResponse(`The call of ${tool} was refused by ${by}: ${cause}`);
    return { kind: 'refused', response, by };
  }

  #wait({ signal, ...who }: Waited, ask: () => unknown): Promise<unknown> {
    const clock = this.#clock;
    const work = (async () => timed({ clock, log: this.#log }, who, ask))();
    return withinTime(work, { clock, delayMs: this.#timeoutMs, signal });
  }
}

/** Each gets a copy: only what is returned changes the result. */
function seen(call: GuardedCall, response: Response): AfterTool {
  return Object.freeze({ ...call, result: structuredClone(response) });
}
