/**
 * `node bench/watchers.mjs`: what it costs to tell the frames of one call to 200 watchers over HTTP, none or half of which have
 * stopped reading. The watchers are a process of their own. Needs a build. One JSON object a line: processor time of the
 * server per frame, the longest that anything else had to wait, and what `publish` itself takes.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { connect } from 'node:net';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const WATCHERS = 200;
const FRAMES = 500;
const INTERVAL_MS = 10;

function watch(port, count, stalled) {
  for (let index = 0; index < count; index += 1) {
    const socket = connect(port, '127.0.0.1', () =>
      socket.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n'),
    );
    if (index < stalled) socket.pause();
    else socket.resume();
    socket.on('error', () => {});
  }
}

/** Says so much that what a kernel keeps for one socket is full where nobody reads; the rest catches up meanwhile. */
async function fill(broadcast) {
  const text = 'x'.repeat(16_384);
  for (let index = 0; index < 300; index += 1) {
    broadcast.publish({ kind: 'done', msg: `filled ${index}`, role: 'model', text });
    await sleep(20);
  }
}

async function measure(stalled) {
  const { Broadcast } = await import('../dist/wire/broadcast.js');
  const { serveEvents } = await import('../dist/wire/serve-events.js');
  const { systemClock } = await import('../dist/clock.js');
  const broadcast = new Broadcast({ clock: systemClock });
  const server = createServer((request, response) => serveEvents(broadcast, request, response));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const self = fileURLToPath(import.meta.url);
  const { port } = server.address();
  const watchers = spawn(process.execPath, [self, 'watch', String(port), String(stalled)], {
    stdio: 'inherit',
  });
  while (broadcast.watchers < WATCHERS) await sleep(10);
  await fill(broadcast);
  const delay = monitorEventLoopDelay({ resolution: 1 });
  let publishMs = 0;
  delay.enable();
  const before = process.cpuUsage();
  const rss = process.memoryUsage().rss;
  for (let index = 0; index < FRAMES; index += 1) {
    const began = performance.now();
    broadcast.publish({ kind: 'delta', msg: `m${index >> 5}`, role: 'model', text: 'a few words more ' });
    publishMs += performance.now() - began;
    await sleep(INTERVAL_MS);
  }
  const { user, system } = process.cpuUsage(before);
  delay.disable();
  console.log(
    JSON.stringify({
      watchers: WATCHERS,
      stalled,
      frames: FRAMES,
      cpuUsPerFrame: Math.round((user + system) / FRAMES),
      cpuUsPerFrameAndReader: Number(((user + system) / FRAMES / (WATCHERS - stalled)).toFixed(1)),
      publishUs: Number(((publishMs * 1_000) / FRAMES).toFixed(1)),
      loopDelayP50Ms: Number((delay.percentile(50) / 1e6).toFixed(2)),
      loopDelayP99Ms: Number((delay.percentile(99) / 1e6).toFixed(2)),
      loopDelayMaxMs: Number((delay.max / 1e6).toFixed(2)),
      rssGrownMb: Number(((process.memoryUsage().rss - rss) / 2 ** 20).toFixed(1)),
    }),
  );
  watchers.kill();
  await once(watchers, 'exit');
  broadcast.end();
  server.closeAllConnections();
  server.close();
}

if (process.argv[2] === 'watch') watch(Number(process.argv[3]), WATCHERS, Number(process.argv[4]));
else for (const stalled of [0, WATCHERS / 2]) await measure(stalled);
