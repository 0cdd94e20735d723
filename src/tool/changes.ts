/**
 * What one call has changed and no event has told yet, bounded so that the event that will tell it can be stored. While the
 * call goes on somebody takes it: with the result, or at the end of the run. What comes behind that is told by itself.
 */
import { nextTurn } from '../clock.js';
import type { EventActions } from '../event/event.js';
import { faultOfName } from '../event/name-fault.js';
import { CHANGES_MAX_BYTES } from '../tool-limits.js';

/** Whether there is anything to tell. */
export function hasChanges({ stateDelta, artifactDelta }: EventActions): boolean {
  return Object.keys(stateDelta).length > 0 || Object.keys(artifactDelta).length > 0;
}

/** The newest value of each key, and the newest version of each artifact. */
export class Delta {
  #state = new Map<string, unknown>();
  #artifacts = new Map<string, number>();
  /** As JSON, of each key with its value and of each artifact's name. */
  #bytes = new Map<string, number>();
  #sum = 0;

  /** @throws RangeError above CHANGES_MAX_BYTES; nothing is kept then. */
  setState(key: string, value: unknown, valueBytes: number): void {
    this.#reserve(`state ${key}`, jsonBytes(key) + valueBytes);
    this.#state.set(key, value);
  }

  /** @throws RangeError above CHANGES_MAX_BYTES; before it is saved, for a version that is there has to be told. */
  reserveArtifact(name: string): void {
    this.#reserve(`artifact ${name}`, jsonBytes(name) + VERSION_BYTES);
  }

  addArtifact(name: string, version: number): void {
    this.#artifacts.set(name, version);
  }

  /** All since it was last taken. */
  take(): EventActions {
    const actions = {
      stateDelta: Object.fromEntries(this.#state),
      artifactDelta: Object.fromEntries(this.#artifacts),
    };
    this.#state = new Map();
    this.#artifacts = new Map();
    this.#bytes = new Map();
    this.#sum = 0;
    return actions;
  }

  #reserve(what: string, bytes: number): void {
    const sum = this.#sum - (this.#bytes.get(what) ?? 0) + bytes;
    if (sum > CHANGES_MAX_BYTES)
      throw new RangeError(
        `what one call changes has at most ${CHANGES_MAX_BYTES} bytes as JSON: keep more with saveArtifact`,
      );
    this.#bytes.set(what, bytes);
    this.#sum = sum;
  }
}

/** Digits of the largest version. */
const VERSION_BYTES = 16;

function jsonBytes(text: string): number {
  return Buffer.byteLength(JSON.stringify(text));
}

export interface ChangesOptions {
  /** For how long the run has been over; undefined while it goes on. */
  readonly overForMs: () => number | undefined;
  /** How long behind the end of its run the call may still change something. */
  readonly lateMaxMs: number;
  /** Tells what nobody takes any more; resolves when that is told. Never rejects. */
  readonly tell: (actions: EventActions) => Promise<void>;
}

export class Changes {
  readonly #options: ChangesOptions;
  readonly #delta = new Delta();
  #isClosed = false;
  #isTelling = false;

  constructor(options: ChangesOptions) {
    this.#options = options;
  }

  /** @throws Error where nothing is kept any more. */
  check(): void {
    const { overForMs, lateMaxMs } = this.#options;
    if (this.#isClosed || (overForMs() ?? 0) > lateMaxMs)
      throw new Error('the call is over: nothing more is kept of it');
  }

  state(key: string, value: unknown, valueBytes: number): void {
    this.check();
    this.#delta.setState(key, value, valueBytes);
    this.#tellUntaken();
  }

  /** One is about to be saved. @throws TypeError for a name under which nothing can be stored. */
  artifactBegun(name: string): void {
    this.check();
    const fault = faultOfName(name);
    if (fault !== undefined) throw new TypeError(`saveArtifact: the name ${fault}`);
    this.#delta.reserveArtifact(name);
  }

  /** A version that is there is told, however late. */
  artifact(name: string, version: number): void {
    this.#delta.addArtifact(name, version);
    this.#tellUntaken();
  }

  take(): EventActions {
    return this.#delta.take();
  }

  close(): void {
    this.#isClosed = true;
  }

  #tellUntaken(): void {
    const isTaken = !this.#isClosed && this.#options.overForMs() === undefined;
    if (isTaken || this.#isTelling) return;
    this.#isTelling = true;
    void this.#tellAll();
  }

  /** One event at a time, however often something is changed meanwhile. */
  async #tellAll(): Promise<void> {
    // What a handler changes right in front of its end goes with its result.
    await nextTurn();
    for (let actions = this.take(); hasChanges(actions); actions = this.take())
      await this.#options.tell(actions);
    this.#isTelling = false;
  }
}
