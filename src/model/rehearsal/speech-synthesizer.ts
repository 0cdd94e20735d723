/**
 * Text to speech for the rehearsal model and the shipped sounds: flite, a small synthesizer with its voices inside,
 * in one worker thread. Utterances are cached by voice and text; requests wait in one bounded queue. A worker that
 * dies or hangs fails the request it was busy with and is replaced for the next one.
 */
import { Worker } from 'node:worker_threads';
import type { Clock, Timer } from '../../clock.js';
import { AudioError } from '../../errors.js';
import {
  SPEECH_CACHE_MAX_BYTES,
  SPEECH_QUEUE_MAX,
  SPEECH_SYNTHESIS_TIMEOUT_MS,
  SPEECH_TEXT_MAX_CHARS,
} from './rehearsal-limits.js';
import type { Log } from '../../observe/log.js';

export const SPEECH_RATE_HZ = 24_000;
/** Between two sentences; utterances come without silence of their own at the ends. */
export const SENTENCE_PAUSE_MS = 250;
/** The voices inside flite. `kal` is made for 8 kHz and sounds like it; the others for 16 kHz. */
export const SPEECH_VOICES = ['slt', 'rms', 'awb', 'kal16', 'kal'] as const;
export type SpeechVoice = (typeof SPEECH_VOICES)[number];

/** Speaks text. Sound is 24 kHz PCM16 mono, about -20 dBFS while speaking, shared: nobody may change it. */
export interface SpeechSynthesizer {
  /** Empty for text with nothing to say. Rejects with AudioError `speech_failed`. */
  speak(voice: SpeechVoice, text: string): Promise<Int16Array>;
  /** Rejects what is waiting and ends the worker. Idempotent. */
  close(): Promise<void>;
}

export interface SpeechSynthesizerOptions {
  readonly clock: Clock;
  readonly log: Log;
  /** The worker's file; another one is for tests of a worker that dies. */
  readonly workerUrl?: URL;
}

interface SpeechRequest {
  readonly id: number;
  readonly key: string;
  readonly voice: SpeechVoice;
  readonly text: string;
  readonly resolve: (pcm: Int16Array) => void;
  readonly reject: (error: AudioError) => void;
}

interface CachedSpeech {
  readonly speech: Promise<Int16Array>;
  /** 0 until it is spoken. */
  bytes: number;
}

/** Only what flite can read: ASCII, accents dropped, other signs as a pause. */
function speakableText(text: string): string {
  const ascii = text
    .normalize('NFKD')
    .replaceAll(/[\u0300-\u036f]/g, '')
    .replaceAll(/[\u2018\u2019]/g, "'")
    .replaceAll(/[^\u0020-\u007e]+/g, ' ')
    .replaceAll(/ {2,}/g, ' ')
    .trim();
  return /[a-z0-9]/i.test(ascii) ? ascii : '';
}

export class FliteSynthesizer implements SpeechSynthesizer {
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #workerUrl: URL;
  /** In order of use, the longest unused first. */
  readonly #cache = new Map<string, CachedSpeech>();
  readonly #queue: SpeechRequest[] = [];
  #cachedBytes = 0;
  #nextId = 1;
  #worker: Worker | undefined;
  #busyWith: SpeechRequest | undefined;
  #deadline: Timer | undefined;
  #closed = false;

  constructor({ clock, log, workerUrl }: SpeechSynthesizerOptions) {
    this.#clock = clock;
    this.#log = log;
    this.#workerUrl = workerUrl ?? new URL('./speech-worker.mjs', import.meta.url);
  }

