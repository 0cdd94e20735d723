/**
 * One open Gemini Live connection: the SDK's session for what is sent rarely, its socket for what is sent fifty times
 * a second, and the reader for what arrives. It promises order, one onClose, and that nothing a server sends or a
 * listener throws gets past it. Connecting is in `gemini-connect.ts`; when to reconnect is the call's affair.
 */
import { FunctionResponseScheduling, type Session } from '@google/genai';
import { MODEL_BUFFERED_MAX_BYTES } from '../limits.js';
import type { Log } from '../observe/log.js';
import { audioFrame, audioMessage } from './audio-frame.js';
import type { GeminiAudioDecoder } from './gemini-audio-decoder.js';
import type { MaskSecrets } from './gemini-connect-error.js';
import { GeminiMessageReader, type GeminiOddity } from './gemini-message-reader.js';
import { GeminiSoundShape } from './gemini-sound-shape.js';
import type { GeminiSocket, SocketEnd, SocketListener } from './gemini-socket.js';
import type { FunctionResponse, LiveClose, LiveConnection, LiveListener } from './live-connection.js';
import type { ModelCapabilities } from './model-capabilities.js';

/** `LiveClose.code` when the call's own listener threw: outside the range that peers may send. */
export const LISTENER_FAILED_CODE = 5000;

export interface GeminiLiveConnectionOptions {
  readonly modelName: string;
  readonly capabilities: ModelCapabilities;
  readonly session: Session;
  readonly socket: GeminiSocket;
  readonly listener: LiveListener;
  readonly audioDecoder: GeminiAudioDecoder;
  readonly log: Log;
  readonly mask: MaskSecrets;
  readonly observe: (oddity: GeminiOddity) => void;
  /** Messages that arrived before this connection existed; it takes the list over. */
  readonly earlyMessages: unknown[];
}

export class GeminiLiveConnection implements LiveConnection, SocketListener {
  readonly modelName: string;
  readonly capabilities: ModelCapabilities;
  readonly #session: Session;
  readonly #socket: GeminiSocket;
  readonly #listener: LiveListener;
  readonly #reader: GeminiMessageReader;
  readonly #soundShape: GeminiSoundShape;
  readonly #log: Log;
  readonly #mask: MaskSecrets;
  readonly #observe: (oddity: GeminiOddity) => void;
  readonly #logged = new Set<GeminiOddity>();
  /** Messages kept until the call holds its connection; undefined from then on. To the bounded list of the connect
   * attempt this adds at most what one turn of the event loop reads. */
  #early: unknown[] | undefined;
  #end: SocketEnd | undefined;
  #sends = true;
  #closedBy: 'peer' | 'call' | 'listenerFailure' = 'peer';

