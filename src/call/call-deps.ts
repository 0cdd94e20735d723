/**
 * What every call of a server shares; built in `switchboard.ts`, or in a test.
 */
import type { CallTap } from '../call-tap.js';
import type { Clock } from '../clock.js';
import type { Event } from '../event/event.js';
import type { RunStream } from '../event/run-stream.js';
import type { ConnectLive } from '../model/live-connection.js';
import type { CallObserver } from '../observe/call-observer.js';
import type { Log } from '../observe/log.js';
import type { CallControl } from '../telephony/call-control.js';
import type { CallIdentity } from './call-identity.js';
import type { Prompts } from './prompts.js';

export interface CallDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly observer: CallObserver;
  readonly connectLive: ConnectLive;
  readonly callControl: CallControl;
  readonly prompts: Prompts;
  /** Who records the call, if anybody does. */
  readonly openTap?: (call: CallIdentity, clock: Clock) => CallTap | undefined;
  /** Who follows the run, from its first event on; `history` is what the session held before. */
  readonly openRun?: (call: CallIdentity, run: RunStream, history: readonly Event[]) => void;
  /** 0 = no limit, for each of these. */
  readonly callMaxMs: number;
  readonly idleRepromptMs: number;
  readonly greetingProtectionMs: number;
}
