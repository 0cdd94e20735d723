/** A session with a long past, gone on with in text and live: what was said last is known, and no more is read than can be told. */
import { once } from 'node:events';
import { join } from 'node:path';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { WebSocket } from 'ws';
import { systemClock } from '../src/clock.js';
import { HISTORY_READ } from '../src/limits.js';
import { silentLog } from '../src/observe/log.js';
import { openStore } from '../src/store/open-store.js';
import { prepareEvent } from '../src/store/prepared-event.js';
import { SqlStore } from '../src/store/sql-store.js';
import { userEvent } from './store/store-fixture.js';
import { Stage } from './support/stage.js';
import { waitUntil } from './support/wait-until.js';

const SESSION = { appName: 'support', userId: 'ada', id: 'long' };
const EVENTS = 2 * HISTORY_READ.events;

let stage: Stage;
afterEach(async () => {
  vi.restoreAllMocks();
  await stage.close();
});

/** A server in whose store the session is. */
async function open(): Promise<void> {
  stage = await Stage.open();
  const url = `sqlite:${join(stage.folder, 'earshot.db')}`;
  const store = await openStore(url, { clock: systemClock, log: silentLog });
  await store.createSession(SESSION);
  await store.appendPrepared(
    Array.from({ length: EVENTS }, (_, at) => prepareEvent(SESSION, userEvent(`e${at}`, `word ${at}.`))),
  );
  await store.close();
}

describe('a session with a long past', () => {
  it('is gone on with in text', async () => {
    await open();
    const reading = vi.spyOn(SqlStore.prototype, 'getSession');
    stage.textModel.answer = (asked) => asked.answers('Yes.');
    expect((await stage.run('long', 'Do you remember?', 'ada')).status).toBe(200);
    expect(reading.mock.calls).toEqual([[SESSION, HISTORY_READ]]);
    expect((await reading.mock.results[0]!.value).omittedEvents).toBe(EVENTS - HISTORY_READ.events);
    const told = stage.textModel.asked.at(-1)!.told.join('\n');
    expect(told).toContain(`word ${EVENTS - 1}.`);
    expect(told).not.toContain('word 0.');
  });

  it('is gone on with live', async () => {
    await open();
    const reading = vi.spyOn(SqlStore.prototype, 'getSession');
    const ws = new WebSocket(`${stage.url.replace(/^http/, 'ws')}/run_live`);
    const frames: string[] = [];
    ws.on('message', (data) => frames.push((data as Buffer).toString()));
    await once(ws, 'open');
    ws.send(JSON.stringify({ type: 'start', userId: 'ada', sessionId: 'long' }));
    await waitUntil('the history', () => frames.length > 0);
    expect(JSON.parse(frames[0]!)).toMatchObject({ type: 'history' });
    expect(frames[0]).toContain(`word ${EVENTS - 1}.`);
    expect(reading.mock.calls).toEqual([[SESSION, HISTORY_READ]]);
    const model = await stage.gemini.connection(0);
    await waitUntil('the setup', () => model.setup !== undefined);
    const setup = JSON.stringify(model.setup);
    expect(setup).toContain(`word ${EVENTS - 1}.`);
    expect(setup).not.toContain('word 0.');
    ws.send(JSON.stringify({ type: 'end' }));
    await once(ws, 'close');
  });
});
