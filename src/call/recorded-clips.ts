/**
 * The recorded clips of one call on their way to the caller's ear: what plays, and what was heard to its end. Only what was
 * heard has been told.
 */
import type { Playout } from '../audio/playout.js';
import type { Utterance } from '../audio/utterance.js';
import { PROMPT_TEXTS, type PromptName, type Prompts } from './prompts.js';

export interface RecordedClipsOptions {
  readonly playout: Pick<Playout, 'playClip' | 'heardMs'>;
  readonly prompts: Prompts;
  /** The caller has heard it, or read it; before the message of that id, if one has begun meanwhile. */
  readonly onHeard: (text: string, before: string | undefined) => void;
}

interface PlayingClip {
  readonly prompt: PromptName;
  /** The message that is played behind it. */
  before: string | undefined;
}

export class RecordedClips {
  readonly #options: RecordedClipsOptions;
  readonly #playing = new Map<Utterance, PlayingClip>();
  #hasExplained = false;

  constructor(options: RecordedClipsOptions) {
    this.#options = options;
  }

  /** A clip is on its way, or being heard. */
  get isPlaying(): boolean {
    return this.#playing.size > 0;
  }

  /** Whether a clip has told the caller why the call ends. */
  get hasExplained(): boolean {
    return this.#hasExplained;
  }

  /** Behind what is being played. */
  play(prompt: PromptName): void {
    const { playout, prompts } = this.#options;
    this.#playing.set(playout.playClip(prompts[prompt]), { prompt, before: undefined });
  }

  /** Whoever reads instead of hearing has been told at once. */
  show(prompt: PromptName, before?: string): void {
    if (prompt !== 'hold') this.#hasExplained = true;
    this.#options.onHeard(PROMPT_TEXTS[prompt], before);
  }

  /** A message of the agent has begun: its sound follows what is playing. */
  onMessageOpened(msg: string): void {
    for (const clip of this.#playing.values()) clip.before ??= msg;
  }

  /** Returns whether it was a clip. */
  onUtteranceHeard(utterance: Utterance): boolean {
    const clip = this.#playing.get(utterance);
    if (clip === undefined) return false;
    this.#playing.delete(utterance);
    this.show(clip.prompt, clip.before);
    return true;
  }

  /** What was not heard by now never will be. */
  forget(): void {
    this.#playing.clear();
  }
}
