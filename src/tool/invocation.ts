/**
 * One run of an agent as its tools see it: who is on the line, what was said, what is kept. Made at the run's start, the
 * same for all its turns; each call gets a context of its own, whose changes are told with its result.
 */
import type { AgentContext } from '../agent/agent.js';
import { deepFreeze } from '../agent/deep-freeze.js';
import type {
  InputStream,
  LoadedArtifact,
  MemoryAccess,
  RunSettings,
  ToolCallControl,
  ToolContext,
} from '../agent/tool-context.js';
import type { Clock } from '../clock.js';
import type { Event, EventActions, JsonObject } from '../event/event.js';
import type { RunItem } from '../event/run-stream.js';
import { handedOut, isSet } from '../foreign.js';
import { TRANSCRIPT_MAX_CHARS } from '../limits.js';
import type { Log } from '../observe/log.js';
import { CONTEXT_EVENTS_MAX, LATE_CHANGES_MAX_MS, UPDATE_MAX_CHARS } from '../tool-limits.js';
import { Changes } from './changes.js';
import type { RunSecrets } from './run-secrets.js';
import { type OnChange, RunState } from './run-state.js';
import { SharedValues } from './shared-state.js';

/** Where artifacts are kept. Rejects with a StoreError. */
export interface ArtifactAccess {
  save(name: string, bytes: Uint8Array, mimeType: string): Promise<number>;
  load(name: string, version: number | undefined): Promise<LoadedArtifact | undefined>;
}

export interface InvocationOptions {
  readonly identity: AgentContext;
  readonly runConfig: RunSettings;
  /** What is handed out, and told nowhere. */
  readonly secrets: RunSecrets;
  /** Committed events before this run, oldest first. */
  readonly history: readonly Event[];
  /** The session's state as it is stored, with its user's and its app's. */
  readonly state: JsonObject;
  readonly artifacts: ArtifactAccess;
  readonly memory: MemoryAccess;
  readonly callControl: ToolCallControl;
  readonly clock: Clock;
  readonly log: Log;
  /** A tool has something to tell the model at the next pause. */
  readonly onFollowUp: (text: string) => void;
  /** Tells what a call has changed behind its end; resolves when it is told. Never rejects. */
  readonly onChanged: (actions: EventActions) => Promise<void>;
}

export interface ScopeOptions {
  readonly inputStream?: InputStream | undefined;
  /** How long behind the end of the run its call may still change something. */
  readonly lateMaxMs?: number;
}

/** The context of one call, and what was changed through it. */
export interface CallScope {
  readonly ctx: ToolContext;
  /** Whether the author has set `ctx.endInvocation`. Never throws. */
  readonly endsInvocation: boolean;
  /** Changes since it was last asked, for the event that tells of them. */
  takeActions(): EventActions;
  /** Changes that were made elsewhere, in a worker. */
  applyState(delta: JsonObject): void;
  /** Nothing is kept any more of what it still does: state and artifacts throw. What is being saved is told by itself. */
  close(): void;
}

export class Invocation {
  readonly #options: InvocationOptions;
  readonly #state: RunState;
  readonly #shared: SharedValues;
  #events: Event[];
  /** What the caller is saying. */
  #open: { readonly msg: string; readonly event: Event } | undefined;
  #overAtMs: number | undefined;

  constructor(options: InvocationOptions) {
    this.#options = options;
    this.#state = new RunState(options.state, options.secrets);
    this.#shared = new SharedValues(options.clock);
    this.#events = options.history.slice(-CONTEXT_EVENTS_MAX);
  }

  get identity(): AgentContext {
    return this.#options.identity;
  }

  /** The run as it goes on. */
  hear(item: RunItem): void {
    if (item.type === 'delta' && item.role === 'user') return this.#hearCaller(item.msg, item.event);
    if (item.type !== 'event' && item.type !== 'sealed') return;
    if (item.type === 'sealed' && item.msg === this.#open?.msg) this.#open = undefined;
    if (item.event !== undefined) this.#add(item.event);
  }

  /** What the caller is saying is complete only when the agent has answered it, which may have to wait for a tool. */
  #hearCaller(msg: string, event: Event): void {
    const before = this.#open?.msg === msg ? this.#open.event : undefined;
    const text = [before, event].map((one) => one?.content?.parts?.[0]?.text ?? '').join('');
    const content = { role: 'user', parts: [{ text: text.slice(-TRANSCRIPT_MAX_CHARS) }] } as const;
    const { id, timestamp } = before ?? event;
    this.#open = { msg, event: deepFreeze({ ...event, id, timestamp, content }) };
  }

  #add(event: Event): void {
    if (this.#events.length >= 2 * CONTEXT_EVENTS_MAX) this.#events = this.#events.slice(-CONTEXT_EVENTS_MAX);
    // What the tools see is what is stored: none of them can change it.
    this.#events.push(deepFreeze(event));
  }

