/**
 * What answers an HTTP upgrade that is not the carrier's: the sockets that the contract names but that are not built
 * yet, behind the same gatekeeper as the other operators' doors, and 404 for every other path. No socket is opened.
 */
import { type IncomingMessage, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { createGatekeeper } from './gatekeeper.js';

const NOT_BUILT_YET = new Set(['/run_live']);

/** Takes the socket over, answers in plain HTTP and closes it. */
export function createUpgradeDoor(
  consoleToken: string | undefined,
): (request: IncomingMessage, socket: Duplex) => void {
  const refusalOf = createGatekeeper(consoleToken);
  return (request, socket) => {
    const path = request.url?.split('?', 1)[0] ?? '';
    if (!NOT_BUILT_YET.has(path)) answer(socket, 404, 'there is no such socket');
    else {
      const refusal = refusalOf(request, true);
      if (refusal === undefined) answer(socket, 501, `WS ${path} is not built yet in this version`);
      else answer(socket, refusal.status, refusal.error);
    }
  };
}

function answer(socket: Duplex, status: 401 | 403 | 404 | 501, error: string): void {
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
