/** What was said is deleted: no route shows it any more, whatever is kept in memory beside the store. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DEFAULT_FROM } from '../../src/replay/webhook-params.js';
import { says, Stage } from '../support/stage.js';
import { waitUntil } from '../support/wait-until.js';

let stage: Stage;
beforeAll(async () => {
  stage = await Stage.open();
});
afterAll(() => stage.close());

async function ended(): Promise<string> {
  const { phone, over, model, callSid } = await stage.call();
  const watcher = await stage.watch(callSid);
  says(model, 'Your secret is safe.', { ms: 200 });
  await watcher.until('the words', ({ sealed }) => sealed.includes('done: Your secret is safe.'));
  phone.hangUp();
  await over;
  await watcher.ended();
  await stage.ended(callSid);
  return callSid;
}

async function shown(callSid: string): Promise<string> {
  const call = await stage.json(`/calls/${callSid}`);
  const stream = await fetch(`${stage.url}/calls/${callSid}/stream`);
  return JSON.stringify(call.body) + (await stream.text());
}

describe('a deleted conversation', () => {
  it.each([
    ['its session', (callSid: string) => `/sessions/${callSid}`],
    ['its caller', () => ''],
    ['what is old', undefined],
  ])('is shown nowhere any more, by the deletion of %s', async (_what, path) => {
    const callSid = await ended();
    expect(await shown(callSid)).toContain('secret');
    const user = `/apps/support/users/${encodeURIComponent(DEFAULT_FROM)}`;
    await waitUntil('the session to be stored', async () => {
      return (await fetch(`${stage.url}${user}/sessions/${callSid}`)).status === 200;
    });
    const deleted =
      path === undefined
        ? await fetch(`${stage.url}/sessions/prune`, {
            method: 'POST',
            headers: { 'Content-Type': 'application/json' },
            body: '{"days":1e-9}',
          })
        : await fetch(`${stage.url}${user}${path(callSid)}`, { method: 'DELETE' });
    expect(deleted.ok).toBe(true);
    expect(await shown(callSid)).not.toContain('secret');
    expect((await stage.json(`/calls/${callSid}`)).body).toMatchObject({
      endReason: 'caller_hangup',
      messages: [],
    });
    expect((await fetch(`${stage.url}/calls/${callSid}/stream`)).status).toBe(404);
  });
});