  speak(voice: SpeechVoice, text: string): Promise<Int16Array> {
    if (this.#closed) return Promise.reject(failure('the synthesizer is closed'));
    if (text.length > SPEECH_TEXT_MAX_CHARS) return Promise.reject(failure('the text is too long to speak'));
    const speakable = speakableText(text);
    if (speakable === '') return Promise.resolve(new Int16Array(0));
    const key = `${voice} ${speakable}`;
    const cached = this.#cache.get(key);
    if (cached !== undefined) {
      this.#cache.delete(key);
      this.#cache.set(key, cached);
      return cached.speech;
    }
    if (this.#queue.length >= SPEECH_QUEUE_MAX)
      return Promise.reject(failure('too much is waiting to be spoken'));
    const speech = new Promise<Int16Array>((resolve, reject) => {
      this.#queue.push({ id: this.#nextId++, key, voice, text: speakable, resolve, reject });
    });
    this.#cache.set(key, { speech, bytes: 0 });
    this.#next();
    return speech;
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    const worker = this.#worker;
    this.#retireWorker(failure('the synthesizer is closed'));
    for (const request of this.#queue.splice(0)) request.reject(failure('the synthesizer is closed'));
    this.#cache.clear();
    await worker?.terminate();
  }

  /** Gives the worker its next request, if it is free; one at a time, so that a crash costs one request. */
  #next(): void {
    if (this.#closed || this.#busyWith !== undefined) return;
    const request = this.#queue.shift();
    if (request === undefined) return;
    this.#busyWith = request;
    this.#worker ??= this.#startWorker();
    this.#deadline = this.#clock.setTimer(SPEECH_SYNTHESIS_TIMEOUT_MS, () => {
      this.#workerFailed('speech took too long');
    });
    this.#worker.ref();
    this.#worker.postMessage({ id: request.id, voice: request.voice, text: request.text }, []);
  }

  #startWorker(): Worker {
    const worker = new Worker(this.#workerUrl, { execArgv: [] });
    const failed = (why: string) => {
      if (this.#worker === worker) this.#workerFailed(why);
    };
    worker.on('message', (answer: unknown) => {
      if (this.#worker === worker) this.#answered(answer);
    });
    worker.on('error', (error) => failed(`the speech worker failed: ${String(error)}`));
    worker.on('messageerror', () => failed('the speech worker sent what cannot be read'));
    worker.on('exit', (code) => failed(`the speech worker ended with code ${code}`));
    return worker;
  }

  #answered(answer: unknown): void {
    const request = this.#busyWith;
    if (request === undefined || typeof answer !== 'object' || answer === null) return;
    if (!('id' in answer) || answer.id !== request.id) return;
    this.#freeWorker();
    if ('pcm' in answer && answer.pcm instanceof Int16Array) {
      this.#keep(request.key, answer.pcm.byteLength);
      request.resolve(answer.pcm);
    } else {
      this.#fail(request, failure('flite could not speak', 'error' in answer ? answer.error : undefined));
    }
    this.#next();
  }

  #workerFailed(why: string): void {
    this.#log.warn({ why }, 'the speech worker is replaced');
    const worker = this.#worker;
    this.#retireWorker(failure(why));
    void worker?.terminate();
    this.#next();
  }

  #retireWorker(error: AudioError): void {
    const request = this.#busyWith;
    this.#freeWorker();
    this.#worker = undefined;
    if (request !== undefined) this.#fail(request, error);
  }

  #freeWorker(): void {
    this.#deadline?.cancel();
    this.#deadline = undefined;
    this.#busyWith = undefined;
    // An idle worker does not keep a finished command alive.
    this.#worker?.unref();
  }

  #fail(request: SpeechRequest, error: AudioError): void {
    this.#cache.delete(request.key);
    request.reject(error);
  }

  /** Counts a spoken utterance and forgets the longest unused ones beyond the bound. */
  #keep(key: string, bytes: number): void {
    const spoken = this.#cache.get(key);
    if (spoken === undefined) return;
    spoken.bytes = bytes;
    this.#cachedBytes += bytes;
    for (const [oldKey, old] of this.#cache) {
      if (this.#cachedBytes <= SPEECH_CACHE_MAX_BYTES) return;
      if (old.bytes === 0) continue;
      this.#cache.delete(oldKey);
      this.#cachedBytes -= old.bytes;
    }
  }
}

function failure(message: string, cause?: unknown): AudioError {
  return new AudioError('speech_failed', message, { cause });
}
