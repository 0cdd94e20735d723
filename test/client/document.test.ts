import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { systemClock } from '../../src/clock.js';
import type { Connection } from '../../src/client/index.js';
import { Broadcast } from '../../src/wire/broadcast.js';
import { serveEvents } from '../../src/wire/serve-events.js';
import { readProjectFile } from '../tidy/project-files.js';

type WatchCall = (url: string, token: string, show: (lines: string[]) => void) => Connection;

test('the example of docs/client.md shows a call as it happens', async () => {
  const [, example = ''] = /```js\n([\s\S]*?)```/.exec(readProjectFile('docs/client.md').text) ?? [];
  const folder = mkdtempSync(join(tmpdir(), 'earshot-example-'));
  const broadcast = new Broadcast({ clock: systemClock });
  const server = createServer((request, response) => {
    if (request.headers.authorization === 'Bearer secret') serveEvents(broadcast, request, response);
    else response.writeHead(401).end();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  try {
    const path = join(folder, 'example.js');
    writeFileSync(path, example);
    const { watchCall } = (await import(path)) as { watchCall: WatchCall };
    const shown: string[][] = [];
    const { port } = server.address() as AddressInfo;
    const connection = watchCall(`http://127.0.0.1:${port}/`, 'secret', (lines) => shown.push(lines));
    while (broadcast.watchers === 0) await new Promise((resolve) => setTimeout(resolve, 2));
    broadcast.publish({ kind: 'done', msg: 'c', role: 'user', text: 'My order is damaged.' });
    broadcast.publish({ kind: 'delta', msg: 'a', role: 'model', text: 'Sorry to hear that' });
    broadcast.publish({ kind: 'flush', msg: 'a', text: 'Sorry' });
    broadcast.end();
    expect(await connection.ended).toMatchObject({ reason: 'finished' });
    expect(shown.at(-1)).toEqual(['user: My order is damaged.', 'model: Sorry —']);
  } finally {
    rmSync(folder, { recursive: true });
    server.closeAllConnections();
    server.close();
  }
});
