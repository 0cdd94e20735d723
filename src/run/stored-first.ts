/**
 * Tells watchers what happens in a run, and nothing as final before it is stored: the sealing frame of a message, and what a
 * committed event says, wait until the store has it or has given it up. Deltas, and tools in the middle of a message, whose
 * place in the history is behind it, do not wait. Whoever hears of a run only from here finds all of it again after a crash.
 *
 * A message that is sealed without a delta, such as a typed question, has no place on the page until it is stored, and what
 * comes behind it may not be told before. The store is nearly always quicker than the model. Where it is not, what waits for
 * such a message waits STORE_PLACE_WAIT_MS at most, and PLACE_HELD_MAX items of it: then the message gets its place by one
 * delta with its whole text, all behind it is told, and its sealing frame follows when it is stored. One that is not at the store,
 * because what is in front of it in the history is still being said, gets its place at once. So nothing stays in here
 * but that, sealing frames, and frames of committed events; these are as many as the store's queue and the places of
 * `SpokenOrder` hold. Each item is looked at when it comes, when it is told, and when its event is stored.
 */
import type { Clock, Timer } from '../clock.js';
import { type Event, functionCalls } from '../event/event.js';
import type { RunItem } from '../event/run-stream.js';
import { SpokenOrder } from '../event/spoken-order.js';
import { PLACE_HELD_MAX, STORE_PLACE_WAIT_MS, STORE_SILENCE_TOLD_MS } from '../limits.js';
import type { AppendOutcome } from '../store/store.js';
import type { Broadcast } from '../wire/broadcast.js';
import type { Happening } from '../wire/happening.js';
import { eventText, RunHappenings } from './run-happenings.js';

export interface StoredFirstOptions {
  readonly broadcast: Broadcast;
  /** Called for each event once, in spoken order. */
  readonly append: (event: Event) => Promise<AppendOutcome>;
  readonly clock: Clock;
  /** The agent's first message, where it is known before it begins. */
  readonly firstMsg?: string;
  /** Told of each item when the frames that it comes to have been given to the broadcast. */
  readonly onTold?: (item: RunItem) => void;
  /** Told of what no frame could be made of. It is left out; what stands around it is told. */
  readonly onFault: (error: unknown) => void;
}

/** What was given up, and what was to be told of it. */
export interface Loss {
  readonly code: string;
  readonly message: string;
  /** The message that it is, if it is one. */
  readonly msg: string | undefined;
}

/** What an item comes to. */
interface Telling {
  readonly item: RunItem;
  readonly happenings: readonly Happening[];
  /** The event that has to be stored before; undefined once it is. */
  waitsFor: string | undefined;
  /** Gives a message of which nothing was told its place on the page. */
  readonly place: Happening | undefined;
  /** Whether it stands in line, behind a message without a place or as one. */
  isInLine: boolean;
}

export class StoredFirst {
  readonly #options: StoredFirstOptions;
  readonly #happenings: RunHappenings;
  readonly #order: SpokenOrder;
  /** From the first message without a place on; in order. */
  readonly #line: Telling[] = [];
  /** Those in line that could be told if they were not. */
  #held = 0;
  /** Runs while some are held. */
  #patience: Timer | undefined;
  /** All that wait for the store, in line or not, by their event; behind what the event itself says, in order. */
  readonly #waiting = new Map<string, Telling[]>();
  /** Handed to the store and not settled. */
  readonly #appending = new Set<string>();
  /** Open messages that watchers have seen something of, or will with what is in line. */
  readonly #shown = new Set<string>();
  /** Runs while the store has something and settles nothing. */
  #silence: Timer | undefined;
  #isSilenceTold = false;
  #isOver = false;
  readonly #losses: Loss[] = [];
  #allTold: () => void = () => {};
  /** Resolves when the run is over, and all of it is stored or given up, and told. */
  readonly told = new Promise<void>((resolve) => {
    this.#allTold = resolve;
  });

  constructor(options: StoredFirstOptions) {
    this.#options = options;
    this.#happenings = new RunHappenings(options.firstMsg);
    this.#order = new SpokenOrder((event) => this.#commit(event));
  }

  /** The agent's message that has begun and is not sealed. */
  get openMsg(): string | undefined {
    return this.#happenings.openMsg;
  }

  /** All that was given up until now, in order. */
  get losses(): readonly Loss[] {
    return this.#losses;
  }

