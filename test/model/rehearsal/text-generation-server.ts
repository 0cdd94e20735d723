/** The text side alone behind a real HTTP server, without the voices that the whole service loads. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TextGenerationDoor } from '../../../src/model/rehearsal/text-generation-door.js';

export interface TextServer {
  readonly url: string;
  readonly door: TextGenerationDoor;
  close(): Promise<void>;
}

export async function serveText(door: TextGenerationDoor): Promise<TextServer> {
  const httpServer = createServer((request, response) => door.receive(request, response));
  httpServer.on('close', () => door.close());
  httpServer.listen(0, '127.0.0.1');
  await once(httpServer, 'listening');
  const { port } = httpServer.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    door,
    close: () =>
      new Promise((resolve) => {
        httpServer.close(() => resolve());
        httpServer.closeAllConnections();
      }),
  };
}
