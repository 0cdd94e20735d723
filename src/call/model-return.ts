/**
 * What the model is to be told when it is back behind an outage, and when: once what it had said is heard out, while the caller
 * is not speaking, and only where somebody waits for it. Who was not waiting is not disturbed.
 */
import { RETURN_ANSWER_MS, RETURN_PAUSE_MS } from '../link-limits.js';
import { HELD_TEXTS_MAX } from '../tool-limits.js';
import { brokeOff, modelIsBack } from './line-texts.js';

/** How the model was lost. */
export interface Gone {
  readonly nowMs: number;
  /** The caller waited for an answer. */
  readonly isDue: boolean;
  /** It was saying something, and had not said that it was all: how much of it was heard is known once it is played. */
  readonly broken: { heardText(): string } | undefined;
}

export class ModelReturn {
  #gone: Gone | undefined;
  #wasHeld = false;
  /** What could not be told to a model that was away. */
  #waiting: readonly string[] = [];
  #isBack = false;

  /** The model is away, or back and not yet told. */
  get isOpen(): boolean {
    return this.#gone !== undefined;
  }

  onGone(gone: Gone): void {
    const before = this.#gone;
    this.#isBack = false;
    this.#gone = {
      nowMs: before?.nowMs ?? gone.nowMs,
      isDue: gone.isDue || before?.isDue === true,
      broken: gone.broken ?? before?.broken,
    };
  }

  onAsked(): void {
    if (this.#gone !== undefined) this.#gone = { ...this.#gone, isDue: true };
  }

  /** The caller was asked to wait: they will want to hear that it is over. */
  onHeld(): void {
    if (this.#gone !== undefined) this.#wasHeld = true;
  }

  onBack(waiting: readonly string[]): void {
    this.#waiting = [...this.#waiting, ...waiting].slice(-HELD_TEXTS_MAX);
    this.#isBack = true;
  }

  /** Somebody has gone on by themselves: nothing has to be asked any more. Returns what the model is to know all the same. */
  overtaken(): readonly string[] {
    if (!this.#isBack) return [];
    const waiting = this.#waiting;
    const broken = this.#gone?.broken;
    this.#forget();
    return broken === undefined ? waiting : [brokeOff(broken.heardText()), ...waiting];
  }

  /** What to ask the model now; undefined while it is not the time, or where nobody waits. */
  take(now: { nowMs: number; isSilent: boolean; voicedAtMs: number }): string | undefined {
    const gone = this.#gone;
    if (!this.#isBack || gone === undefined) return undefined;
    const isUnheard = now.voicedAtMs > gone.nowMs;
    const waiting = this.#waiting;
    if (!gone.isDue && gone.broken === undefined && !this.#wasHeld && !isUnheard && waiting.length === 0) {
      this.#forget();
      return undefined;
    }
    const pauseMs = isUnheard ? RETURN_ANSWER_MS : RETURN_PAUSE_MS;
    if (!now.isSilent || now.nowMs - now.voicedAtMs < pauseMs) return undefined;
    this.#forget();
    return [modelIsBack({ saidLast: gone.broken?.heardText(), isUnheard }), ...waiting].join('\n');
  }

  #forget(): void {
    this.#gone = undefined;
    this.#wasHeld = false;
    this.#waiting = [];
    this.#isBack = false;
  }
}
