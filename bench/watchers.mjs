/**
 * `node bench/watchers.mjs`: what it costs to tell the frames of one call to 200 watchers over HTTP, none or half of which have
 * stopped reading, and what the playout of a call beside them notices of it; first without a watcher. The watchers are a process
 * of their own. Needs a build. One JSON object a line: processor time of the server per frame, the longest that anything else
 * had to wait, what `publish` itself takes, and the playout's late writes and the carrier's dry time.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { connect } from 'node:net';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const WATCHERS = 200;
const FRAMES = 2_000;
/** Ten times the deltas of a call. */
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

async function measure(count, stalled) {
  const { Broadcast } = await import('../dist/wire/broadcast.js');
  const { serveEvents } = await import('../dist/wire/serve-events.js');
  const { systemClock } = await import('../dist/clock.js');
  const { PlayoutBeside } = await import('./playout-beside.mjs');
  const broadcast = new Broadcast({ clock: systemClock });
  const server = createServer((request, response) => serveEvents(broadcast, request, response));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const self = fileURLToPath(import.meta.url);
  const { port } = server.address();
  const watchers = spawn(process.execPath, [self, 'watch', String(port), String(count), String(stalled)], {
    stdio: 'inherit',
  });
  while (broadcast.watchers < count) await sleep(10);
  if (count > 0) await fill(broadcast);
  const delay = monitorEventLoopDelay({ resolution: 1 });
  let publishMs = 0;
  const playout = new PlayoutBeside();
  playout.say(4 * FRAMES * INTERVAL_MS);
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
  const played = playout.end();
  console.log(
    JSON.stringify({
      watchers: count,
      stalled,
      frames: FRAMES,
      cpuUsPerFrame: Math.round((user + system) / FRAMES),
      publishUs: Number(((publishMs * 1_000) / FRAMES).toFixed(1)),
      loopDelayP50Ms: Number((delay.percentile(50) / 1e6).toFixed(2)),
      loopDelayP99Ms: Number((delay.percentile(99) / 1e6).toFixed(2)),
      loopDelayMaxMs: Number((delay.max / 1e6).toFixed(2)),
      rssGrownMb: Number(((process.memoryUsage().rss - rss) / 2 ** 20).toFixed(1)),
      ...played,
    }),
  );
  if (watchers.exitCode === null) {
    watchers.kill();
    await once(watchers, 'exit');
  }
  broadcast.end();
  server.closeAllConnections();
  server.close();
}

const [how, ...numbers] = process.argv.slice(2);
if (how === 'watch') watch(...numbers.map(Number));
else {
  await measure(0, 0);
  await measure(WATCHERS, 0);
  await measure(WATCHERS, WATCHERS / 2);
}
