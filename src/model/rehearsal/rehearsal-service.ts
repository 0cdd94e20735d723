/**
 * The embedded stand-in for Gemini Live: a WebSocket service of its own on 127.0.0.1 that speaks the same protocol,
 * so that the SDK and everything above run exactly as with the real one, with no account and no key. It speaks with a
 * small synthesizer and takes turns; it does not understand speech, and says so in the log and on the line.
 */
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { type RawData, type WebSocket, WebSocketServer } from 'ws';
import type { Clock } from '../../clock.js';
import { errorText, ModelError } from '../../errors.js';
import {
  REHEARSAL_CLOSE_MAX_MS,
  REHEARSAL_CONNECTIONS_MAX,
  REHEARSAL_PAYLOAD_MAX_BYTES,
} from './rehearsal-limits.js';
import type { Log } from '../../observe/log.js';
import { type Dialogue, type FrameKind, readDialogue } from './dialogue.js';
import { type ChosenDialogue, RehearsalConnection } from './rehearsal-connection.js';
import { ResumptionHandles } from './resumption-handles.js';
import { SeededRandom } from './seeded-random.js';
import { FliteSynthesizer, type SpeechSynthesizer } from './speech-synthesizer.js';
import { TextGenerationDoor } from './text-generation-door.js';
import type { TextFaultRule } from './text-generation-fault.js';

const HOST = '127.0.0.1';
/** A close frame holds 125 bytes: the code and this much reason (RFC 6455, 5.5). */
const CLOSE_REASON_MAX_BYTES = 123;
const GOING_AWAY = 1001;
const POLICY = 1008;
/** Not sent as a close frame: the connection is cut. */
const ABNORMAL = 1006;
/** The default dialogue's model name, and what stands in front of an agent's name in the others. */
const MODEL_NAME = 'rehearsal';
const AGENT_MODEL_PREFIX = 'rehearsal-';

export interface RehearsalServiceOptions {
  readonly clock: Clock;
  readonly log: Log;
  /** 0, the default, takes a free port. */
  readonly port?: number;
  /** Of everything that looks like chance: chunk sizes, gaps, stutters. */
  readonly seed?: number;
  /** For every model name that is none of `dialogues`; the shipped one where none is given. */
  readonly dialogue?: Dialogue;
  /** Of text conversations; without it `dialogue`, and without that the shipped one for text. */
  readonly textDialogue?: Dialogue;
  /** Misbehaviour of the text side; without it the shipped rules. */
  readonly textFaults?: readonly TextFaultRule[];
  /** By the agent's name: its model is `models/rehearsal-<agent name>`, live and in text. */
  readonly dialogues?: ReadonlyMap<string, Dialogue>;
  /** One that is passed in stays open at `close()`. */
  readonly synthesizer?: SpeechSynthesizer;
  /** Binary by default; of a dialogue that says so itself, as it says. `mixed` draws for each message, by the seed. */
  readonly frames?: FrameKind;
}

export interface RehearsalService {
  /** For the SDK's `httpOptions.baseUrl`. */
  readonly url: string;
  /** Open connections. */
  readonly connections: number;
  /** Closes every connection (1001), the port and the synthesizer; no timer is left. Idempotent. */
  close(): Promise<void>;
}

/** Resolves when the port is open. Rejects with ModelError `rehearsal_failed`, or ConfigError for a bad dialogue. */
export async function startRehearsalService(options: RehearsalServiceOptions): Promise<RehearsalService> {
  const dialogue = options.dialogue ?? readDialogue();
  const textDoor = new TextGenerationDoor({
    ...options,
    dialogue: options.textDialogue ?? options.dialogue,
    dialogueOf: (model) => options.dialogues?.get(agentOf(model)),
    faults: options.textFaults,
  });
  const httpServer = createServer((request, response) => textDoor.receive(request, response));
  httpServer.on('close', () => textDoor.close());
  await listen(httpServer, options.port ?? 0);
  const { port } = httpServer.address() as AddressInfo;
  const service = new WebSocketRehearsal(httpServer, `http://${HOST}:${port}`, dialogue, options);
  options.log.info(
    { url: service.url },
    'the rehearsal model answers calls: it takes turns and speaks, but understands no speech',
  );
  return service;
}

function listen(httpServer: Server, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const failed = (error: Error) =>
      reject(
        new ModelError('rehearsal_failed', `the rehearsal model cannot listen: ${errorText(error)}`, {
          cause: error,
        }),
      );
    httpServer.once('error', failed);
    httpServer.listen(port, HOST, () => {
      httpServer.off('error', failed);
      resolve();
    });
  });
}

