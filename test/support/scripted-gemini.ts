/**
 * A Gemini Live server for tests: a real WebSocket server on loopback that speaks the wire protocol, records every
 * frame it gets, and answers as the test tells it. One server takes many connections.
 */
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { WebSocketServer, type RawData, type WebSocket } from 'ws';

export type JsonObject = Record<string, unknown>;

/** What happens to the next connections; may be changed while the server runs. */
export interface GeminiScript {
  /** `accept`, an HTTP status to refuse with, or no answer at all. */
  handshake: 'accept' | 'silent' | { httpStatus: number };
  /** What answers the setup frame; a function does as it likes. */
  setup:
    'complete' | 'silent' | { close: number; reason?: string } | ((connection: ScriptedConnection) => void);
  /** Runs as soon as the socket is open, before setup. */
  onOpen: ((connection: ScriptedConnection) => void) | undefined;
  /** Gemini sends its JSON in binary frames as a rule. */
  frames: 'text' | 'binary';
  /** Answers requests that ask for no WebSocket: the text model's. Without it they are refused. */
  onRequest: ((request: IncomingMessage, response: ServerResponse) => void) | undefined;
}

interface Waiter {
  readonly isMet: () => boolean;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

/** Conditions that are looked at again whenever something happened. */
class Waiters {
  readonly #waiting = new Set<Waiter>();

  wait(isMet: () => boolean): Promise<void> {
    if (isMet()) return Promise.resolve();
    return new Promise((resolve, reject) => {
      this.#waiting.add({ isMet, resolve, reject });
    });
  }

  check(): void {
    for (const waiter of this.#waiting) {
      if (!waiter.isMet()) continue;
      this.#waiting.delete(waiter);
      waiter.resolve();
    }
  }

