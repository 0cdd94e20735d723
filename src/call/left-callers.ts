/**
 * Callers who are still on the line though no call of this server has them: their server was lost, or handed them over, or is this one and
 * stopping. The carrier asks what follows their stream, and here is the answer: the conversation goes on, a moment's patience, or
 * an apology.
 */
import type { Agent } from '../agent/agent.js';
import type { AgentCatalog } from '../agent/agent-catalog.js';
import { HOLDS_MAX } from '../handover-limits.js';
import type { CallSid } from '../ids.js';
import { ENDED_CALLS_MAX } from '../limits.js';
import type { Log } from '../observe/log.js';
import type { VoiceAnswer } from '../telephony/voice-door.js';
import type { KeptCalls, TakeUp } from './kept-calls.js';

export type TakenCall = Extract<TakeUp, { kind: 'taken' }>;

export interface LeftCallersOptions {
  /** Without it nothing is known of other servers' calls. */
  readonly kept: KeptCalls | undefined;
  readonly agents: Pick<AgentCatalog, 'named'>;
  /** Why no call can be taken at the moment; undefined: one can. */
  readonly whyNot: () => 'draining' | 'full' | undefined;
  /** Makes a call of what was taken up, and says where its stream goes. */
  readonly goOn: (taken: TakenCall, agent: Agent) => VoiceAnswer;
  readonly log: Log;
}

export class LeftCallers {
  readonly #options: LeftCallersOptions;
  /** How often each was asked for patience; the oldest are forgotten. */
  readonly #holds = new Map<CallSid, number>();
  /** The carrier may ask twice at once, and both are answered alike. */
  readonly #going = new Map<CallSid, Promise<VoiceAnswer>>();

  /** Handed over by this server, and not asked about yet. */
  readonly #awaited = new Set<CallSid>();
  #hasLeft = false;
  #onAllAsked: (() => void) | undefined;

  constructor(options: LeftCallersOptions) {
    this.#options = options;
  }

  /** At once where nothing has to be looked up. */
  answer(callSid: CallSid): VoiceAnswer | Promise<VoiceAnswer> {
    const { kept, whyNot, log } = this.#options;
    if (kept === undefined) {
      log.warn({ callSid }, 'a call came back that this server does not have');
      return { kind: 'apology' };
    }
    if (whyNot() !== undefined) return this.hold(callSid);
    const going = this.#going.get(callSid);
    if (going !== undefined) return going;
    const taking = this.#takeUp(callSid, kept).finally(() => this.#going.delete(callSid));
    this.#going.set(callSid, taking);
    return taking;
  }

  /** This server, which stops, has left a caller: the carrier will ask here or elsewhere. */
  leave(callSid: CallSid): void {
    this.#hasLeft = true;
    this.#awaited.add(callSid);
  }

  /** Resolves when the carrier has asked here about each caller that was left; never where none was. */
  asked(): Promise<void> {
    if (this.#hasLeft && this.#awaited.size === 0) return Promise.resolve();
    return new Promise((resolve) => (this.#onAllAsked = resolve));
  }

  /** Another server may be asked the next time, or this one's successor. */
  hold(callSid: CallSid): VoiceAnswer {
    if (this.#awaited.delete(callSid) && this.#awaited.size === 0) this.#onAllAsked?.();
    const count = (this.#holds.get(callSid) ?? 0) + 1;
    this.#holds.delete(callSid);
    this.#holds.set(callSid, count);
    for (const oldest of this.#holds.keys()) {
      if (this.#holds.size <= ENDED_CALLS_MAX) break;
      this.#holds.delete(oldest);
    }
    if (count <= HOLDS_MAX) return { kind: 'hold' };
    return { kind: this.#options.whyNot() === 'full' ? 'busy' : 'apology' };
  }

  async #takeUp(callSid: CallSid, kept: KeptCalls): Promise<VoiceAnswer> {
    const { agents, whyNot, goOn, log } = this.#options;
    const outcome = await kept.takeUp(callSid, (appName) => agents.named(appName) !== undefined);
    switch (outcome.kind) {
      case 'taken':
        break;
      case 'over':
        return { kind: 'hangup' };
      case 'others':
        return this.hold(callSid);
      case 'noAgent':
        log.warn(
          { callSid, agent: outcome.appName },
          'a call came back to an agent that does not exist here',
        );
        return { kind: 'apology' };
      case 'unknown':
        log.warn({ callSid }, 'a call came back that no server of this store has had');
        return { kind: 'apology' };
      case 'failed':
        // A store that is held up for a moment may answer the next time.
        return this.hold(callSid);
    }
    const agent = agents.named(outcome.record.appName);
    if (agent === undefined || whyNot() === 'draining') {
      kept.giveBack(outcome.record);
      return this.hold(callSid);
    }
    this.#holds.delete(callSid);
    return goOn(outcome, agent);
  }
}
