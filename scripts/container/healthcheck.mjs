/**
 * The image's health check: exits 0 when `/healthz` answers 200 where the server listens, else 1 with a line that says
 * why. Reads HOST and PORT as the server does; a server that listens everywhere is asked on loopback. Bounded by itself,
 * so that a hanging check does not depend on who started it.
 */
import { get } from 'node:http';

const ANSWER_MAX_MS = 2_500;
const EVERYWHERE = new Map([
  ['0.0.0.0', '127.0.0.1'],
  ['::', '::1'],
]);

function fail(problem) {
  process.stderr.write(`not healthy: ${problem}\n`);
  process.exit(1);
}

const host = process.env['HOST']?.trim() || '127.0.0.1';
const port = process.env['PORT']?.trim() || '8080';
const request = get({ host: EVERYWHERE.get(host) ?? host, port, path: '/healthz' }, (response) => {
  if (response.statusCode !== 200) fail(`/healthz answered ${response.statusCode}`);
  process.exit(0);
});
request.on('error', (error) => fail(error.message));
setTimeout(() => fail(`no answer within ${ANSWER_MAX_MS} ms`), ANSWER_MAX_MS);
