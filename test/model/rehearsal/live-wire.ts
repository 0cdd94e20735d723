/** A client of the Live protocol that sends frames as they are, to the rehearsal or to Google, and keeps the answers. */
import type { LiveServerMessage } from '@google/genai';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { type RawData, WebSocket } from 'ws';
import { fromPcm16, resample, toPcm16 } from '../../../src/model/rehearsal/speech-sound.mjs';

/** Where the contract is tried. */
export interface LiveTarget {
  /** `ws:` or `wss:`, up to the path. */
  readonly origin: string;
  readonly key: string;
  /** With `models/`. */
  readonly model: string;
  /** Resolves when the condition holds; time passes meanwhile, the clock's or the real one. */
  until(condition: () => boolean): Promise<void>;
  /** Lets so much of the target's time pass between two pieces of sound. */
  pace(ms: number): Promise<void>;
}

const PATH = '/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent';
const PIECE_MS = 100;

export class LiveWire {
  readonly messages: LiveServerMessage[] = [];
  closed: { code: number; reason: string } | undefined;
  readonly #target: LiveTarget;
  readonly #webSocket: WebSocket;

  private constructor(target: LiveTarget, webSocket: WebSocket) {
    this.#target = target;
    this.#webSocket = webSocket;
    webSocket.on('message', (data: RawData) => {
      this.messages.push(JSON.parse((data as Buffer).toString('utf8')) as LiveServerMessage);
    });
    webSocket.on('close', (code, reason) => {
      this.closed = { code, reason: reason.toString() };
    });
    webSocket.on('error', () => webSocket.terminate());
  }

  static async open(target: LiveTarget, key = target.key): Promise<LiveWire> {
    const webSocket = new WebSocket(`${target.origin}${PATH}${key === '' ? '' : `?key=${key}`}`);
    const wire = new LiveWire(target, webSocket);
    await once(webSocket, 'open');
    return wire;
  }

  /** Opens, and waits until the setup is taken. */
  static async begin(target: LiveTarget, setup: object = {}): Promise<LiveWire> {
    const wire = await LiveWire.open(target);
    wire.send({ setup: wire.setup(setup) });
    await target.until(() => wire.messages.some(({ setupComplete }) => setupComplete) || wire.isClosed);
    return wire;
  }

  get isClosed(): boolean {
    return this.closed !== undefined;
  }

  setup(more: object): object {
    return {
      model: this.#target.model,
      generationConfig: { responseModalities: ['AUDIO'] },
      inputAudioTranscription: {},
      outputAudioTranscription: {},
      ...more,
    };
  }

  send(frame: object): void {
    this.#webSocket.send(JSON.stringify(frame));
  }

  ask(text: string): void {
    this.send({ clientContent: { turns: [{ role: 'user', parts: [{ text }] }], turnComplete: true } });
  }

  /** Waits for a message that fits, or for the end of the connection. The messages since `from`. */
  async since(from: number, fits: (message: LiveServerMessage) => boolean): Promise<LiveServerMessage[]> {
    await this.#target.until(() => this.messages.slice(from).some(fits) || this.isClosed);
    return this.messages.slice(from);
  }

  /** Sends a caller's sound as it is spoken, and a pause behind it. */
  async speak(pcm16k: Int16Array): Promise<void> {
    const whole = Buffer.alloc(pcm16k.byteLength + 2 * 16_000 * 2);
    Buffer.from(pcm16k.buffer, pcm16k.byteOffset, pcm16k.byteLength).copy(whole);
    const bytes = (PIECE_MS * 16_000 * 2) / 1_000;
    for (let at = 0; at < whole.length && !this.isClosed; at += bytes) {
      const data = whole.subarray(at, at + bytes).toString('base64');
      this.send({ realtimeInput: { audio: { mimeType: 'audio/pcm;rate=16000', data } } });
      await this.#target.pace(PIECE_MS);
    }
  }

  async close(): Promise<void> {
    this.#webSocket.close();
    await this.#target.until(() => this.isClosed);
  }
}

/** A stretch of a shipped caller, at 16 kHz. */
export function callerSound(name: string, fromMs: number, toMs: number): Int16Array {
  const wav = readFileSync(new URL(`../../../fixtures/callers/${name}.wav`, import.meta.url));
  const start = wav.indexOf('data', 12, 'latin1') + 8;
  const cut = Uint8Array.from(wav.subarray(start + fromMs * 16, start + toMs * 16));
  return toPcm16(resample(fromPcm16(new Int16Array(cut.buffer)), 2, 1));
}
