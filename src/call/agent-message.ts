/**
 * One message of the agent: the utterances that carry its sound and the words that were transcribed of it. Answers the one
 * question that matters: what has the caller heard of it?
 */
import type { StreamOutcome } from '../event/run-stream.js';
import { MULAW_BYTES_PER_MS } from '../limits.js';
import type { Playout } from '../audio/playout.js';
import type { Utterance } from '../audio/utterance.js';
import { HeardText } from './heard-text.js';
import type { HeardSource } from './transcript.js';

export class AgentMessage implements HeardSource {
  readonly isGreeting: boolean;
  /** It is read, not heard: its sound goes nowhere, and its words count as heard as soon as they are told. */
  readonly isShown: boolean;
  /** Its id in the transcript; set when it is opened there. */
  msg = '';
  /** The turn is over for the model: no sound or text of it follows. */
  turnOver = false;
  /** The model has generated all of it, as far as it said. */
  isGenerated = false;
  /** Its generation was cut short: by the loss of the model, or by our closing it. */
  brokenBy: 'loss' | 'us' | undefined;
  firstSoundAtMs: number | undefined;
  /** Something of its sound can be heard, or it is read. */
  isAudible = false;
  readonly #playout: Playout;
  readonly #words = new HeardText();
  /** Those not known to be heard to their end: no more than the playout has on its books, and the last one. */
  #utterances: Utterance[] = [];
  /** Sound of the others. */
  #heardBeforeMs = 0;
  #hasSound = false;
  /** Sound has come, and that it was all has not been said. The playout's own word would not do: it ends what it cuts. */
  #isSoundOpen = false;

  constructor(options: { playout: Playout; isGreeting: boolean; isShown?: boolean }) {
    this.#playout = options.playout;
    this.isGreeting = options.isGreeting;
    this.isShown = options.isShown ?? false;
  }

  /** Queues sound behind what is already there; sound after the end of a generation begins another utterance. Once
   * some was refused none is taken any more: a message may lack its end, never its middle. */
  push(mulaw: Uint8Array): number {
    let utterance = this.#utterances.at(-1);
    if (utterance === undefined || (utterance.ended && !utterance.refused)) {
      this.#forgetHeard();
      utterance = this.#playout.startUtterance();
      this.#utterances.push(utterance);
      this.#hasSound = true;
    }
    this.#isSoundOpen = true;
    this.isGenerated = false;
    // Words are laid over refused sound too: they were not heard.
    this.#words.addAudio(mulaw.length / MULAW_BYTES_PER_MS);
    return this.#playout.push(utterance, mulaw);
  }

  /** The last of a generation's sound, which the filter held back; it is no beginning of another utterance. */
  pushTail(mulaw: Uint8Array): void {
    if (this.#utterances.at(-1)?.ended === false) this.push(mulaw);
  }

  /** The model has generated all of the sound, for now. */
  endSound(): void {
    this.isGenerated = true;
    this.#isSoundOpen = false;
    const utterance = this.#utterances.at(-1);
    if (utterance !== undefined) this.#playout.endUtterance(utterance);
  }

  /** Returns what of them is kept: the message is what was told of it, and no more. */
  addWords(fragment: string): string {
    return this.#words.addTranscript(fragment);
  }

  get hasSound(): boolean {
    return this.#hasSound || (this.isShown && this.#words.text !== '');
  }

  /** The model has said that no more sound follows, or none has come. */
  get soundEnded(): boolean {
    return this.isShown ? this.isGenerated : !this.#isSoundOpen;
  }

  /** Its end was refused, or never made because the model was lost or closed: what is heard of it is never all of it. */
  get lacksItsEnd(): boolean {
    return this.brokenBy !== undefined || (this.#utterances.at(-1)?.refused ?? false);
  }

  has(utterance: Utterance): boolean {
    return this.#utterances.includes(utterance);
  }

  heardMs(): number {
    return this.#utterances.reduce(
      (sum, utterance) => sum + this.#playout.heardMs(utterance),
      this.#heardBeforeMs,
    );
  }

  /** How it ended: whole, cut, or without anybody there to hear it (`isAlone`). */
  outcome(interrupted: boolean, isAlone: boolean): StreamOutcome {
    if (this.brokenBy !== undefined) return this.brokenBy === 'loss' ? 'error' : 'disconnected';
    if (!interrupted) return 'done';
    return isAlone ? 'disconnected' : 'interrupted';
  }

  /** Whether everything that was accepted has been heard. */
  get isHeard(): boolean {
    return this.#utterances.every((utterance) => this.#playout.heardMs(utterance) >= utterance.acceptedMs);
  }

  /** It was said to its end, and heard to its end: whoever cuts in then cuts nothing. */
  get isHeardWhole(): boolean {
    return this.hasSound && this.soundEnded && this.isHeard && !this.lacksItsEnd;
  }

  heardText(): string {
    if (this.isShown) return this.wholeText();
    if (!this.isAudible) return ''; // Words that were made without a sound.
    const isOpen = this.#isSoundOpen || this.brokenBy !== undefined;
    return this.hasSound ? this.#words.heardPrefix(this.heardMs(), { isOpen }) : '';
  }

  /** Nothing of a message that is still being made: what of it will be heard is not known. */
  comingText(): string {
    return this.isGenerated && this.brokenBy === undefined ? this.playedText() : '';
  }

  wholeText(): string {
    return this.#words.text;
  }

  /** What the caller has heard once the playout is done with it and nobody cut in. */
  playedText(): string {
    const isWhole = this.hasSound && !this.lacksItsEnd && (this.isShown || this.isAudible);
    return isWhole ? this.wholeText() : this.heardText();
  }

  #forgetHeard(): void {
    this.#utterances = this.#utterances.filter((utterance) => {
      const heardMs = this.#playout.heardMs(utterance);
      const isHeard = utterance.ended && heardMs >= utterance.acceptedMs;
      if (isHeard) this.#heardBeforeMs += heardMs;
      return !isHeard;
    });
  }
}