  /** The run is over: what its calls change from now on nobody takes, and is told by itself. */
  over(): void {
    this.#overAtMs ??= this.#options.clock.nowMs();
  }

  /** What of it can travel to a worker. */
  snapshot(): { readonly state: JsonObject; readonly events: readonly Event[] } {
    return { state: this.#state.snapshot(), events: this.#eventsNow() };
  }

  #eventsNow(): readonly Event[] {
    const events = this.#open === undefined ? this.#events : [...this.#events, this.#open.event];
    return events.slice(-CONTEXT_EVENTS_MAX);
  }

  scope(signal: AbortSignal, { inputStream, lateMaxMs = LATE_CHANGES_MAX_MS }: ScopeOptions = {}): CallScope {
    const { identity, runConfig, secrets, memory, callControl, onFollowUp, onChanged } = this.#options;
    const kept = new Changes({ overForMs: () => this.#overForMs(), lateMaxMs, tell: onChanged });
    const onState: OnChange = (key, value, bytes) => kept.state(key, value, bytes);
    const eventsOf = (): readonly Event[] => Object.freeze(this.#eventsNow());
    const ctx: ToolContext = {
      ...identity,
      get events() {
        return eventsOf();
      },
      runConfig,
      signal,
      state: this.#state.view(onState),
      shared: this.#shared.for(signal),
      memory: withoutSecrets(memory, secrets),
      inputStream,
      callControl,
      endInvocation: false,
      userScopes() {
        if (runConfig.userScopes === undefined)
          throw new Error('userScopes: the agent’s runConfig has no userScopes');
        return runConfig.userScopes(identity);
      },
      getSecret: (name) => handedOut(() => this.#secret(name)),
      followUp(text) {
        if (typeof text !== 'string' || text.trim() === '') throw new TypeError('followUp: text is needed');
        if (text.length > UPDATE_MAX_CHARS)
          throw new RangeError(
            `followUp: the text has ${text.length} characters; ${UPDATE_MAX_CHARS} are the most`,
          );
        onFollowUp(text);
      },
      saveArtifact: (...artifact) => handedOut(() => this.#saveArtifact(kept, artifact)),
      loadArtifact: (name, version) => handedOut(() => this.#options.artifacts.load(name, version)),
    };
    return {
      ctx,
      get endsInvocation() {
        return isSet(ctx, 'endInvocation');
      },
      takeActions: () => kept.take(),
      applyState: (delta) => {
        kept.check();
        for (const [key, value] of Object.entries(delta)) this.#state.set(key, value, onState);
      },
      close: () => kept.close(),
    };
  }

  #overForMs(): number | undefined {
    return this.#overAtMs === undefined ? undefined : this.#options.clock.nowMs() - this.#overAtMs;
  }

  async #saveArtifact(
    kept: Changes,
    [name, bytes, mimeType]: Parameters<ToolContext['saveArtifact']>,
  ): Promise<number> {
    const { secrets } = this.#options;
    if (secrets.holds(name) || secrets.holds(mimeType))
      throw new TypeError('saveArtifact: its name or its type holds a secret, which is not kept');
    kept.artifactBegun(name);
    const version = await this.#options.artifacts.save(name, bytes, mimeType);
    kept.artifact(name, version);
    return version;
  }

  async #secret(name: string): Promise<string | null> {
    const found = await this.#lookUp(name);
    if (found === undefined) throw new Error(`getSecret: ${name} could not be looked up`);
    const value = found.value ?? null;
    if (value === null) return null;
    if (typeof value !== 'string') throw new TypeError(`getSecret: ${name} is no text`);
    this.#options.secrets.keep(name, value);
    return value;
  }

  /** Undefined: it failed. What the author's own look-up throws may hold what opens the place: no tool is told it. */
  async #lookUp(name: string): Promise<{ readonly value: unknown } | undefined> {
    const { identity, runConfig, secrets, log } = this.#options;
    if (runConfig.getSecret === undefined)
      throw new Error('getSecret: the agent’s runConfig has no getSecret');
    try {
      return { value: await runConfig.getSecret(name, identity) };
    } catch (error) {
      const { callSid } = identity;
      const pii = { name, cause: secrets.errorText(error) };
      log.error({ callSid, pii }, 'a secret could not be looked up');
      return undefined;
    }
  }
}

/** As a tool gets it. What is remembered goes into the instruction of the next run. */
function withoutSecrets(memory: MemoryAccess, secrets: RunSecrets): MemoryAccess {
  return {
    remember: (entity, facts) => handedOut(() => memory.remember(secrets.json(entity), secrets.json(facts))),
    relate: (...related) => handedOut(() => memory.relate(...secrets.json(related))),
  };
}
