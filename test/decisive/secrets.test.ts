/**
 * A secret goes out of a tool in every way there is, over the whole server, and is found nowhere: not at the model, in the store, in a
 * recording, in an answer over HTTP or in the log. Row D9.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { systemClock } from '../../src/clock.js';
import { answerTo } from '../support/probe-agents.js';
import { type PlacedCall, says, Stage } from '../support/stage.js';
import { waitUntil } from '../support/wait-until.js';
import { LOGIN, SECRET } from './agents/leaky.js';

// A worker thread compiles the source anew, which takes seconds where the machine has other work.
vi.setConfig({ testTimeout: 120_000 });

const agent = fileURLToPath(new URL('agents/leaky.ts', import.meta.url));
/** The same in JSON, addresses and forms; and half of it in base64. */
const CORE = /hunter2|aHVudGVyMi|L2h1bnRlcjIg|9odW50ZXIyI/;
const MARK = '[secret BANK]';

let stage: Stage;
beforeAll(async () => {
  stage = await Stage.open({ AGENT: agent, RECORD_CALLS: 'fixture' }, systemClock);
});
afterAll(() => stage.close());

async function ask(call: PlacedCall, name: string, args: Record<string, unknown> = {}): Promise<string> {
  const id = `${name} ${JSON.stringify(args)}`;
  // One who asks for nothing and calls again and again would be a loop.
  call.model.sendInputTranscription('And now?');
  call.model.toolCall({ id, name, args });
  return JSON.stringify((await answerTo(call.model, id)).response);
}

/** What the model is told by itself, once it is. */
async function told(call: PlacedCall, what: string): Promise<string> {
  const find = () => call.model.receivedTextInputs.find((text) => text.includes(what));
  await waitUntil(what, () => find() !== undefined);
  // The next one waits for the answer to it.
  says(call.model, 'I see.', { ms: 100 });
  return find()!;
}

async function approve(tool: string): Promise<void> {
  const { body } = await stage.json('/approvals');
  const found = (body['approvals'] as { id: string; tool: string }[]).find((one) => one.tool === tool);
  await stage.json(`/approvals/${found!.id}`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ decision: 'approve' }),
  });
}

/** Everything below the server's folder, as it lies there: the database, its log, recordings. */
function files(): { name: string; text: string }[] {
  return readdirSync(stage.folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .map((name) => ({ name, text: readFileSync(name, 'utf8') }));
}

async function httpAnswers(sessions: readonly string[]): Promise<string> {
  const answers = [];
  for (const path of ['/approvals', '/ledger', '/calls', '/debug/runs']) answers.push(await stage.json(path));
  for (const session of sessions) answers.push(await stage.session(session));
  return JSON.stringify(answers);
}

async function over(call: PlacedCall): Promise<void> {
  await call.over;
  await stage.ended(call.callSid);
  await idle();
}

/** Nothing is under way; a worker thread is kept for the next call. */
async function idle(): Promise<void> {
  await waitUntil('nothing to be under way', async () => {
    const { workers: _kept, ...counts } = (await stage.json('/debug/runs')).body;
    return Object.values(counts).every((count) => count === 0);
  });
}

describe('a secret', () => {
  it('D9: is found nowhere outside, however careless a tool is with it', async () => {
    for (const form of [SECRET, Buffer.from(SECRET).toString('base64'), LOGIN]) expect(form).toMatch(CORE);
    const call = await stage.call();
    const watcher = await stage.watch(call.callSid);
    // Each is answered with the mark, so that the secret did come this way.
    for (const name of [
      'returned',
      'thrown',
      'unspeakable',
      'refused',
      'substituted',
      'audited',
      'replaced',
      'ruled',
      'heavy',
      'heavy_thrown',
      'once',
      'once_thrown',
      'keeps',
    ])
      expect([name, await ask(call, name)]).toEqual([name, expect.stringContaining(MARK)]);
    expect(await ask(call, 'cut')).not.toMatch(/a\/h/);
    expect(await ask(call, 'heavy_cut')).not.toMatch(/a\/h/);
    expect(await ask(call, 'broken')).toContain('BROKEN could not be looked up');
    for (const name of ['given', 'given_once'])
      expect([name, await ask(call, name)]).toEqual([name, expect.stringContaining('hold')]);
    // What is told later.
    await ask(call, 'followed');
    expect(await told(call, 'the key is')).toContain(MARK);
    await ask(call, 'slow');
    expect(await told(call, 'slow, which was pending')).toContain(MARK);
    await ask(call, 'streams');
    expect(await told(call, 'streams reports: the key')).toContain(MARK);
    await ask(call, 'lets', { key: 'more' });
    expect(await told(call, 'streams reports: {')).toContain(MARK);
    await ask(call, 'lets', { key: 'end' });
    await told(call, 'streams has failed');
    await ask(call, 'approved');
    expect(await httpAnswers([call.callSid])).not.toMatch(CORE);
    await approve('approved');
    expect(await told(call, 'approved, which was pending')).toContain(MARK);
    await ask(call, 'approved_late');
    call.model.terminate();
    await over(call);
    await approve('approved_late');
    await waitUntil('the late result', async () =>
      JSON.stringify(await stage.events(call.callSid)).includes('GET https://bank/?key=[secret BANK] failed'),
    );
    await idle();

    // Another call of the same caller: what was kept, and what was done once.
    const next = await stage.call();
    expect(JSON.stringify(next.model.setup)).toContain(MARK);
    expect(await ask(next, 'once')).toContain(MARK);
    next.phone.hangUp();
    await over(next);

    // The same in text.
    stage.textModel.answer = (asked) => {
      if (asked.contents.at(-1)?.parts.some((part) => part.functionResponse !== undefined) === true)
        asked.answers('Well.');
      else asked.calls('thrown', 'c1');
    };
    const answered = await stage.run('in text', 'Go.');
    expect(answered.status).toBe(200);
    expect(JSON.stringify(stage.textModel.asked.at(-1)!.contents)).toContain(MARK);

    const seen: Readonly<Record<string, string>> = {
      model: JSON.stringify([call, next].map(({ model }) => model.received)),
      text: JSON.stringify([stage.textModel.asked.map(({ contents }) => contents), answered]),
      watcher: JSON.stringify(watcher.read),
      http: await httpAnswers([call.callSid, next.callSid, 'in text']),
      log: stage.log.join(''),
    };
    for (const [where, text] of Object.entries(seen))
      expect([where, new RegExp(`.{0,100}(${CORE.source})`).exec(text)?.[0]]).toEqual([where, undefined]);
    for (const what of ['a plugin failed', 'a plugin that watches a run failed', 'onDisconnect failed'])
      expect([what, seen['log']!.includes(what)]).toEqual([what, true]);
    expect(stage.errors.join('\n')).toContain(MARK);
    expect(stage.errors.find((line) => line.includes('onDisconnect'))).toContain(MARK);

    await stage.closeServer();
    const written = files();
    expect(written.some(({ name, text }) => name.includes('recordings') && text.includes(MARK))).toBe(true);
    expect(written.some(({ name, text }) => name.includes('earshot.db') && text.includes(MARK))).toBe(true);
    expect(written.filter(({ text }) => CORE.test(text)).map(({ name }) => name)).toEqual([]);
  });
});
