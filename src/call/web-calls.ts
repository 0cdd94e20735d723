/**
 * Conversations with web clients: calls without a carrier. Nobody announced them and nobody but the client's socket can end
 * their line, so there is no webhook, no token, no REST and no recording; everything else is a call's. Whether there is
 * room for one more is the registry's to say.
 */
import type { Agent } from '../agent/agent.js';
import type { SocketScope } from '../call-tap.js';
import type { Event } from '../event/event.js';
import { newId } from '../ids.js';
import { sessionName } from '../store/session-name.js';
import type { CallControl } from '../telephony/call-control.js';
import type { MediaStream, MediaStreamListener } from '../telephony/media-stream.js';
import { Call } from './call.js';
import type { CallDeps } from './call-deps.js';

/** A session belongs to a user, and to one conversation at a time. */
export interface WebCaller {
  readonly userId: string;
  readonly sessionId: string;
}

/** A client's line into its conversation. */
export interface WebLine {
  /** `callSid` of the conversation, by which its run is known too. */
  readonly callSid: string;
  readonly listener: MediaStreamListener;
  readonly scope: SocketScope;
  /** The conversation has begun: a client that comes back has nothing to wait for, even while the model is away. */
  readonly isReady: boolean;
  /** Takes what the user typed. False: too much waits, or it is over. */
  type(text: string): boolean;
  /** Gives the model a picture. False: there is no model now, or it takes none. */
  show(mimeType: string, image: Uint8Array): boolean;
}

export interface WebRefusal {
  readonly code: 'run_conflict' | 'run_refused' | 'server_draining';
  /** For the client. */
  readonly refused: string;
}

export interface WebCallsOptions {
  readonly agent: Agent;
  readonly deps: CallDeps;
  readonly onEnded: (call: Call) => void;
}

/** The line ends with the client's socket. */
const NO_CARRIER: CallControl = {
  hangUp: () => Promise.resolve({ kind: 'unavailable' }),
  whyNoTransfer: 'This conversation is not on the telephone: nobody can be connected.',
  transfer: () => Promise.resolve({ kind: 'unavailable' }),
};

export class WebCalls {
  readonly #options: WebCallsOptions;
  readonly #calls = new Map<string, Call>();

  constructor(options: WebCallsOptions) {
    this.#options = options;
  }

  get all(): Iterable<Call> {
    return this.#calls.values();
  }

  get count(): number {
    return this.#calls.size;
  }

  /** Begins a conversation on `stream`. The session must have none. */
  open(caller: WebCaller, stream: MediaStream, history: readonly Event[]): WebLine | WebRefusal {
    const { agent, deps } = this.#options;
    const key = this.#keyOf(caller);
    const { openTap: _unrecorded, ...shared } = deps;
    const call = new Call({
      identity: {
        ...caller,
        invocationId: newId(),
        callSid: stream.callSid,
        appName: agent.name,
        callerVerified: false,
        callDirection: 'web',
      },
      agent,
      history,
      deps: {
        ...shared,
        callControl: NO_CARRIER,
        // Somebody who reads may take their time: silence is not a sign that they have gone.
        ...(stream.isSilent === true && { idleRepromptMs: 0 }),
      },
      onEnded: (ended) => {
        this.#calls.delete(key);
        this.#options.onEnded(ended);
      },
    });
    this.#calls.set(key, call);
    call.announce({ prewarm: true });
    return lineOf(call, stream);
  }

  /** Gives a session's conversation another stream in the place of its own; undefined where there is none. */
  rejoin(caller: WebCaller, stream: MediaStream): WebLine | WebRefusal | undefined {
    const call = this.#calls.get(this.#keyOf(caller));
    return call && lineOf(call, stream);
  }

  #keyOf({ userId, sessionId }: WebCaller): string {
    return sessionName({ appName: this.#options.agent.name, userId, id: sessionId });
  }
}

function lineOf(call: Call, stream: MediaStream): WebLine | WebRefusal {
  const accepted = call.attachStream(stream);
  if ('refused' in accepted) return { code: 'run_conflict', refused: accepted.refused };
  return {
    ...accepted,
    callSid: call.callSid,
    isReady: call.isLive,
    type(text) {
      if (!call.mayType) return false;
      call.enter();
      call.guard(() => call.post({ type: 'typed', text }));
      return true;
    },
    show(mimeType, image) {
      call.enter();
      return call.onImage(mimeType, image);
    },
  };
}
