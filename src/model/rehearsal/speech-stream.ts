/**
 * Speech on its way to a client as the real service sends it: faster than it is heard, in uneven chunks, with
 * transcription running along. It knows when, by its own estimate, the caller will have heard what was sent, and when a
 * disclosure in front of a reply has been heard whole.
 */
import type { Clock, Timer } from '../../clock.js';
import { errorText } from '../../errors.js';
import { REHEARSAL_BUFFERED_MAX_BYTES } from './rehearsal-limits.js';
import type { Log } from '../../observe/log.js';
import type { ModelProfile } from './model-profile.js';
import type { SeededRandom } from './seeded-random.js';
import { sentences } from './sentences.js';
import { SENTENCE_PAUSE_MS, SPEECH_RATE_HZ } from './speech-synthesizer.js';

const BYTES_PER_MS = (2 * SPEECH_RATE_HZ) / 1_000;
/** Most chunks of the real service are this long: 160 to 320 ms. */
const CHUNK_LEAST_BYTES = 7_680;
const CHUNK_MOST_BYTES = 15_360;
/** Sizes of a turn's first chunk that have been seen there, beside the usual ones. */
const FIRST_CHUNK_BYTES = [2, 2_400] as const;
/** Between two chunks: five times as fast as they are heard, on average. */
const CHUNK_GAP_LEAST_MS = 15;
const CHUNK_GAP_MOST_MS = 60;
/** Now and then the real service stutters. */
const STUTTER_CHANCE = 0.06;
const STUTTER_MS = 200;
/** How often a client that reads slowly is looked at again. */
const BACKPRESSURE_RETRY_MS = 50;
/** Loudest sample of near-silent sound: about -72 dBFS. */
const NEAR_SILENCE_PEAK = 8;

export interface SpeechStreamDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly random: SeededRandom;
  /** Speaks one sentence as 24 kHz PCM16. */
  readonly speak: (sentence: string) => Promise<Int16Array>;
  readonly sendContent: (serverContent: object) => void;
  readonly bufferedAmount: () => number;
  /** Whether the client asked for `outputTranscription`. */
  readonly transcribe: boolean;
  readonly messages: ModelProfile['messages'];
  /** Sound of full length in which nothing can be heard. */
  readonly nearSilence: boolean;
  /** Makes every third gap so long. */
  readonly stutterMs: number | undefined;
}

export interface Sentence {
  readonly text: string;
  readonly isDisclosure: boolean;
}

export interface SpeakOptions {
  /** Other words stand in front in the same message: a space parts them. */
  readonly goesOn: boolean;
  /** The last content is handed to `done` instead of being sent, for what goes in one message with it. */
  readonly holdLast: boolean;
  /** Called once in the midst of the speech, after a chunk; not when nothing could be spoken. */
  readonly onHalf: () => void;
  readonly done: (held: object) => void;
}

/** One sentence on its way out. */
interface Piece {
  readonly isDisclosure: boolean;
  readonly isLast: boolean;
  readonly bytes: Buffer;
  readonly text: string;
  bytesSent: number;
  charsSent: number;
}

export function sentencesOf(text: string, isDisclosure = false): Sentence[] {
  return sentences(text).map((sentence) => ({ text: sentence, isDisclosure }));
}

export class SpeechStream {
  readonly #deps: SpeechStreamDeps;
  #timer: Timer | undefined;
  #ended = false;
  #bytesSent = 0;
  #gaps = 0;
  #heardAtMs = -Infinity;
  /** Sentences of the disclosure whose sound has not left whole. */
  #disclosureLeft = 0;
  #disclosureHeardAtMs = Infinity;
  /** What goes on when a pause ends. */
  #paused: (() => void) | undefined;
  #isPaused = false;
  #held: object = {};
  #charsLeftToHalf = 0;

  constructor(deps: SpeechStreamDeps) {
    this.#deps = deps;
  }

  /** Whether any sound has left. */
  get spoke(): boolean {
    return this.#bytesSent > 0;
  }

