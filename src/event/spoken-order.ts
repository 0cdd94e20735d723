/**
 * The order in which a run is committed: the spoken one. A caller's message stands before the answer that it caused,
 * however late its last words came; what happened in the middle of a message stands behind it; and nothing is
 * committed before everything in front of it is sealed, so that history never holds a fragment.
 */
import type { Event } from './event.js';
import type { RunItem } from './run-stream.js';

interface Place {
  readonly msg: string | undefined;
  isSealed: boolean;
  event: Event | undefined;
}

export class SpokenOrder {
  readonly #places: Place[] = [];
  readonly #commit: (event: Event) => void;

  /** `commit` is called for each event once, in order. */
  constructor(commit: (event: Event) => void) {
    this.#commit = commit;
  }

  /** Events that wait for what stands in front of them. */
  get waiting(): number {
    return this.#places.length;
  }

  hear(item: RunItem): void {
    switch (item.type) {
      case 'opened':
        return this.#open(item.msg, item.before);
      case 'asked':
      case 'delta':
      case 'used':
      case 'ready':
        return;
      case 'sealed':
        this.#seal(item.msg, item.event);
        return this.#commitSealed();
      case 'event':
        if (item.endsMsg !== undefined) this.#seal(item.endsMsg, undefined);
        this.#places.push({ msg: undefined, isSealed: true, event: item.event });
        return this.#commitSealed();
      case 'over':
        // What is still open was never said to its end: half a message is no message.
        for (const place of this.#places) place.isSealed = true;
        return this.#commitSealed();
    }
  }

  #open(msg: string, before: string | undefined): void {
    const found = before === undefined ? -1 : this.#places.findIndex((place) => place.msg === before);
    this.#places.splice(found < 0 ? this.#places.length : found, 0, {
      msg,
      isSealed: false,
      event: undefined,
    });
  }

  #seal(msg: string, event: Event | undefined): void {
    const place = this.#places.find((candidate) => candidate.msg === msg);
    if (place === undefined || place.isSealed) return;
    place.isSealed = true;
    place.event = event;
  }

  #commitSealed(): void {
    while (this.#places[0]?.isSealed === true) {
      const { event } = this.#places.shift() ?? {};
      if (event !== undefined) this.#commit(event);
    }
  }
}
