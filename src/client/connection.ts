/**
 * What the two connections have in common: the state that a page shows, the watch on silence, how a connection ends, and
 * what the caller gets to hold. Frames go from here into the reducer, in the order in which they came.
 */
import { SILENCE_MAX_MS } from './bounds.js';
import { readFrameText, type Frame } from './frame.js';
import { platformClock, type ClientClock, type ClientTimer } from './platform.js';
import { initialState, reduceReading, restart, type ClientState } from './reducer.js';
import type { RetryOptions } from './retry.js';

/** `closed`: by us. `finished`: the server has nothing more. `refused`: the server does not want us. `lost`: given up. */
export type EndReason = 'closed' | 'finished' | 'refused' | 'lost';

export interface ConnectionEnd {
  readonly reason: EndReason;
  /** For a log, not for people on the page. */
  readonly detail: string;
}

export type ConnectionStatus = 'connecting' | 'open' | 'waiting' | 'ended';

export interface ConnectionOptions extends RetryOptions {
  /** Called after each frame that changed the state, with the frame if it could be read. */
  readonly onChange?: (state: ClientState, frame: Frame | undefined) => void;
  readonly onStatus?: (status: ConnectionStatus) => void;
  /** Ends the connection. */
  readonly signal?: AbortSignal;
  /** Without anything from the server for so long, the connection counts as dead; 40,000 by default. */
  readonly silenceMaxMs?: number;
}

export interface Connection {
  /** The state now. */
  readonly state: ClientState;
  /** Resolves once, when nothing more will come; rejects only with what a callback of the application threw. */
  readonly ended: Promise<ConnectionEnd>;
  close(): void;
}

/** The state of a connection over all its attempts. */
export class FrameIntake {
  readonly #onChange: ConnectionOptions['onChange'];
  #state: ClientState = initialState;
  #isFirst = true;

  constructor(onChange: ConnectionOptions['onChange']) {
    this.#onChange = onChange;
  }

  get state(): ClientState {
    return this.#state;
  }

  /** A new attempt has been answered. With `anew` its numbers have nothing to do with the ones before. */
  begin(anew: boolean): void {
    this.#isFirst = !anew;
    if (anew && this.#state !== initialState) this.#state = restart(this.#state);
  }

  /** Takes a frame's text; true if it brought something that was not known. */
  take(text: string): boolean {
    const reading = readFrameText(text);
    const seq =
      reading.kind === 'refused' ? undefined : reading.kind === 'frame' ? reading.frame.seq : reading.seq;
    // A server only goes on above the last number; one that begins below it has begun to count anew.
    const last = this.#state.lastSeq;
    if (this.#isFirst && seq !== undefined && last !== undefined && seq <= last) {
      this.#state = restart(this.#state);
    }
    this.#isFirst = false;
    const before = this.#state;
    this.#state = reduceReading(before, reading);
    const isNew = this.#state.counts.repeated === before.counts.repeated;
    const frame = reading.kind === 'frame' ? reading.frame : undefined;
    if (this.#state !== before) this.#onChange?.(this.#state, frame);
    return isNew && frame !== undefined && frame.type !== 'history' && frame.type !== 'ready';
  }
}

/** Fires once nothing has been heard for a while. */
export class SilenceWatch {
  readonly #clock: ClientClock;
  readonly #maxMs: number;
  readonly #fire: () => void;
  #timer: ClientTimer | undefined;

  constructor(options: ConnectionOptions, fire: () => void) {
    this.#clock = options.clock ?? platformClock;
    this.#maxMs = options.silenceMaxMs ?? SILENCE_MAX_MS;
    this.#fire = fire;
    this.heard();
  }

  heard(): void {
    this.#timer?.cancel();
    this.#timer = this.#clock.setTimer(this.#maxMs, this.#fire);
  }

  stop(): void {
    this.#timer?.cancel();
  }
}

/** An abort that follows another signal until it is let go. */
export function linkedAbort(outer: AbortSignal): { controller: AbortController; release: () => void } {
  const controller = new AbortController();
  const onAbort = (): void => controller.abort();
  if (outer.aborted) onAbort();
  else outer.addEventListener('abort', onAbort, { once: true });
  return { controller, release: () => outer.removeEventListener('abort', onAbort) };
}
