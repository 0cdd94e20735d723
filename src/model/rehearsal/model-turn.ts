/**
 * One turn of the rehearsal model, from thinking to `turnComplete`: sends its speech as the real service does, faster
 * than it is heard, in uneven chunks and with transcription running along; calls a function if the reply wants one;
 * says `generationComplete` when everything is sent and ends when, by its own estimate, everything has been heard. By
 * the same estimate it knows whether a disclosure in front of the reply has been heard.
 */
import type { Clock, Timer } from '../../clock.js';
import { errorText } from '../../errors.js';
import { REHEARSAL_BUFFERED_MAX_BYTES, REHEARSAL_TOOL_WAIT_MAX_MS } from '../../limits.js';
import type { Log } from '../../observe/log.js';
import type { DialogueReply } from './dialogue.js';
import type { SeededRandom } from './seeded-random.js';
import { sentences } from './sentences.js';
import { SENTENCE_PAUSE_MS, SPEECH_RATE_HZ } from './speech-synthesizer.js';

const BYTES_PER_MS = (2 * SPEECH_RATE_HZ) / 1_000;
/** From the end of the caller's turn to the first sound; the real service takes 300 to 800 ms. */
const THINK_MS = 300;
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

export interface ModelTurnDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly random: SeededRandom;
  /** Speaks one sentence as 24 kHz PCM16. */
  readonly speak: (sentence: string) => Promise<Int16Array>;
  readonly send: (message: object) => void;
  readonly bufferedAmount: () => number;
  /** Whether the client asked for `outputTranscription`. */
  readonly transcribe: boolean;
  /** The function that may be called, by name. */
  readonly isDeclared: (functionName: string) => boolean;
  readonly newFunctionCallId: () => string;
  /** Everything has been heard; the turn is over. */
  readonly onHeard: () => void;
}

interface Sentence {
  readonly text: string;
  readonly isDisclosure: boolean;
}

/** One sentence on its way out. */
interface Piece {
  readonly isDisclosure: boolean;
  readonly bytes: Buffer;
  readonly text: string;
  bytesSent: number;
  charsSent: number;
}

export class ModelTurn {
  readonly #deps: ModelTurnDeps;
  readonly #reply: DialogueReply;
  #timer: Timer | undefined;
  #ended = false;
  #bytesSent = 0;
  /** When, by estimate, the caller will have heard what was sent. */
  #heardAtMs = -Infinity;
  /** Sentences of the disclosure whose sound has not left whole. */
  #disclosureLeft: number;
  /** The same estimate for the disclosure and the pause behind it; Infinity until its sound has left. */
  #disclosureHeardAtMs = Infinity;
  #openCallId: string | undefined;

  /** `disclosure` is spoken in front of the reply. */
  constructor(deps: ModelTurnDeps, reply: DialogueReply, disclosure = '') {
    this.#deps = deps;
    this.#reply = reply;
    const disclosed = sentences(disclosure).map((text) => ({ text, isDisclosure: true }));
    this.#disclosureLeft = disclosed.length;
    const spoken = [...disclosed, ...plainSentences(reply.say)];
    this.#after(THINK_MS, () => this.#speak(spoken, () => this.#callFunction()));
  }

  /** Whether any sound has left. */
  get spoke(): boolean {
    return this.#bytesSent > 0;
  }

  /** Whether there was a disclosure and the caller has heard it whole. */
  get disclosureHeard(): boolean {
    return this.#deps.clock.nowMs() >= this.#disclosureHeardAtMs;
  }

  get soundSentMs(): number {
    return this.#bytesSent / BYTES_PER_MS;
  }

  /** The function call that waits for its response. */
  get openCallId(): string | undefined {
    return this.#openCallId;
  }

