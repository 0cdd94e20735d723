/**
 * The door of `/run_live`: opens the socket of a request that may come in, and keeps the clients until they are gone. Who may
 * come in is decided before (the console's gatekeeper); what a client may do is decided in `live-client.ts`.
 */
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { WebSocketServer, type ServerOptions, type WebSocket } from 'ws';
import type { Clock } from '../clock.js';
import { errorText } from '../errors.js';
import { CARRIER_CLOSE_MAX_MS, WEB_PAYLOAD_MAX_BYTES, WEB_UNSTARTED_MAX } from '../limits.js';
import type { Log } from '../observe/log.js';
import { LiveClient } from './live-client.js';
import type { OpenLive } from './live-runs.js';

/** The subprotocol that is agreed on with clients that name one; a token beside it is never sent back. */
const SUBPROTOCOL = 'earshot';

// `closeTimeout` is not in the published types yet. Pings are answered by the client's own code: ws would cut a socket with many of them.
const SERVER_OPTIONS: ServerOptions & { closeTimeout: number } = {
  noServer: true,
  clientTracking: false,
  perMessageDeflate: false,
  autoPong: false,
  maxPayload: WEB_PAYLOAD_MAX_BYTES,
  closeTimeout: CARRIER_CLOSE_MAX_MS,
  handleProtocols: (protocols) => (protocols.has(SUBPROTOCOL) ? SUBPROTOCOL : false),
};

export interface LiveDoorOptions {
  readonly open: OpenLive;
  readonly clock: Clock;
  readonly log: Log;
  /** Sound of a client that was left out. */
  readonly onSoundDropped: (ms: number) => void;
}

export class LiveDoor {
  readonly #options: LiveDoorOptions;
  readonly #server = new WebSocketServer(SERVER_OPTIONS);
  readonly #clients = new Set<LiveClient>();
  #onEmpty: (() => void) | undefined;

  constructor(options: LiveDoorOptions) {
    this.#options = options;
    this.#server.on('wsClientError', (error, socket) => refuseHandshake(socket, error.message));
  }

  /** Sockets that are open. */
  get clients(): number {
    return this.#clients.size;
  }

  /** Whether another socket is opened: those that have not joined a conversation are only so many. */
  get hasRoom(): boolean {
    let unstarted = 0;
    for (const client of this.#clients) if (client.isUnstarted) unstarted += 1;
    return unstarted < WEB_UNSTARTED_MAX;
  }

  /** Takes the socket over. */
  handleUpgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    this.#server.handleUpgrade(request, socket, head, (ws) => this.#enter(ws));
  }

  /** Closes every socket, within CARRIER_CLOSE_MAX_MS. */
  async close(): Promise<void> {
    for (const client of this.#clients) client.close();
    if (this.#clients.size === 0) return;
    await new Promise<void>((resolve) => {
      this.#onEmpty = resolve;
    });
  }

  #enter(ws: WebSocket): void {
    const { clock, log, open, onSoundDropped } = this.#options;
    ws.on('error', (error) => log.info({ cause: errorText(error) }, 'a web client’s socket failed'));
    const client = new LiveClient({
      ws,
      clock,
      log,
      open,
      onSoundDropped,
      onJoined: (callSid) => {
        for (const other of this.#clients) if (other !== client && other.callSid === callSid) other.giveWay();
      },
      onGone: () => {
        this.#clients.delete(client);
        if (this.#clients.size === 0) this.#onEmpty?.();
      },
    });
    this.#clients.add(client);
  }
}

/** A request that is no handshake of a WebSocket, told as all errors are. The message is ours or that of ws, and quotes nothing. */
function refuseHandshake(socket: Duplex, why: string): void {
  const body = JSON.stringify({ error: `no WebSocket can be opened: ${why}` });
  const lines = [
    'HTTP/1.1 400 Bad Request',
    'Connection: close',
    'Cache-Control: no-store',
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Sec-WebSocket-Version: 13',
  ];
  socket.on('error', () => socket.destroy());
  socket.once('finish', () => socket.destroy());
  socket.end(`${lines.join('\r\n')}\r\n\r\n${body}`);
}
