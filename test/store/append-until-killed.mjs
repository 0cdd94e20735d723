/**
 * A server that only stores: appends to several sessions through the writer and tells of each event once it is stored, until it is
 * killed. Arguments: the database's address, and the first event's number.
 */
import { writeSync } from 'node:fs';
import { systemClock } from '../../dist/clock.js';
import { silentLog } from '../../dist/observe/log.js';
import { EventWriter } from '../../dist/store/event-writer.js';
import { openStore } from '../../dist/store/open-store.js';

const [url, first] = process.argv.slice(2);
const store = await openStore(url, { clock: systemClock, log: silentLog });
const writer = new EventWriter({ store, clock: systemClock, log: silentLog });

async function talk(id) {
  const session = { appName: 'support', userId: 'ada', id };
  await writer.createSession(session);
  for (let number = Number(first); ; number += 1) {
    const event = {
      id: `event-${number}`,
      invocationId: 'run',
      author: 'user',
      timestamp: number,
      content: { role: 'user', parts: [{ text: 'x'.repeat(number % 900) }] },
      actions: { stateDelta: { last: number }, artifactDelta: {} },
    };
    const outcome = await writer.append(session, event);
    // In one write, so that a line is there whole or not at all.
    if (outcome.stored) writeSync(1, `${id} ${event.id} ${outcome.seq}\n`);
  }
}

await Promise.all(['1', '2', '3', '4'].map(talk));
