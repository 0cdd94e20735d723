/** One open Gemini Live connection, listener and all, whose socket is the test: for messages without a network. */
import type { Session } from '@google/genai';
import { GeminiAudioDecoder } from '../../src/model/gemini-audio-decoder.js';
import { GeminiLiveConnection } from '../../src/model/gemini-live-connection.js';
import type { GeminiOddity } from '../../src/model/gemini-message-reader.js';
import { GeminiSocket } from '../../src/model/gemini-socket.js';
import type { LiveListener } from '../../src/model/live-connection.js';
import { modelCapabilities } from '../../src/model/model-capabilities.js';
import { silentLog } from '../../src/observe/log.js';
import { RecordingLiveListener } from '../support/recording-live-listener.js';
import type { SocketScope } from '../../src/call-tap.js';
import { scopeOn } from '../support/scopes.js';
import { VirtualClock } from '../../src/replay/virtual-clock.js';

/** What the call sends by way of the SDK goes nowhere. */
const DEAF_SESSION = {
  sendRealtimeInput() {},
  sendClientContent() {},
  sendToolResponse() {},
} as unknown as Session;

export interface LiveParts {
  readonly listener: LiveListener;
  readonly oddities: GeminiOddity[];
  readonly url?: string;
  readonly scope?: SocketScope;
  readonly modelName?: string;
}

/** A connection over a socket that is not opened: only `connect` would do that. */
export function liveConnection(parts: LiveParts): { connection: GeminiLiveConnection; socket: GeminiSocket } {
  const { listener, oddities, scope = scopeOn(new VirtualClock()), modelName = 'gemini-3.8-live' } = parts;
  const socket = new GeminiSocket({
    url: parts.url ?? 'ws://localhost/',
    headers: {},
    scope,
    listener: { onOpen() {}, onText() {}, onEnd() {} },
  });
  const connection = new GeminiLiveConnection({
    modelName,
    capabilities: modelCapabilities(modelName),
    session: DEAF_SESSION,
    socket,
    listener,
    audioDecoder: new GeminiAudioDecoder(),
    log: silentLog,
    mask: (text) => text,
    observe: (oddity) => void oddities.push(oddity),
    earlyMessages: [],
  });
  return { connection, socket };
}

export class ModelLine {
  readonly listener = new RecordingLiveListener();
  readonly oddities: GeminiOddity[] = [];
  readonly connection: GeminiLiveConnection;

  constructor(modelName?: string) {
    const { listener, oddities } = this;
    const parts = { listener, oddities, ...(modelName === undefined ? {} : { modelName }) };
    this.connection = liveConnection(parts).connection;
    this.connection.start();
  }

  /** As the socket does it. */
  receive(text: string): void {
    const data = Buffer.from(text);
    if (!this.connection.onBytes(data)) this.connection.onText(data.toString('utf8'), data);
  }

  /** The long way only. */
  receiveText(text: string): void {
    this.connection.onText(text);
  }
}