  /** A response arrived; one for another call changes nothing. */
  functionResponse(id: string | undefined): void {
    if (this.#ended || id === undefined || id !== this.#openCallId) return;
    this.#functionAnswered();
  }

  /** Stops at once; nothing more is sent and onHeard is not called. Idempotent. */
  cancel(): void {
    this.#ended = true;
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  #after(delayMs: number, fire: () => void): void {
    this.#timer?.cancel();
    this.#timer = this.#deps.clock.setTimer(delayMs, () => {
      this.#timer = undefined;
      fire();
    });
  }

  /** Speaks sentence after sentence; while one is sent the next is made. */
  #speak(spoken: readonly Sentence[], done: () => void): void {
    const sounds = spoken.map((): Promise<Int16Array> | undefined => undefined);
    const soundOf = (index: number) => {
      const sentence = spoken[index];
      if (sentence === undefined) return undefined;
      return (sounds[index] ??= this.#sound(sentence.text));
    };
    const speakFrom = (index: number) => {
      const sentence = spoken[index];
      const sound = soundOf(index);
      if (sentence === undefined || sound === undefined) return done();
      void sound.then((pcm) => {
        if (this.#ended) return;
        void soundOf(index + 1);
        const isLast = index === spoken.length - 1;
        this.#sendPiece(newPiece(pcm, sentence, isLast), () => speakFrom(index + 1));
      });
    };
    speakFrom(0);
  }

  /** Never rejects: a sentence that cannot be spoken is left out. */
  #sound(sentence: string): Promise<Int16Array> {
    return this.#deps.speak(sentence).catch((error: unknown) => {
      this.#deps.log.error({ why: errorText(error) }, 'the rehearsal model could not speak a sentence');
      return new Int16Array(0);
    });
  }

  #sendPiece(piece: Piece, done: () => void): void {
    if (this.#deps.bufferedAmount() > REHEARSAL_BUFFERED_MAX_BYTES) {
      this.#after(BACKPRESSURE_RETRY_MS, () => this.#sendPiece(piece, done));
      return;
    }
    if (piece.bytesSent < piece.bytes.length) {
      this.#sendChunk(piece);
      if (piece.isDisclosure && piece.bytesSent >= piece.bytes.length) this.#disclosurePieceSent();
    }
    if (piece.bytesSent >= piece.bytes.length) done();
    else this.#after(this.#gapMs(), () => this.#sendPiece(piece, done));
  }

  /** A sentence that could not be spoken never comes here: the disclosure then counts as not heard. */
  #disclosurePieceSent(): void {
    this.#disclosureLeft -= 1;
    if (this.#disclosureLeft === 0) this.#disclosureHeardAtMs = this.#heardAtMs;
  }

  #sendChunk(piece: Piece): void {
    const { random, clock, transcribe } = this.#deps;
    const end = Math.min(piece.bytes.length, piece.bytesSent + this.#chunkBytes());
    const chunk = piece.bytes.subarray(piece.bytesSent, end);
    piece.bytesSent = end;
    this.#bytesSent += chunk.length;
    this.#heardAtMs = Math.max(this.#heardAtMs, clock.nowMs()) + chunk.length / BYTES_PER_MS;
    const inlineData = { mimeType: `audio/pcm;rate=${SPEECH_RATE_HZ}`, data: chunk.toString('base64') };
    const modelTurn = { parts: [{ inlineData }] };
    const words = transcribe ? wordsOf(piece) : '';
    if (words === '') {
      this.#deps.send({ serverContent: { modelTurn } });
    } else if (random.chance(0.5)) {
      // Newer models bundle what older ones send one by one.
      this.#deps.send({ serverContent: { modelTurn, outputTranscription: { text: words } } });
    } else {
      this.#deps.send({ serverContent: { modelTurn } });
      this.#deps.send({ serverContent: { outputTranscription: { text: words } } });
    }
  }

  #chunkBytes(): number {
    const { random } = this.#deps;
    const usual = random.between(CHUNK_LEAST_BYTES, CHUNK_MOST_BYTES);
    if (this.#bytesSent > 0) return usual;
    return FIRST_CHUNK_BYTES[random.between(0, FIRST_CHUNK_BYTES.length)] ?? usual;
  }

  #gapMs(): number {
    const { random } = this.#deps;
    if (random.chance(STUTTER_CHANCE)) return STUTTER_MS;
    return random.between(CHUNK_GAP_LEAST_MS, CHUNK_GAP_MOST_MS);
  }

  #callFunction(): void {
    const call = this.#reply.call;
    if (call === undefined || !this.#deps.isDeclared(call.name)) return this.#generated();
    const id = this.#deps.newFunctionCallId();
    this.#openCallId = id;
    this.#after(REHEARSAL_TOOL_WAIT_MAX_MS, () => {
      this.#deps.log.warn({ functionName: call.name }, 'no function response came; the rehearsal goes on');
      this.#functionAnswered();
    });
    this.#deps.send({ toolCall: { functionCalls: [{ id, name: call.name, args: call.args }] } });
  }

  #functionAnswered(): void {
    this.#openCallId = undefined;
    this.#timer?.cancel();
    const thenSay = this.#reply.call?.thenSay;
    if (thenSay === undefined) this.#generated();
    else this.#speak(plainSentences(thenSay), () => this.#generated());
  }

  #generated(): void {
    this.#deps.send({ serverContent: { generationComplete: true } });
    this.#after(Math.max(0, this.#heardAtMs - this.#deps.clock.nowMs()), () => {
      this.#ended = true;
      this.#deps.onHeard();
    });
  }
}

function plainSentences(text: string): Sentence[] {
  return sentences(text).map((sentence) => ({ text: sentence, isDisclosure: false }));
}

/** A sentence that could not be spoken has no words either. */
function newPiece(pcm: Int16Array, { text, isDisclosure }: Sentence, isLast: boolean): Piece {
  const unsent = { isDisclosure, bytesSent: 0, charsSent: 0 };
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
