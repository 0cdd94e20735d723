/**
 * What the model is told in words: texts that it answers, and notes that wait for one because nothing must be said for their
 * sake alone. Texts that come while it may get nothing, or while it is away, wait for it, bounded.
 */
import { EARLY_KEYS_MAX, EARLY_TEXTS_MAX, NOTE_MAX_CHARS } from '../limits.js';
import type { LiveConnection } from '../model/live-connection.js';
import { HELD_TEXTS_MAX } from '../tool-limits.js';

export class ModelTexts {
  #model: LiveConnection | undefined;
  /** What the model does not know yet: it travels with the next text or tool response. */
  #note: string | undefined;
  #keysNoted = 0;
  #isHeld = false;
  /** It was there, and another connection is to follow. */
  #isAway = false;
  #held: string[] = [];
  /** Typed while there was no model; it goes in one text, in the place of what it would have been asked. */
  #typed: string[] = [];

  get isConnected(): boolean {
    return this.#model !== undefined;
  }

  /** Returns what waited for it. */
  attach(model: LiveConnection): readonly string[] {
    this.#model = model;
    const waited = this.#isAway ? this.#held.splice(0) : [];
    this.#isAway = false;
    this.#keysNoted = 0;
    return waited;
  }

  detach(): void {
    this.#isAway = this.#model !== undefined;
    this.#model = undefined;
  }

  /** Text that the model answers; what it does not know yet goes in front. */
  ask(text: string): void {
    if (!this.#isHeld && !this.#isAway) this.#model?.sendText(this.#withNote(text));
    // More than anybody types or presses while a call runs: the oldest goes.
    else if (this.#held.push(text) > HELD_TEXTS_MAX) this.#held.shift();
  }

  /** The model must get nothing for now; what waited follows when it may, or with `attach` where it is away. */
  hold(isHeld: boolean): void {
    if (this.#isHeld === isHeld) return;
    this.#isHeld = isHeld;
    const held = isHeld || this.#isAway ? [] : this.#held.splice(0);
    if (held.length > 0) this.#model?.sendText(this.#withNote(held.join('\n')));
  }

  /** Bounded: the newest is what matters. */
  note(text: string): void {
    this.#note = (this.#note === undefined ? text : `${this.#note}\n${text}`).slice(-NOTE_MAX_CHARS);
  }

  /** A key that was pressed while there was no model. */
  noteKey(text: string): void {
    if (this.#keysNoted >= EARLY_KEYS_MAX) return;
    this.#keysNoted += 1;
    this.note(text);
  }

  /** What the model should learn with something that is sent anyway; given out once. */
  takeNote(): string | undefined {
    const note = this.#note;
    this.#note = undefined;
    return note;
  }

  /** Whether another text can be kept for a model that is not there. */
  get mayType(): boolean {
    return this.#typed.length < EARLY_TEXTS_MAX;
  }

  get hasTyped(): boolean {
    return this.#typed.length > 0;
  }

  typed(text: string): void {
    this.#typed.push(text);
  }

  /** All that was typed while there was no model, as one text. */
  takeTyped(): string | undefined {
    const typed = this.#typed.splice(0);
    return typed.length === 0 ? undefined : typed.join('\n');
  }

  #withNote(text: string): string {
    const note = this.takeNote();
    return note === undefined ? text : `${note}\n${text}`;
  }
}
