/**
 * One run of an agent as its tools see it: who is on the line, what was said, what is kept. Made at the run's start, the
 * same for all its turns; each call gets a context of its own, whose changes are told with its result.
 */
import type { AgentContext } from '../agent/agent.js';
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
import type { Log } from '../observe/log.js';
import { CONTEXT_EVENTS_MAX } from '../tool-limits.js';
import type { RunSecrets } from './run-secrets.js';
import { RunState } from './run-state.js';
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
}

/** The context of one call, and what was changed through it. */
export interface CallScope {
  readonly ctx: ToolContext;
  /** Changes since it was last asked, for the event that tells of them. */
  takeActions(): EventActions;
  /** Changes that were made elsewhere, in a worker. */
  applyState(delta: JsonObject): void;
  /** Nothing is kept any more of what it still does; state and artifacts throw. */
  close(): void;
}

export class Invocation {
  readonly #options: InvocationOptions;
  readonly #state: RunState;
  readonly #shared: SharedValues;
  #events: Event[];

  constructor(options: InvocationOptions) {
    this.#options = options;
    this.#state = new RunState(options.state, options.secrets);
    this.#shared = new SharedValues(options.clock);
    this.#events = options.history.slice(-CONTEXT_EVENTS_MAX);
  }

  get identity(): AgentContext {
    return this.#options.identity;
  }

  /** An event of this run that is no fragment. */
  hear(event: Event): void {
    if (this.#events.length >= 2 * CONTEXT_EVENTS_MAX) this.#events = this.#events.slice(-CONTEXT_EVENTS_MAX);
    this.#events.push(event);
  }

  /** What of it can travel to a worker. */
  snapshot(): { readonly state: JsonObject; readonly events: readonly Event[] } {
    return { state: this.#state.snapshot(), events: this.#events.slice(-CONTEXT_EVENTS_MAX) };
  }

  scope(signal: AbortSignal, inputStream?: InputStream): CallScope {
    const { identity, runConfig, secrets, artifacts, memory, callControl, onFollowUp } = this.#options;
    const kept = new Changes();
    const eventsOf = (): readonly Event[] => Object.freeze(this.#events.slice(-CONTEXT_EVENTS_MAX));
    const ctx: ToolContext = {
      ...identity,
      get events() {
        return eventsOf();
      },
      runConfig,
      signal,
      state: this.#state.view((key, value) => kept.state(key, value)),
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
      getSecret: (name) => this.#secret(name),
      followUp(text) {
        if (typeof text !== 'string' || text.trim() === '') throw new TypeError('followUp: text is needed');
        onFollowUp(text);
      },
      async saveArtifact(name, bytes, mimeType) {
        kept.check();
        if (secrets.holds(name) || secrets.holds(mimeType))
          throw new TypeError('saveArtifact: its name or its type holds a secret, which is not kept');
        const version = await artifacts.save(name, bytes, mimeType);
        kept.artifact(name, version);
        return version;
      },
      loadArtifact: (name, version) => artifacts.load(name, version),
    };
    return {
      ctx,
      takeActions: () => kept.take(),
      applyState: (delta) => {
        kept.check();
        for (const [key, value] of Object.entries(this.#state.apply(delta))) kept.state(key, value);
      },
      close: () => kept.close(),
    };
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

/** Whether there is anything to tell. */
export function hasChanges({ stateDelta, artifactDelta }: EventActions): boolean {
  return Object.keys(stateDelta).length > 0 || Object.keys(artifactDelta).length > 0;
}

/** What is remembered goes into the instruction of the next run. */
function withoutSecrets(memory: MemoryAccess, secrets: RunSecrets): MemoryAccess {
  return {
    remember: (entity, facts) => memory.remember(secrets.json(entity), secrets.json(facts)),
    relate: (...related) => memory.relate(...secrets.json(related)),
  };
}

class Changes {
  #state = new Map<string, unknown>();
  #artifacts = new Map<string, number>();
  #isClosed = false;

  check(): void {
    if (this.#isClosed) throw new Error('the call is over: nothing more is kept of it');
  }

  state(key: string, value: unknown): void {
    this.check();
    this.#state.set(key, value);
  }

  /** A version that is there is told, however late. */
  artifact(name: string, version: number): void {
    this.#artifacts.set(name, version);
  }

  take(): EventActions {
    const actions = {
      stateDelta: Object.fromEntries(this.#state),
      artifactDelta: Object.fromEntries(this.#artifacts),
    };
    this.#state = new Map();
    this.#artifacts = new Map();
    return actions;
  }

  close(): void {
    this.#isClosed = true;
  }
}
