/**
 * One message of the agent: the utterances that carry its sound and the words that were transcribed of it. Answers the one
 * question that matters: what has the caller heard of it?
 */
import type { Playout } from '../audio/playout.js';
import type { Utterance } from '../audio/utterance.js';
import { HeardText } from './heard-text.js';
import type { HeardSource } from './transcript.js';

export class AgentMessage implements HeardSource {
  readonly isGreeting: boolean;
  /** Its id in the transcript; set when it is opened there. */
  msg = '';
  /** The turn is over for the model: no sound or text of it follows. */
  turnOver = false;
  /** The model has generated all of it, as far as it said. */
  isGenerated = false;
  /** Its generation was cut short: by the loss of the model, or by our closing it. */
  brokenBy: 'loss' | 'us' | undefined;
  /** Whether a function call came since its last delta. */
  toolSinceDelta = false;
  firstSoundAtMs: number | undefined;
  lastDeltaAtMs: number | undefined;
  readonly #playout: Playout;
  readonly #words = new HeardText();
  readonly #utterances: Utterance[] = [];

  constructor(options: { playout: Playout; isGreeting: boolean }) {
    this.#playout = options.playout;
    this.isGreeting = options.isGreeting;
  }

  /** Queues sound behind what is already there; sound after the end of a generation begins another utterance. */
  push(mulaw: Uint8Array): number {
    let utterance = this.#utterances.at(-1);
    if (utterance === undefined || utterance.ended) {
      utterance = this.#playout.startUtterance();
      this.#utterances.push(utterance);
    }
    const acceptedMs = this.#playout.push(utterance, mulaw);
    this.#words.addAudio(acceptedMs);
    return acceptedMs;
  }

  /** The model has generated all of the sound, for now. */
  endSound(): void {
    this.isGenerated = true;
    const utterance = this.#utterances.at(-1);
    if (utterance !== undefined) this.#playout.endUtterance(utterance);
  }

  addWords(fragment: string): void {
    this.#words.addTranscript(fragment);
  }

  get hasSound(): boolean {
    return this.#utterances.length > 0;
  }

  get soundEnded(): boolean {
    return this.#utterances.at(-1)?.ended ?? true;
  }

  has(utterance: Utterance): boolean {
    return this.#utterances.includes(utterance);
  }

  heardMs(): number {
    return this.#utterances.reduce((sum, utterance) => sum + this.#playout.heardMs(utterance), 0);
  }

  /** Whether everything that was accepted has been heard. */
  get isHeard(): boolean {
    const acceptedMs = this.#utterances.reduce((sum, utterance) => sum + utterance.acceptedMs, 0);
    return this.heardMs() >= acceptedMs;
  }

  heardText(): string {
    return this.hasSound ? this.#words.heardPrefix(this.heardMs()) : '';
  }

  wholeText(): string {
    return this.#words.text;
  }
}
