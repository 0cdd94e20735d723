/**
 * `ctx` in a worker: a snapshot of the call's context. State can be changed, and the change goes back with the result;
 * what belongs to the running call (its line, its sound, its other tools) is not here, and says so by name.
 */
import type { RunConfig } from '../agent/agent.js';
import type { LoadedArtifact, ToolContext } from '../agent/tool-context.js';
import type { Event, JsonObject } from '../event/event.js';
import { Delta } from './changes.js';
import { RunState } from './run-state.js';
import type { WorkerSnapshot } from './worker-messages.js';

/** What is not here stands on the prototype, so that a copy of the context (`{...ctx}`) does not ask for it. */
export class WorkerContext implements ToolContext {
  readonly invocationId: string;
  readonly callSid: string;
  readonly appName: string;
  readonly userId: string;
  readonly sessionId: string;
  readonly callerVerified: boolean;
  readonly events: readonly Event[];
  readonly runConfig: RunConfig;
  /** Never aborts: a call that is stopped takes its thread with it. */
  readonly signal: AbortSignal = new AbortController().signal;
  readonly state: Record<string, unknown>;
  endInvocation = false;
  readonly userScopes: () => readonly string[];
  readonly getSecret: (name: string) => Promise<string | null>;
  readonly #changes = new Delta();
  #isOver = false;

  constructor(snapshot: WorkerSnapshot, getSecret: (name: string) => Promise<string | null>) {
    this.invocationId = snapshot.invocationId;
    this.callSid = snapshot.callSid;
    this.appName = snapshot.appName;
    this.userId = snapshot.userId;
    this.sessionId = snapshot.sessionId;
    this.callerVerified = snapshot.callerVerified;
    this.events = Object.freeze(snapshot.events);
    this.runConfig = Object.freeze(snapshot.runConfig);
    this.state = new RunState(snapshot.state).view((key, value, bytes) => {
      if (this.#isOver) throw new Error('the call is over: nothing more is kept of it');
      this.#changes.setState(key, value, bytes);
    });
    const { scopes } = snapshot;
    this.userScopes = () => {
      if (scopes === undefined) throw new Error('userScopes: the agent’s runConfig has no userScopes');
      return scopes;
    };
    this.getSecret = getSecret;
  }

  /** What the call changed; later changes throw. */
  takeStateDelta(): JsonObject {
    this.#isOver = true;
    return this.#changes.take().stateDelta;
  }

  get memory(): never {
    return notHere('memory');
  }

  get shared(): never {
    return notHere('shared');
  }

  get callControl(): never {
    return notHere('callControl');
  }

  get inputStream(): never {
    return notHere('inputStream');
  }

  followUp(): never {
    return notHere('followUp');
  }

  saveArtifact(): Promise<number> {
    return notHere('saveArtifact');
  }

  loadArtifact(): Promise<LoadedArtifact | undefined> {
    return notHere('loadArtifact');
  }
}

function notHere(name: string): never {
  throw new Error(`ctx.${name} is not there in a worker tool: its context is a snapshot`);
}