class WebSocketRehearsal implements RehearsalService {
  readonly url: string;
  readonly #httpServer: Server;
  readonly #dialogue: Dialogue;
  readonly #options: RehearsalServiceOptions;
  readonly #synthesizer: SpeechSynthesizer;
  readonly #handles: ResumptionHandles;
  /** Connections that each dialogue has had. */
  readonly #connectionsOf = new Map<Dialogue, number>();
  readonly #webSockets = new WebSocketServer({
    noServer: true,
    maxPayload: REHEARSAL_PAYLOAD_MAX_BYTES,
    perMessageDeflate: false,
  });
  #opened = 0;
  #closing: Promise<void> | undefined;

  constructor(httpServer: Server, url: string, dialogue: Dialogue, options: RehearsalServiceOptions) {
    this.url = url;
    this.#httpServer = httpServer;
    this.#dialogue = dialogue;
    this.#options = options;
    this.#handles = new ResumptionHandles(options.clock);
    this.#synthesizer = options.synthesizer ?? warmSynthesizer(options);
    httpServer.on('upgrade', (request, socket, head) => this.#upgrade(request, socket, head));
    httpServer.on('error', (error) =>
      options.log.error({ why: errorText(error) }, 'the rehearsal model lost its port'),
    );
  }

  get connections(): number {
    return this.#webSockets.clients.size;
  }

  close(): Promise<void> {
    this.#closing ??= this.#closeAll();
    return this.#closing;
  }

  async #closeAll(): Promise<void> {
    const clients = [...this.#webSockets.clients];
    const gone = Promise.all(
      clients.map((client) => new Promise((resolve) => client.once('close', resolve))),
    );
    for (const client of clients) client.close(GOING_AWAY, 'The service is shutting down.');
    const cut = this.#options.clock.setTimer(REHEARSAL_CLOSE_MAX_MS, () => {
      for (const client of clients) client.terminate();
    });
    await gone;
    cut.cancel();
    this.#webSockets.close();
    await new Promise((resolve) => {
      this.#httpServer.close(resolve);
      this.#httpServer.closeAllConnections();
    });
    if (this.#options.synthesizer === undefined) await this.#synthesizer.close();
  }

  #upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    socket.on('error', () => socket.destroy());
    // The SDK's base URL ends in a slash of its own, so the path arrives with two.
    const path = (request.url ?? '').replaceAll(/\/{2,}/g, '/');
    const url = URL.canParse(path, this.url) ? new URL(path, this.url) : undefined;
    if (url?.pathname.endsWith('BidiGenerateContent') !== true) return refuse(socket, '404 Not Found');
    if (this.#closing !== undefined || this.connections >= REHEARSAL_CONNECTIONS_MAX) {
      return refuse(socket, '503 Service Unavailable');
    }
    this.#webSockets.handleUpgrade(request, socket, head, (webSocket) => {
      const key = url.searchParams.get('key');
      if (key === null || key === '') {
        const unregistered = "Method doesn't allow unregistered callers. Please use API Key.";
        webSocket.on('error', () => webSocket.terminate());
        webSocket.close(POLICY, unregistered);
        return;
      }
      this.#open(webSocket);
    });
  }

  #open(webSocket: WebSocket): void {
    this.#opened += 1;
    const seed = (this.#options.seed ?? 1) + this.#opened;
    // Chance of its own: how the frames are sent does not change what is in them.
    const frameChance = new SeededRandom(~seed);
    const connection = new RehearsalConnection({
      clock: this.#options.clock,
      log: this.#options.log,
      chooseDialogue: (model) => this.#chooseDialogue(model),
      synthesizer: this.#synthesizer,
      random: new SeededRandom(seed),
      handles: this.#handles,
      sessionId: `rehearsal-session-${this.#opened}`,
      send: (message, frames = this.#options.frames ?? 'binary') => {
        if (webSocket.readyState !== webSocket.OPEN) return;
        const json = JSON.stringify(message);
        const binary = frames === 'mixed' ? frameChance.chance(0.5) : frames === 'binary';
        webSocket.send(binary ? Buffer.from(json) : json, { binary });
      },
      bufferedAmount: () => webSocket.bufferedAmount,
      isOpen: () => webSocket.readyState === webSocket.OPEN,
      close: (code, reason) => {
        if (code === ABNORMAL) webSocket.terminate();
        else webSocket.close(code, closeReason(reason));
      },
    });
    webSocket.on('message', (data: RawData) => connection.receive(textOf(data)));
    webSocket.on('close', () => connection.stop());
    // A broken or oversized frame: ws itself sends the close frame that tells the client why.
    webSocket.on('error', (error) =>
      this.#options.log.warn({ why: errorText(error) }, 'a connection to the rehearsal model failed'),
    );
  }

  #chooseDialogue(model: string): ChosenDialogue {
    const name = model.slice(model.lastIndexOf('/') + 1);
    const dialogue = this.#options.dialogues?.get(agentOf(name)) ?? this.#dialogue;
    const connection = (this.#connectionsOf.get(dialogue) ?? 0) + 1;
    this.#connectionsOf.set(dialogue, connection);
    const takesAnySetup = name === MODEL_NAME || name.startsWith(AGENT_MODEL_PREFIX);
    return { dialogue, connection, takesAnySetup };
  }
}

/** The agent that a model's name stands for; empty for the default dialogue. */
function agentOf(modelName: string): string {
  return modelName.startsWith(AGENT_MODEL_PREFIX) ? modelName.slice(AGENT_MODEL_PREFIX.length) : '';
}

/** Starts the worker now, so that the first caller does not wait until the voices are loaded. */
function warmSynthesizer(options: RehearsalServiceOptions): SpeechSynthesizer {
  const synthesizer = new FliteSynthesizer(options);
  synthesizer.speak('slt', 'Hello.').catch((error: unknown) => {
    options.log.debug({ why: errorText(error) }, 'the rehearsal model could not warm up its voice');
  });
  return synthesizer;
}

function refuse(socket: Duplex, status: string): void {
  socket.end(`HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
}

function textOf(data: RawData): string {
  if (Array.isArray(data)) return Buffer.concat(data).toString('utf8');
  return (Buffer.isBuffer(data) ? data : Buffer.from(data)).toString('utf8');
}

/** Cut to what a close frame holds, at a whole character. */
function closeReason(reason: string): string {
  let cut = reason.slice(0, CLOSE_REASON_MAX_BYTES);
  while (Buffer.byteLength(cut) > CLOSE_REASON_MAX_BYTES) cut = cut.slice(0, -1);
  return cut;
}
