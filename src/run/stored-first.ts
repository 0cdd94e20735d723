/**
 * Tells watchers what happens in a run, and nothing as final before it is stored: the sealing frame of a message, and what a
 * committed event says, wait until the store has it or has given it up. Deltas, and tools in the middle of a message, whose
 * place in the history is behind it, do not wait. Whoever hears of a run only from here finds all of it again after a crash.
 */
import type { Clock, Timer } from '../clock.js';
import type { Event } from '../event/event.js';
import type { RunItem } from '../event/run-stream.js';
import { SpokenOrder } from '../event/spoken-order.js';
import { STORE_SILENCE_TOLD_MS } from '../limits.js';
import type { AppendOutcome } from '../store/store.js';
import type { Broadcast } from '../wire/broadcast.js';
import type { Happening } from '../wire/happening.js';
import { RunHappenings } from './run-happenings.js';

export interface StoredFirstOptions {
  readonly broadcast: Broadcast;
  /** Called for each event once, in spoken order. */
  readonly append: (event: Event) => Promise<AppendOutcome>;
  readonly clock: Clock;
  /** Told of what no frame could be made of. It is left out; what stands around it is told. */
  readonly onFault: (error: unknown) => void;
}

/** What an item comes to, in the order of the items. */
interface Telling {
  readonly happenings: readonly Happening[];
  /** The event that has to be stored before; undefined once it is. */
  waitsFor: string | undefined;
  /** Whether it gives a message its place on the page: nothing behind it may be told before. */
  readonly isFirstOfMessage: boolean;
}

export class StoredFirst {
  readonly #options: StoredFirstOptions;
  readonly #happenings = new RunHappenings();
  readonly #order: SpokenOrder;
  #tellings: Telling[] = [];
  /** Handed to the store and not settled. */
  readonly #appending = new Set<string>();
  /** Messages that watchers have seen something of, or will with what waits. */
  readonly #shown = new Set<string>();
  /** Runs while the store has something and settles nothing. */
  #silence: Timer | undefined;
  #isSilenceTold = false;
  #isOver = false;
  #allTold: () => void = () => {};
  /** Resolves when the run is over and all of it is told. */
  readonly told = new Promise<void>((resolve) => {
    this.#allTold = resolve;
  });

  constructor(options: StoredFirstOptions) {
    this.#options = options;
    this.#order = new SpokenOrder((event) => this.#commit(event));
  }

  /** The agent's message that has begun and is not sealed. */
  get openMsg(): string | undefined {
    return this.#happenings.openMsg;
  }

  hear(item: RunItem): void {
    this.#order.hear(item);
    this.#tellings.push({
      happenings: this.#happenings.of(item),
      waitsFor: this.#waitsFor(item),
      isFirstOfMessage: this.#isFirstOfMessage(item),
    });
    if (item.type === 'over') this.#end();
    this.#pump();
  }

  /** A sealed message waits for its commit; anything else only if it was committed at once. */
  #waitsFor(item: RunItem): string | undefined {
    if (item.type === 'sealed') return item.event?.id;
    const isCommitted = item.type === 'event' && this.#appending.has(item.event.id);
    return isCommitted ? item.event.id : undefined;
  }

  /** All that could be committed is: nothing waits for anything else. */
  #end(): void {
    this.#isOver = true;
    for (const telling of this.#tellings) {
      if (!this.#appending.has(telling.waitsFor ?? '')) telling.waitsFor = undefined;
    }
  }

  #isFirstOfMessage(item: RunItem): boolean {
    if (item.type !== 'delta' && item.type !== 'sealed') return false;
    const isFirst = !this.#shown.has(item.msg);
    if (item.type === 'delta') this.#shown.add(item.msg);
    else this.#shown.delete(item.msg);
    return isFirst;
  }

  #commit(event: Event): void {
    this.#appending.add(event.id);
    this.#watchSilence();
    void this.#options.append(event).then((outcome) => {
      this.#appending.delete(event.id);
      if (outcome.stored) this.#isSilenceTold = false;
      this.#silence?.cancel();
      this.#silence = undefined;
      this.#watchSilence();
      if (!outcome.stored) this.#publish([lost(event.id, outcome.error.code)]);
      for (const telling of this.#tellings) {
        if (telling.waitsFor === event.id) telling.waitsFor = undefined;
      }
      this.#pump();
    });
  }

  #pump(): void {
    const waiting: Telling[] = [];
    let isBlocked = false;
    for (const telling of this.#tellings) {
      if (isBlocked || telling.waitsFor !== undefined) {
        waiting.push(telling);
        isBlocked ||= telling.isFirstOfMessage;
      } else this.#publish(telling.happenings);
    }
    this.#tellings = waiting;
    if (this.#isOver && waiting.length === 0) this.#allTold();
  }

  #watchSilence(): void {
    if (this.#silence !== undefined || this.#appending.size === 0) return;
    this.#silence = this.#options.clock.setTimer(STORE_SILENCE_TOLD_MS, () => this.#tellSilence());
  }

  #tellSilence(): void {
    if (this.#isSilenceTold) return;
    this.#isSilenceTold = true;
    this.#publish([LATE]);
  }

  #publish(happenings: readonly Happening[]): void {
    for (const happening of happenings) {
      try {
        this.#options.broadcast.publish(happening);
      } catch (error) {
        this.#options.onFault(error);
      }
    }
  }
}

const LATE: Happening = {
  kind: 'error',
  msg: 'store',
  code: 'store_failed',
  message: 'This conversation is not being stored at the moment; it goes on.',
  fatal: false,
};

function lost(eventId: string, code: string): Happening {
  const message = 'A message of this conversation could not be stored.';
  return { kind: 'error', msg: `s${eventId}`, code, message, fatal: false };
}
