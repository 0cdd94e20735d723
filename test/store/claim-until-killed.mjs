/**
 * Claims one key after another until it is killed, and settles two of three; tells of each once the store has answered. Arguments:
 * the database's address, and the session as JSON.
 */
import { writeSync } from 'node:fs';
import { systemClock } from '../../dist/clock.js';
import { silentLog } from '../../dist/observe/log.js';
import { openStore } from '../../dist/store/open-store.js';

const [url, session] = process.argv.slice(2);
const store = await openStore(url, { clock: systemClock, log: silentLog });
const { appName, userId, id } = JSON.parse(session);

for (let number = 0; ; number += 1) {
  const key = `key-${number}`;
  const amount = { account: 'a', amountMinor: 1, currency: 'USD', limitMinor: 1_000_000 };
  const claim = { session: { appName, userId, id }, key, tool: 't', callId: 'c', amount, guards: [] };
  const { kind } = await store.claim(claim);
  writeSync(1, `${kind} ${key}\n`);
  if (number % 3 === 0) continue;
  await store.settle(appName, key, { number });
  writeSync(1, `settled ${key}\n`);
}
