/**
 * What answers an HTTP upgrade that is not the carrier's: the operators' and web clients' sockets, behind the same gatekeeper
 * as the other doors, and 404 for every other path. A request that is refused never gets a socket.
 */
import { type IncomingMessage, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { createGatekeeper } from './gatekeeper.js';

/** A socket that can be opened. */
export interface SocketDoor {
  readonly hasRoom: boolean;
  /** Takes the socket over. */
  handleUpgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void;
}

/** Takes the socket over: hands it to the door of its path, or answers in plain HTTP and closes it. */
export function createUpgradeDoor(
  consoleToken: string | undefined,
  doors: Readonly<Record<string, SocketDoor>>,
): (request: IncomingMessage, socket: Duplex, head: Buffer) => void {
  const refusalOf = createGatekeeper(consoleToken, { bySubprotocol: true });
  return (request, socket, head) => {
    const path = request.url?.split('?', 1)[0] ?? '';
    const door = Object.hasOwn(doors, path) ? doors[path] : undefined;
    if (door === undefined) return answer(socket, 404, 'there is no such socket');
    const refusal = refusalOf(request);
    if (refusal !== undefined) return answer(socket, refusal.status, refusal.error);
    if (!door.hasRoom) return answer(socket, 503, 'too many sockets are being opened');
    return door.handleUpgrade(request, socket, head);
  };
}

function answer(socket: Duplex, status: 401 | 403 | 404 | 503, error: string): void {
  const body = JSON.stringify({ error });
  const lines = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    'Connection: close',
    'Cache-Control: no-store',
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(body)}`,
    ...(status === 401 ? ['WWW-Authenticate: Bearer'] : []),
  ];
  socket.on('error', () => socket.destroy());
  socket.once('finish', () => socket.destroy());
  socket.end(`${lines.join('\r\n')}\r\n\r\n${body}`);
}