  fail(error: Error): void {
    for (const waiter of this.#waiting) waiter.reject(error);
    this.#waiting.clear();
  }
}

function textOf(data: RawData): string {
  if (Array.isArray(data)) return Buffer.concat(data).toString('utf8');
  return Buffer.from(data as Uint8Array).toString('utf8');
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** `{text}` of a clientContent or realtimeInput frame, undefined for other frames. */
export function textInput(frame: JsonObject): string | undefined {
  const { realtimeInput, clientContent } = frame;
  if (isObject(realtimeInput) && typeof realtimeInput['text'] === 'string') return realtimeInput['text'];
  if (!isObject(clientContent)) return undefined;
  const turns = clientContent['turns'] as { parts?: { text?: string }[] }[] | undefined;
  return turns
    ?.flatMap((turn) => turn.parts ?? [])
    .map((part) => part.text ?? '')
    .join('');
}

/** One client, from its handshake to its close. */
export class ScriptedConnection {
  /** Every frame after setup, parsed, in order. */
  readonly received: JsonObject[] = [];
  /** The same as the text that came over the wire. */
  readonly receivedTexts: string[] = [];
  /** `request.url` as it came, query and all. */
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  /** The content of the setup frame, once it has come. */
  setup: JsonObject | undefined;
  /** It was told that its setup is complete. */
  isReady = false;
  /** The client's close code, once the socket is closed. */
  closeCode: number | undefined;
  /** Frames that were not JSON objects. */
  malformedFrames = 0;
  readonly #socket: WebSocket;
  readonly #tcp: Socket;
  readonly #script: GeminiScript;
  readonly #waiters = new Waiters();

  constructor(socket: WebSocket, request: IncomingMessage, script: GeminiScript) {
    this.#socket = socket;
    this.#tcp = request.socket;
    this.#script = { ...script };
    this.path = request.url ?? '';
    this.headers = request.headers;
    socket.on('message', (data) => this.#onFrame(textOf(data)));
    socket.on('error', () => socket.terminate());
    socket.on('close', (code) => {
      this.closeCode = code;
      this.#waiters.check();
      this.#waiters.fail(
        new Error(`the client closed the connection (${code}) before the condition was met`),
      );
    });
    this.#script.onOpen?.(this);
  }

  get isClosed(): boolean {
    return this.closeCode !== undefined;
  }

  /** Neither side has begun to close it. */
  get isOpen(): boolean {
    return this.#socket.readyState === this.#socket.OPEN;
  }

  /** All caller sound received so far. */
  get receivedAudio(): Buffer {
    return Buffer.concat(
      this.received.flatMap(({ realtimeInput }) => {
        if (!isObject(realtimeInput) || !isObject(realtimeInput['audio'])) return [];
        return [Buffer.from(String(realtimeInput['audio']['data']), 'base64')];
      }),
    );
  }

  /** Every text the client sent, by whichever path. */
  get receivedTextInputs(): string[] {
    return this.received.map((frame) => textInput(frame)).filter((text) => text !== undefined);
  }

  /** Resolves once a received frame (past or future) fits; rejects when the connection closes first. */
  async waitFor(predicate: (frame: JsonObject) => boolean): Promise<JsonObject> {
    await this.waitUntil(() => this.received.some((frame) => predicate(frame)));
    return this.received.find((frame) => predicate(frame))!;
  }

  /** Resolves once the condition holds, looked at after every frame and at the close. */
  waitUntil(isMet: () => boolean): Promise<void> {
    return this.#waiters.wait(isMet);
  }

  waitForSetup(): Promise<void> {
    return this.waitUntil(() => this.setup !== undefined);
  }

  /** Resolves with the client's close code. */
  async waitForClose(): Promise<number> {
    await this.waitUntil(() => this.isClosed);
    return this.closeCode!;
  }

  /** Sends messages as one frame each, all in one write. */
  send(...messages: unknown[]): void {
    this.sendRaw(...messages.map((message) => JSON.stringify(message)));
  }

  /** Sends frames of any text, in one write. */
  sendRaw(...texts: string[]): void {
    this.#tcp.cork();
    const binary = this.#script.frames === 'binary';
    for (const text of texts) this.#socket.send(text, { binary });
    this.#tcp.uncork();
  }

  setupComplete(): void {
    this.isReady = true;
    this.send({ setupComplete: {} });
  }

  sendServerContent(serverContent: JsonObject): void {
    this.send({ serverContent });
  }

  /** 24 kHz PCM16, as one part of one message. */
  sendAudio(pcm: Uint8Array, mimeType = 'audio/pcm;rate=24000'): void {
    const data = Buffer.from(pcm).toString('base64');
    this.sendServerContent({ modelTurn: { role: 'model', parts: [{ inlineData: { mimeType, data } }] } });
  }

  sendInputTranscription(text: string): void {
    this.sendServerContent({ inputTranscription: { text } });
  }

  sendOutputTranscription(text: string): void {
    this.sendServerContent({ outputTranscription: { text } });
  }

  interrupt(): void {
    this.sendServerContent({ interrupted: true });
  }

  generationComplete(): void {
    this.sendServerContent({ generationComplete: true });
  }

  turnComplete(more: JsonObject = {}): void {
    this.sendServerContent({ turnComplete: true, ...more });
  }

  toolCall(...functionCalls: { id: string; name: string; args?: JsonObject }[]): void {
    this.send({ toolCall: { functionCalls } });
  }

  cancelToolCalls(...ids: string[]): void {
    this.send({ toolCallCancellation: { ids } });
  }

  goAway(timeLeft = '50s'): void {
    this.send({ goAway: { timeLeft } });
  }

  sendResumptionHandle(newHandle: string, resumable = true): void {
    this.send({ sessionResumptionUpdate: { newHandle, resumable } });
  }

  /** Closes with a close frame. */
  close(code = 1000, reason = ''): void {
    this.#socket.close(code, reason);
  }

  /** Cuts the socket without a close frame. */
  terminate(): void {
    this.#socket.terminate();
  }

  /** Resets the TCP connection, which is an error at the other end. */
  reset(): void {
    this.#tcp.resetAndDestroy();
  }

  /** Sends bytes that are no WebSocket frame. */
  sendGarbage(): void {
    this.#tcp.write(Buffer.alloc(16, 0xff));
  }

  /** Reads nothing more, as a server that has stalled; what the client sends piles up. */
  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  #onFrame(text: string): void {
    let frame: unknown;
    try {
      frame = JSON.parse(text);
    } catch {
      frame = undefined;
    }
    if (!isObject(frame)) this.malformedFrames += 1;
    else if (this.setup === undefined) this.#onSetup(frame);
    else {
      this.received.push(frame);
      this.receivedTexts.push(text);
    }
    this.#waiters.check();
  }

  #onSetup(frame: JsonObject): void {
    if (!isObject(frame['setup'])) {
      this.close(1007, 'the first message must be setup');
      return;
    }
    this.setup = frame['setup'];
    const { setup } = this.#script;
    if (setup === 'complete') this.setupComplete();
    else if (typeof setup === 'function') setup(this);
    else if (setup !== 'silent') this.close(setup.close, setup.reason);
  }
}

export class ScriptedGemini {
  /** In the order in which they came. */
  readonly connections: ScriptedConnection[] = [];
  /** What happens to connections from now on. */
  readonly script: GeminiScript;
  /** Handshakes that came, refused ones too. */
  handshakes = 0;
  /** The most connections that were there at once, none of them closed to the end. */
  mostOpen = 0;
  readonly #http: Server;
  readonly #webSockets = new WebSocketServer({ noServer: true, perMessageDeflate: false });
  readonly #sockets = new Set<Socket>();
  readonly #waiters = new Waiters();

