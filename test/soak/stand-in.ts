/**
 * The soak's Gemini Live service: a real WebSocket server on loopback, light enough for sixty calls at once beside everything else.
 * It knows the calls by the CallSid in their instructions (`soaked-agent.ts`) and leaves what they do to their plans.
 */
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { WebSocket, WebSocketServer } from 'ws';
import { type Clock, systemClock } from '../../src/clock.js';
import { type JsonObject, textInput } from '../support/scripted-gemini.js';
import { type CallPlan, numberIn } from './call-plan.js';
import { callerSound } from './model-sound.js';
import { type ModelLine, StandInCall } from './stand-in-call.js';

interface StandInOptions {
  readonly planOf: (number: number) => CallPlan;
  readonly tell: (number: number, what: string) => void;
}

class SocketLine implements ModelLine {
  call: StandInCall | undefined;
  readonly #socket: WebSocket;
  readonly #tcp: Socket;

  constructor(socket: WebSocket, tcp: Socket) {
    this.#socket = socket;
    this.#tcp = tcp;
  }

  get isOpen(): boolean {
    return this.#socket.readyState === WebSocket.OPEN;
  }

  /** As binary frames, in which Gemini sends its JSON as a rule. */
  send(message: object | Buffer): void {
    if (!this.isOpen) return;
    this.#socket.send(Buffer.isBuffer(message) ? message : JSON.stringify(message), { binary: true });
  }

  close(code: number, reason: string): void {
    this.#socket.close(code, reason);
  }

  cut(): void {
    this.#socket.terminate();
  }

  reset(): void {
    this.#tcp.resetAndDestroy();
  }
}

export class StandIn {
  /** Connections whose instruction named no call of ours. */
  strangers = 0;
  readonly #options: StandInOptions;
  readonly #clock: Clock = systemClock;
  readonly #calls = new Map<number, StandInCall>();
  readonly #sockets = new Set<Socket>();
  readonly #webSockets = new WebSocketServer({ noServer: true, perMessageDeflate: false });
  readonly #http: Server;

  private constructor(options: StandInOptions) {
    this.#options = options;
    this.#http = createServer((_request, response) => response.writeHead(404).end());
    this.#http.on('connection', (socket: Socket) => {
      this.#sockets.add(socket);
      socket.on('error', () => socket.destroy());
      socket.on('close', () => this.#sockets.delete(socket));
    });
    this.#http.on('upgrade', (request, socket, head) => this.#upgrade(request, socket, head));
  }

  static async start(options: StandInOptions): Promise<StandIn> {
    const standIn = new StandIn(options);
    await new Promise<void>((resolve) => {
      standIn.#http.listen(0, '127.0.0.1', resolve);
    });
    return standIn;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#http.address() as AddressInfo).port}`;
  }

  /** TCP sockets open at this moment. */
  get openSockets(): number {
    return this.#sockets.size;
  }

  call(number: number): StandInCall | undefined {
    return this.#calls.get(number);
  }

  async close(): Promise<void> {
    for (const call of this.#calls.values()) call.close();
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => {
      this.#http.close(resolve);
    });
  }

  #upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    const path = (request.url ?? '').split('?')[0] ?? '';
    if (!path.endsWith('BidiGenerateContent')) {
      socket.end('HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 0\r\n\r\n');
      return;
    }
    this.#webSockets.handleUpgrade(request, socket, head, (webSocket) => {
      const line = new SocketLine(webSocket, request.socket);
      webSocket.on('message', (data: Buffer) => this.#onMessage(line, data));
      webSocket.on('error', () => webSocket.terminate());
      webSocket.on('close', () => line.call?.onClosed(line));
    });
  }

  #onMessage(line: SocketLine, data: Buffer): void {
    if (line.call === undefined) return this.#onSetup(line, data);
    const sound = callerSound(data);
    if (sound !== undefined) return line.call.onSound(line, sound);
    const message = JSON.parse(data.toString()) as JsonObject;
    if (message['toolResponse'] !== undefined) return line.call.onToolResponse(line);
    const content = message['clientContent'] as { turnComplete?: boolean } | undefined;
    const text = textInput(message);
    // Content that leaves the turn open is background, and nothing to answer.
    if (text !== undefined && content?.turnComplete !== false) line.call.onText(line, text);
  }

  #onSetup(line: SocketLine, data: Buffer): void {
    const { setup } = JSON.parse(data.toString()) as {
      setup?: { systemInstruction?: unknown; sessionResumption?: { handle?: string } };
    };
    const number = numberIn(JSON.stringify(setup?.systemInstruction ?? ''));
    if (number === undefined) {
      this.strangers += 1;
      return line.close(1007, 'the instruction names no call');
    }
    line.call = this.#callOf(number);
    line.call.open(line, setup?.sessionResumption?.handle);
  }

  #callOf(number: number): StandInCall {
    const known = this.#calls.get(number);
    if (known !== undefined) return known;
    const call = new StandInCall({
      plan: this.#options.planOf(number),
      clock: this.#clock,
      tell: (what) => this.#options.tell(number, what),
    });
    this.#calls.set(number, call);
    return call;
  }
}
