/**
 * A server of its own that is killed in the middle of a sentence. Rows E7 and J7: the history has no fragment, and all that was
 * reported before.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { storedMessages } from '../../src/client/index.js';
import { ServerProcess } from '../support/server-process.js';
import { says, Stage } from '../support/stage.js';

let settings: Readonly<Record<string, string>>;
let stage: Stage;
let running: ServerProcess;

beforeAll(async () => {
  stage = await Stage.around(async (given) => {
    settings = { ...given, PORT: '0' };
    running = new ServerProcess(settings);
    return { url: await running.url(), close: () => running.kill() };
  });
});
afterAll(() => stage.close());

describe('a server that is killed in the middle of a sentence', () => {
  it('E7 J7: has all in its history that was reported, and no fragment', async () => {
    const { phone, over, model, callSid } = await stage.call();
    const watcher = await stage.watch(callSid);
    for (let turn = 1; turn <= 4; turn += 1) {
      model.sendInputTranscription(`Question ${turn}.`);
      says(model, `Answer ${turn}.`, { ms: 200 });
      await watcher.until('the answer', ({ sealed }) => sealed.includes(`done: Answer ${turn}.`));
    }
    model.sendInputTranscription('Question 5.');
    says(model, 'This is half of a long sentence', { ms: 3_000, pieces: 3, open: true });
    await watcher.until('the half', ({ frames }) => JSON.stringify(frames).includes('half '));
    stage.textModel.answer = (asked) => asked.says('A half');
    const chat = stage.stream('chat', 'A question by chat.');
    await chat.until('the half', ({ frames }) => JSON.stringify(frames).includes('A half'));
    const killed = running.kill();
    await Promise.all([killed, watcher.ended(), chat.ended(), over]);
    phone.hangUp();
    const reported = storedMessages(watcher.page).map(({ text }) => text);
    expect(reported.length).toBeGreaterThanOrEqual(7);

    running = new ServerProcess(settings);
    const again = Stage.at(await running.url(), stage);
    const events = await again.events(callSid);
    const stored = events.flatMap(({ content }) => content?.parts?.map(({ text }) => text ?? '') ?? []);
    expect(stored).toEqual(expect.arrayContaining(reported));
    expect(stored.join('\n')).not.toContain('half');
    expect(events.every(({ partial }) => partial !== true)).toBe(true);
    expect(await again.said('chat')).toEqual(['user: A question by chat.']);
    // The session goes on where it was.
    stage.textModel.answer = (asked) => asked.answers('Yes.');
    const asked = stage.textModel.asked.length;
    expect((await again.run(callSid, 'Are you there?')).status).toBe(200);
    expect(stage.textModel.asked[asked]!.told.join('\n')).not.toContain('half');
  });
});