  /** Items that were heard and are not told. */
  get waiting(): number {
    return [...this.#waiting.values()].reduce((sum, tellings) => sum + tellings.length, this.#held);
  }

  hear(item: RunItem): void {
    this.#order.hear(item);
    const happenings = this.#happenings.of(item);
    if (happenings.length > 0) {
      const telling: Telling = {
        item,
        happenings,
        waitsFor: this.#waitsFor(item),
        place: this.#placeOf(item),
        isInLine: false,
      };
      const { waitsFor } = telling;
      if (waitsFor !== undefined)
        this.#waiting.set(waitsFor, [...(this.#waiting.get(waitsFor) ?? []), telling]);
      this.#stand(telling);
    }
    if (item.type === 'over') this.#end();
    this.#advance();
  }

  /** A sealed message waits for its commit; anything else only if it was committed at once. Calls are not withdrawn before
   * they are told. */
  #waitsFor(item: RunItem): string | undefined {
    if (item.type === 'sealed') return item.event?.id;
    if (item.type === 'withdrawn') return this.#untoldCall(new Set(item.calls.map(({ id }) => id)));
    const isCommitted = item.type === 'event' && this.#appending.has(item.event.id);
    return isCommitted ? item.event.id : undefined;
  }

  /** The event of such a call that waits for the store. */
  #untoldCall(ids: ReadonlySet<string>): string | undefined {
    return [...this.#waiting.keys()].findLast((eventId) =>
      this.#waiting.get(eventId)?.some(({ item }) => {
        return item.type === 'event' && functionCalls(item.event).some(({ id = '' }) => ids.has(id));
      }),
    );
  }

  /** Of a message that is sealed and of which nothing was told. */
  #placeOf(item: RunItem): Happening | undefined {
    if (item.type === 'delta') this.#shown.add(item.msg);
    if (item.type === 'event' && item.endsMsg !== undefined) this.#shown.delete(item.endsMsg);
    if (item.type !== 'sealed' || this.#shown.delete(item.msg) || item.event === undefined) return undefined;
    return { kind: 'delta', msg: item.msg, role: item.role, text: eventText(item.event) };
  }

  /** Into the line, where there is one or it begins here. That input is taken has no place on the page. */
  #stand(telling: Telling): void {
    const isNext = this.#line.length === 0 && telling.place === undefined;
    if (isNext || telling.item.type === 'ready') {
      if (telling.waitsFor === undefined) this.#tell(telling);
      return;
    }
    telling.isInLine = true;
    this.#line.push(telling);
    if (telling.waitsFor === undefined) this.#held += 1;
  }

  /** All that could be committed is: nothing waits for anything else. */
  #end(): void {
    this.#isOver = true;
    for (const eventId of this.#waiting.keys()) {
      if (!this.#appending.has(eventId)) this.#release(eventId);
    }
  }

  /** What waits for this event need not any more. */
  #release(eventId: string): void {
    const tellings = this.#waiting.get(eventId) ?? [];
    this.#waiting.delete(eventId);
    for (const telling of tellings) {
      telling.waitsFor = undefined;
      if (telling.isInLine) this.#held += 1;
      else this.#tell(telling);
    }
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
      if (!outcome.stored) this.#lose(event.id, outcome.error.code);
      this.#release(event.id);
      this.#advance();
    });
  }

  #lose(eventId: string, code: string): void {
    // What the event itself says stands in front of whatever else waits for it.
    const item = this.#waiting.get(eventId)?.[0]?.item;
    const message = 'A message of this conversation could not be stored.';
    this.#losses.push({ code, message, msg: item?.type === 'sealed' ? item.msg : undefined });
    this.#publish([{ kind: 'error', msg: `s${eventId}`, code, message, fatal: false }]);
  }

  /** Moves the line on as far as it goes, and sees to it that nothing is held in it for long. */
  #advance(): void {
    this.#move(this.#held < PLACE_HELD_MAX);
    if (this.#held === 0) {
      this.#patience?.cancel();
      this.#patience = undefined;
    } else
      this.#patience ??= this.#options.clock.setTimer(STORE_PLACE_WAIT_MS, () => this.#loseThePatience());
    const isAll = this.#waiting.size === 0 && this.#appending.size === 0 && this.#line.length === 0;
    if (this.#isOver && isAll) this.#allTold();
  }

  #loseThePatience(): void {
    this.#patience = undefined;
    this.#move(false);
    this.#advance();
  }

  /** Up to a message without a place that the store has and has not stored; without patience, for as long as something is held, such a
   * message gets its place. */
  #move(isPatient: boolean): void {
    for (let [next] = this.#line; next !== undefined; [next] = this.#line) {
      const { waitsFor } = next;
      const isPlaceless = waitsFor !== undefined && next.place !== undefined;
      if (isPlaceless && (isPatient || this.#held === 0) && this.#appending.has(waitsFor)) return;
      this.#line.shift();
      next.isInLine = false;
      if (isPlaceless && next.place !== undefined) this.#publish([next.place]);
      if (next.waitsFor !== undefined) continue;
      this.#held -= 1;
      this.#tell(next);
    }
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

  #tell({ item, happenings }: Telling): void {
    this.#publish(happenings);
    this.#options.onTold?.(item);
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