  get soundSentMs(): number {
    return this.#bytesSent / BYTES_PER_MS;
  }

  /** How long from now until, by estimate, everything sent has been heard. */
  get unheardMs(): number {
    return Math.max(0, this.#heardAtMs - this.#deps.clock.nowMs());
  }

  /** Whether there was a disclosure and the caller has heard it whole, the pause behind it too. */
  get disclosureHeard(): boolean {
    return this.#deps.clock.nowMs() >= this.#disclosureHeardAtMs;
  }

  /** Stops at once; nothing more is sent or called. Idempotent. */
  cancel(): void {
    this.#ended = true;
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  /** No sound leaves until `resume()`. */
  pause(): void {
    this.#isPaused = true;
  }

  resume(): void {
    this.#isPaused = false;
    const goOn = this.#paused;
    this.#paused = undefined;
    if (!this.#ended) goOn?.();
  }

  /** Speaks sentence after sentence, while one is sent the next is made; one call at a time. */
  speak(spoken: readonly Sentence[], options: SpeakOptions): void {
    this.#isPaused = false;
    this.#disclosureLeft += spoken.filter(({ isDisclosure }) => isDisclosure).length;
    this.#charsLeftToHalf = spoken.reduce((sum, { text }) => sum + text.length, 0) / 2;
    const sounds = spoken.map((): Promise<Int16Array> | undefined => undefined);
    const soundOf = (index: number) => {
      const sentence = spoken[index];
      if (sentence === undefined) return undefined;
      return (sounds[index] ??= this.#sound(sentence.text));
    };
    const speakFrom = (index: number) => {
      const sentence = spoken[index];
      const sound = soundOf(index);
      if (sentence === undefined || sound === undefined) return this.#finish(options);
      void sound.then((pcm) => {
        if (this.#ended) return;
        void soundOf(index + 1);
        const isLast = index === spoken.length - 1;
        const text = options.goesOn && index === 0 ? ` ${sentence.text}` : sentence.text;
        this.#sendPiece(newPiece(pcm, { ...sentence, text }, isLast), options, () => speakFrom(index + 1));
      });
    };
    speakFrom(0);
  }

  #finish({ done }: SpeakOptions): void {
    const held = this.#held;
    this.#held = {};
    done(held);
  }

  /** Never rejects: a sentence that cannot be spoken is left out. */
  async #sound(sentence: string): Promise<Int16Array> {
    try {
      const pcm = await this.#deps.speak(sentence);
      return this.#deps.nearSilence ? this.#nearSilence(pcm.length) : pcm;
    } catch (error) {
      this.#deps.log.error({ why: errorText(error) }, 'the rehearsal model could not speak a sentence');
      return new Int16Array(0);
    }
  }

  #nearSilence(samples: number): Int16Array {
    const { random } = this.#deps;
    return Int16Array.from({ length: samples }, () => random.between(-NEAR_SILENCE_PEAK, NEAR_SILENCE_PEAK));
  }

  #sendPiece(piece: Piece, options: SpeakOptions, done: () => void): void {
    if (this.#ended) return;
    const again = () => this.#sendPiece(piece, options, done);
    if (this.#isPaused) {
      this.#paused = again;
      return;
    }
    if (this.#deps.bufferedAmount() > REHEARSAL_BUFFERED_MAX_BYTES) {
      return this.#after(BACKPRESSURE_RETRY_MS, again);
    }
    if (piece.bytesSent < piece.bytes.length) this.#sendChunk(piece, options);
    if (this.#ended) return;
    if (piece.bytesSent >= piece.bytes.length) done();
    else this.#after(this.#gapMs(), again);
  }

  #sendChunk(piece: Piece, { holdLast, onHalf }: SpeakOptions): void {
    const { clock, transcribe } = this.#deps;
    const end = Math.min(piece.bytes.length, piece.bytesSent + this.#chunkBytes());
    const chunk = piece.bytes.subarray(piece.bytesSent, end);
    this.#bytesSent += chunk.length;
    this.#heardAtMs = Math.max(this.#heardAtMs, clock.nowMs()) + chunk.length / BYTES_PER_MS;
    piece.bytesSent = end;
    const wasAt = piece.charsSent;
    const words = wordsOf(piece);
    const inlineData = { mimeType: `audio/pcm;rate=${SPEECH_RATE_HZ}`, data: chunk.toString('base64') };
    const isWhole = end >= piece.bytes.length;
    this.#sendSound(
      { parts: [{ inlineData }] },
      transcribe ? words : '',
      holdLast && piece.isLast && isWhole,
    );
    // A sentence that could not be spoken never comes here: the disclosure then counts as not heard.
    if (piece.isDisclosure && isWhole) this.#disclosurePieceSent();
    this.#countToHalf(piece.charsSent - wasAt, onHalf);
  }

  #countToHalf(chars: number, onHalf: () => void): void {
    const before = this.#charsLeftToHalf;
    this.#charsLeftToHalf -= chars;
    if (before > 0 && this.#charsLeftToHalf <= 0) onHalf();
  }

  #disclosurePieceSent(): void {
    this.#disclosureLeft -= 1;
    if (this.#disclosureLeft === 0) this.#disclosureHeardAtMs = this.#heardAtMs;
  }

  #sendSound(modelTurn: object, words: string, hold: boolean): void {
    const { messages, random, sendContent } = this.#deps;
    const outputTranscription = { text: words };
    if (hold) {
      this.#held = words === '' ? { modelTurn } : { modelTurn, outputTranscription };
    } else if (words === '') {
      sendContent({ modelTurn });
    } else if (messages === 'bundled' || (messages === 'mixed' && random.chance(0.5))) {
      sendContent({ modelTurn, outputTranscription });
    } else {
      sendContent({ modelTurn });
      sendContent({ outputTranscription });
    }
  }

  #chunkBytes(): number {
    const { random } = this.#deps;
    const usual = random.between(CHUNK_LEAST_BYTES, CHUNK_MOST_BYTES);
    if (this.#bytesSent > 0) return usual;
    return FIRST_CHUNK_BYTES[random.between(0, FIRST_CHUNK_BYTES.length)] ?? usual;
  }

  #gapMs(): number {
    const { random, stutterMs } = this.#deps;
    this.#gaps += 1;
    if (stutterMs !== undefined && this.#gaps % 3 === 0) return stutterMs;
    if (random.chance(STUTTER_CHANCE)) return STUTTER_MS;
    return random.between(CHUNK_GAP_LEAST_MS, CHUNK_GAP_MOST_MS);
  }

  #after(delayMs: number, fire: () => void): void {
    this.#timer?.cancel();
    this.#timer = this.#deps.clock.setTimer(delayMs, () => {
      this.#timer = undefined;
      fire();
    });
  }
}

/** A sentence that could not be spoken has no words either. */
function newPiece(pcm: Int16Array, { text, isDisclosure }: Sentence, isLast: boolean): Piece {
  const unsent = { isDisclosure, isLast, bytesSent: 0, charsSent: 0 };
  if (pcm.length === 0) return { ...unsent, bytes: Buffer.alloc(0), text: '' };
  const speech = Buffer.from(pcm.buffer, pcm.byteOffset, pcm.byteLength);
  if (isLast) return { ...unsent, bytes: speech, text };
  const pause = Buffer.alloc(SENTENCE_PAUSE_MS * BYTES_PER_MS);
  return { ...unsent, bytes: Buffer.concat([speech, pause]), text: `${text} ` };
}

/** The words, or parts of words, that belong to the sound sent so far and have not been sent. */
function wordsOf(piece: Piece): string {
  const share = piece.bytesSent / piece.bytes.length;
  let end = Math.floor(piece.text.length * share);
  // Never between the two halves of a surrogate pair.
  if (/[\ud800-\udbff]/.test(piece.text.charAt(end - 1)) && end < piece.text.length) end -= 1;
  const words = piece.text.slice(piece.charsSent, end);
  piece.charsSent = Math.max(piece.charsSent, end);
  return words;
}
