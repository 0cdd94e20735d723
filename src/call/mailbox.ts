/**
 * A call's one mailbox: control events from sockets, the model and timers are handled one at a time, each to its end
 * before the next, also when handling one posts another. Media does not pass through here.
 */

export class Mailbox<E> {
  readonly #handle: (event: E) => void;
  readonly #onOverflow: () => void;
  readonly #eventsMax: number;
  #waiting: E[] = [];
  #running = false;

  /** What `handle` throws comes out of `post`, after the events that waited were handled: a hang-up among them is not
   * lost. `onOverflow` is called instead of queueing when `eventsMax` events wait; it must end the call. */
  constructor(options: { handle: (event: E) => void; eventsMax: number; onOverflow: () => void }) {
    this.#handle = options.handle;
    this.#eventsMax = options.eventsMax;
    this.#onOverflow = options.onOverflow;
  }

  post(event: E): void {
    if (this.#running) {
      if (this.#waiting.length < this.#eventsMax) this.#waiting.push(event);
      else this.#onOverflow();
      return;
    }
    this.#running = true;
    this.#waiting.push(event);
    let failure: { readonly error: unknown } | undefined;
    for (let at = 0; at < this.#waiting.length; at += 1) {
      try {
        this.#handle(this.#waiting[at] as E);
      } catch (error) {
        failure ??= { error };
      }
    }
    this.#waiting = [];
    this.#running = false;
    if (failure !== undefined) throw failure.error;
  }
}
