/** The real database thread, which dies with the first statement that says so. */
import { parentPort } from 'node:worker_threads';

const listen = parentPort.on.bind(parentPort);
parentPort.on = (name, answer) =>
  listen(name, (request) => {
    if (request.sql.includes('die now')) process.exit(3);
    answer(request);
  });
await import('../../src/store/sqlite-thread.mjs');