  private constructor(script: Partial<GeminiScript>) {
    this.script = {
      handshake: 'accept',
      setup: 'complete',
      onOpen: undefined,
      frames: 'binary',
      onRequest: undefined,
      ...script,
    };
    this.#http = createServer((request, response) => {
      if (this.script.onRequest === undefined) response.writeHead(404).end();
      else this.script.onRequest(request, response);
    });
    this.#http.on('connection', (socket: Socket) => {
      this.#sockets.add(socket);
      socket.on('error', () => socket.destroy());
      socket.on('close', () => {
        this.#sockets.delete(socket);
        this.#waiters.check();
      });
    });
    this.#http.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
      this.#onUpgrade(request, socket, head);
    });
  }

  static async start(script: Partial<GeminiScript> = {}): Promise<ScriptedGemini> {
    const server = new ScriptedGemini(script);
    await new Promise<void>((resolve) => {
      server.#http.listen(0, '127.0.0.1', resolve);
    });
    return server;
  }

  /** The base URL for the adapter: `http://127.0.0.1:PORT`. */
  get url(): string {
    return `http://127.0.0.1:${(this.#http.address() as AddressInfo).port}`;
  }

  /** TCP sockets open at this moment. */
  get openSockets(): number {
    return this.#sockets.size;
  }

  /** Connection number `index`, counted from 0, once its socket is open. */
  async connection(index = 0): Promise<ScriptedConnection> {
    await this.#waiters.wait(() => this.connections.length > index);
    return this.connections[index]!;
  }

  /** Resolves once so many handshakes have come. */
  waitForHandshakes(count: number): Promise<void> {
    return this.#waiters.wait(() => this.handshakes >= count);
  }

  /** Resolves once no TCP socket is open. */
  waitForNoSockets(): Promise<void> {
    return this.#waiters.wait(() => this.#sockets.size === 0);
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => {
      this.#http.close(resolve);
    });
  }

  #onUpgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    this.handshakes += 1;
    const { handshake } = this.script;
    const path = (request.url ?? '').split('?')[0] ?? '';
    if (handshake === 'accept' && path.endsWith('BidiGenerateContent')) {
      this.#webSockets.handleUpgrade(request, socket, head, (webSocket) => {
        this.connections.push(new ScriptedConnection(webSocket, request, this.script));
        const open = this.connections.filter(({ isClosed }) => !isClosed).length;
        this.mostOpen = Math.max(this.mostOpen, open);
        this.#waiters.check();
      });
    } else if (handshake === 'silent') {
      // Somebody must read, or the client's end of the socket is never noticed.
      socket.on('end', () => socket.end()).resume();
    } else {
      const status = handshake === 'accept' ? 404 : handshake.httpStatus;
      socket.end(`HTTP/1.1 ${status} Refused\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
    }
    this.#waiters.check();
  }
}