  constructor(options: GeminiLiveConnectionOptions) {
    this.modelName = options.modelName;
    this.capabilities = options.capabilities;
    this.#session = options.session;
    this.#socket = options.socket;
    this.#listener = options.listener;
    this.#log = options.log;
    this.#mask = options.mask;
    this.#observe = options.observe;
    this.#early = options.earlyMessages;
    this.#reader = new GeminiMessageReader({
      listener: options.listener,
      turnEnd: options.capabilities.turnEnd,
      audioDecoder: options.audioDecoder,
      reportOddity: (oddity) => this.#reportOddity(oddity),
    });
    this.#soundShape = new GeminiSoundShape(options.audioDecoder);
    options.socket.listener = this;
  }

  get bufferedAmount(): number {
    return this.#socket.bufferedAmount;
  }

  /** Begins to call the listener, first with what arrived early. For `gemini-connect.ts` only. */
  start(): void {
    const early = this.#early ?? [];
    this.#early = undefined;
    for (const message of early) this.#read(message);
    if (this.#end !== undefined) this.#tellClose(this.#end);
  }

  sendAudio(pcm16k: Uint8Array): void {
    if (!this.#sends || pcm16k.length === 0) return;
    const bytes = Buffer.isBuffer(pcm16k)
      ? pcm16k
      : Buffer.from(pcm16k.buffer, pcm16k.byteOffset, pcm16k.byteLength);
    const frame = this.#socket.isTapped ? undefined : audioFrame(bytes);
    if (frame === undefined) this.#socket.send(audioMessage(bytes));
    else this.#socket.sendFrame(frame);
  }

  sendText(text: string): void {
    if (!this.#sends) return;
    if (this.capabilities.textInput === 'realtimeInput') {
      this.#session.sendRealtimeInput({ text });
      return;
    }
    // The role is stated: 3.x refuses content without one, and no model takes `system`.
    this.#session.sendClientContent({ turns: [{ role: 'user', parts: [{ text }] }], turnComplete: true });
  }

  sendImage(mimeType: string, image: Uint8Array): boolean {
    // Bulk goes first: sound and words must still find room behind it.
    const isBehind = this.#socket.bufferedAmount > MODEL_BUFFERED_MAX_BYTES;
    if (!this.#sends || !this.capabilities.imageInput || isBehind) return false;
    const data = Buffer.from(image.buffer, image.byteOffset, image.byteLength).toString('base64');
    this.#session.sendRealtimeInput({ video: { mimeType, data } });
    return true;
  }

  sendToolResponse(functionResponses: readonly FunctionResponse[]): void {
    if (!this.#sends || functionResponses.length === 0) return;
    this.#session.sendToolResponse({
      functionResponses: functionResponses.map(({ id, name, response, scheduling }) => ({
        id,
        name,
        response,
        ...(scheduling && { scheduling: FunctionResponseScheduling[scheduling] }),
      })),
    });
  }

  close(): void {
    this.#close('call');
  }

  // The socket's side.

  onOpen(): void {
    // A connection is made from an open socket; there is nothing to hear here.
  }

  onBytes(data: Buffer): boolean {
    if (this.#early !== undefined) return false;
    const pcm = this.#soundShape.read(data);
    if (pcm === undefined) return false;
    this.#guard(() => this.#reader.readSound(pcm));
    return true;
  }

  onText(text: string, data?: Buffer): void {
    let message: unknown;
    try {
      message = JSON.parse(text);
    } catch {
      this.#reportOddity('frame_not_json');
      return;
    }
    if (data !== undefined) this.#soundShape.learn(data, message);
    if (this.#early === undefined) this.#read(message);
    else this.#early.push(message);
  }

  onEnd(end: SocketEnd): void {
    this.#sends = false;
    this.#end = end;
    if (this.#early === undefined) this.#tellClose(end);
  }

  #read(message: unknown): void {
    this.#guard(() => this.#reader.read(message));
  }

  #guard(read: () => void): void {
    try {
      read();
    } catch (error) {
      this.#reportOddity('listener_threw');
      const stack = error instanceof Error ? error.stack : String(error);
      this.#log.error(
        { pii: { stack } },
        'the call failed on a message of the model; its connection is closed',
      );
      this.#close('listenerFailure');
    }
  }

  #close(by: 'call' | 'listenerFailure'): void {
    this.#reader.stop();
    const isFirst = this.#closedBy === 'peer' && (this.#end === undefined || by === 'listenerFailure');
    if (isFirst) this.#closedBy = by;
    this.#sends = false;
    this.#socket.close();
  }

  #tellClose(end: SocketEnd): void {
    this.#reader.stop();
    try {
      this.#listener.onClose(this.#describeClose(end));
    } catch (error) {
      const stack = error instanceof Error ? error.stack : String(error);
      this.#log.error({ pii: { stack } }, 'the call failed on the close of its model connection');
    }
  }

  #describeClose(end: SocketEnd): LiveClose {
    if (this.#closedBy === 'listenerFailure') {
      return { code: LISTENER_FAILED_CODE, reason: 'the listener threw', local: false };
    }
    return { code: end.code, reason: this.#mask(end.reason), local: this.#closedBy === 'call' };
  }

  #reportOddity(oddity: GeminiOddity): void {
    this.#observe(oddity);
    if (this.#logged.has(oddity)) return;
    this.#logged.add(oddity);
    this.#log.warn({ oddity, modelName: this.modelName }, 'the model sent something odd; it is skipped');
  }
}
