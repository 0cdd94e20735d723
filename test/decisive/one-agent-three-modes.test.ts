/**
 * Decisive script 10: one agent in batch, as a typed chat and on the phone; and the three numbers in each of them. Rows F1, F2,
 * F3, F4, J1, L1, L2, L3. A denied tool needs tools of an agent's own.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { storedMessages } from '../../src/client/index.js';
import { saidBy, says, Stage } from '../support/stage.js';
import { pause, waitUntil } from '../support/wait-until.js';

let stage: Stage;
beforeAll(async () => {
  stage = await Stage.open();
});
afterAll(() => stage.close());

/** How much a series has grown. */
async function grown(series: string, during: () => Promise<unknown>): Promise<number> {
  const before = (await stage.metric(series)) ?? 0;
  await during();
  return ((await stage.metric(series)) ?? 0) - before;
}

describe('one agent in three modes', () => {
  it('F1: /run answers with whole messages, a single event each', async () => {
    stage.textModel.answer = (asked) => asked.answers('It is ', 'on its ', 'way.');
    const { status, body } = await stage.run('batch', 'Where is my order?');
    expect(status).toBe(200);
    expect(body).toEqual({
      sessionId: 'batch',
      messages: [
        { msg: 'm1', role: 'user', text: 'Where is my order?' },
        { msg: 'm2', role: 'model', text: 'It is on its way.' },
      ],
      tools: [],
    });
    const events = (await stage.events('batch')).filter((event) => saidBy(event).length > 0);
    expect(events.map(({ partial }) => partial)).toEqual([undefined, undefined]);
  });

  it('F2: /run_sse streams deltas and then the whole', async () => {
    stage.textModel.answer = (asked) => asked.answers('It is ', 'on its ', 'way.');
    const chat = stage.stream('chat', 'Where is my order?');
    await chat.ended();
    expect(chat.status).toBe(200);
    expect(chat.headers).toMatch(/content-type: text\/event-stream/i);
    expect(chat.of('delta').map(({ text }) => text)).toEqual(['It is ', 'on its ', 'way.']);
    expect(chat.of('done').map(({ role, text }) => `${role}: ${text}`)).toEqual([
      'user: Where is my order?',
      'model: It is on its way.',
    ]);
    expect(chat.frames.at(-1)?.type).toBe('done');
  });

  it('F3 G3: the phone takes input while the agent speaks', async () => {
    const { phone, over, model, callSid } = await stage.call();
    says(model, 'A long story of many words.', { ms: 3_000, open: true });
    const sound = model.receivedAudio.length;
    phone.dtmf('7');
    await model.waitFor((frame) => JSON.stringify(frame).includes('pressed the key'));
    await waitUntil('caller sound at the model', () => model.receivedAudio.length > sound + 6_400);
    expect((await stage.json(`/calls/${callSid}`)).body['turn']).toBe('speaking');
    phone.hangUp();
    await over;
  });

  it('F4: the same agent, by the same instruction, with the same store behind it', async () => {
    const { phone, over, model, callSid } = await stage.call();
    model.sendInputTranscription('I am calling about an order.');
    says(model, 'Which one?');
    // The session itself is made behind the call, as its events are stored.
    await waitUntil('it to be stored', async () => (await stage.said(callSid).catch(() => [])).length === 2);
    phone.hangUp();
    await over;
    await stage.ended(callSid);
    const asked = stage.textModel.asked.length;
    stage.textModel.answer = (one) => one.answers('Thank', ' you.');
    expect((await stage.run(callSid, 'A-10293')).status).toBe(200);
    await stage.stream(callSid, 'And by chat.').ended();
    const [batch, chat] = stage.textModel.asked.slice(asked);
    expect(batch?.told).toEqual(['user: I am calling about an order.', 'model: Which one?', 'user: A-10293']);
    expect(chat?.told.slice(3)).toEqual(['model: Thank you.', 'user: And by chat.']);
    expect(batch?.instruction).toContain('Harbour Goods');
    expect(chat?.instruction).toBe(batch?.instruction);
    // Behind the agent's own words the call has rules of the line.
    expect(JSON.stringify(model.setup)).toContain(JSON.stringify(batch?.instruction).slice(0, -1));
    expect(await stage.said(callSid)).toEqual([
      'user: I am calling about an order.',
      'support: Which one?',
      'user: A-10293',
      'support: Thank you.',
      'user: And by chat.',
      'support: Thank you.',
    ]);
  });

  it.each(['breaks', 'ends'] as const)(
    'J1: a model that %s after the first delta is 200 with an error frame, and no message stays open',
    async (how) => {
      stage.textModel.answer = (asked) => {
        asked.says('It is');
        void pause(50).then(() => asked[how]());
      };
      const session = `failing ${how}`;
      const chat = stage.stream(session, 'Where is my order?');
      await chat.ended();
      expect(chat.status).toBe(200);
      expect(chat.of('delta')).toHaveLength(1);
      const [error] = chat.of('error');
      expect(error).toMatchObject({ msg: chat.of('delta')[0]!.msg, fatal: true });
      expect(error!.message).not.toMatch(/secret|key-of-the-model/);
      expect(chat.page.messages.filter(({ status }) => status === 'open')).toEqual([]);
      expect(storedMessages(chat.page).map(({ text }) => text)).toEqual(['Where is my order?']);
      expect(await stage.said(session)).toEqual(['user: Where is my order?']);
      stage.textModel.answer = (asked) => asked.answers('Here ', 'it is.');
      expect((await stage.run(session, 'Again?')).body['messages']).toHaveLength(2);
    },
  );

  it('J1: a model that refuses before the first delta is an error of the request in /run, a frame in /run_sse', async () => {
    stage.textModel.answer = (asked) => asked.refuses(400);
    const batch = await stage.run('refused', 'Hello?');
    expect(batch).toMatchObject({ status: 502, body: { code: 'model_setup_refused' } });
    expect(JSON.stringify(batch.body)).not.toContain('secret-of-the-model');
    const chat = stage.stream('refused', 'Hello?');
    await chat.ended();
    expect([chat.status, chat.of('error')[0]?.code]).toEqual([200, 'model_setup_refused']);
  });
});

describe('the three numbers', () => {
  it.each(['sse', 'none'] as const)('L1: time to first event of mode %s', async (mode) => {
    stage.textModel.answer = (asked) => void pause(200).then(() => asked.answers('Late', ' words.'));
    const labels = `{mode="${mode}",turn="reply",model="gemini-flash-latest"}`;
    const ask = () => (mode === 'sse' ? stage.stream('l1', 'Now?').ended() : stage.run('l1', 'Now?'));
    const before = (await stage.metric(`earshot_time_to_first_event_seconds_sum${labels}`)) ?? 0;
    expect(await grown(`earshot_time_to_first_event_seconds_count${labels}`, ask)).toBe(1);
    const after = (await stage.metric(`earshot_time_to_first_event_seconds_sum${labels}`)) ?? 0;
    expect(after - before).toBeGreaterThanOrEqual(0.19);
  });

  it.each(['sse', 'none'] as const)('L2: gaps of mode %s, a function among them', async (mode) => {
    stage.textModel.answer = (asked) => {
      if (asked.told.at(-1)?.includes('[response]') === true) return asked.answers('there ', 'now.');
      asked.says('Let me ');
      return asked.calls('nobody_has_this', 'c1');
    };
    const name = 'earshot_inter_delta_gap_seconds_count';
    const session = `l2 ${mode}`;
    const ask = () => (mode === 'sse' ? stage.stream(session, 'Now?').ended() : stage.run(session, 'Now?'));
    const unknown = 'earshot_tool_calls_total{tool="unknown",outcome="error"}';
    const model = grown(`${name}{mode="${mode}",cause="model"}`, async () => {
      const tool = grown(`${name}{mode="${mode}",cause="tool"}`, async () => {
        expect(await grown(unknown, ask)).toBe(1);
      });
      expect(await tool).toBe(1);
    });
    expect(await model).toBe(1);
    expect((await stage.said(session)).at(-1)).toBe('support: Let me there now.');
  });

  it.each(['sse', 'none'] as const)(
    'L3: completion of mode %s: three done, one failed, one left',
    async (mode) => {
      const count = (outcome: string) =>
        stage.metric(`earshot_streams_total{mode="${mode}",outcome="${outcome}"}`);
      const counts = () =>
        Promise.all(['done', 'error', 'disconnected', 'interrupted'].map((each) => count(each)));
      const before = await counts();
      const started = await grown(`earshot_streams_started_total{mode="${mode}"}`, async () => {
        const ask = async (session: string) =>
          mode === 'sse' ? stage.stream(session, 'Well?').ended() : void (await stage.run(session, 'Well?'));
        stage.textModel.answer = (asked) => asked.answers('Very', ' well.');
        await Promise.all(['1', '2', '3'].map((each) => ask(`l3 ${mode} ${each}`)));
        stage.textModel.answer = (asked) => asked.refuses(500);
        await ask(`l3 ${mode} 4`);
        const asked = stage.textModel.asked.length;
        stage.textModel.answer = (one) => one.says('For ever');
        const leaving = stage.read(mode === 'sse' ? '/run_sse' : '/run', {
          body: Stage.message(`l3 ${mode} 5`, 'Well?'),
        });
        await waitUntil('the model to be asked', () => stage.textModel.asked.length > asked);
        leaving.cut();
        await waitUntil('the model to be left', () => stage.textModel.asked[asked]!.isClosed);
        await waitUntil('it to be counted', async () => (await count('disconnected')) === before[2]! + 1);
      });
      const after = await counts();
      expect(after.map((value, at) => value! - before[at]!)).toEqual([3, 1, 1, 0]);
      expect(started).toBe(5);
    },
  );

  it('L1 L2 L3: the same of the phone', async () => {
    const count = (outcome: string) =>
      stage.metric(`earshot_streams_total{mode="bidi",outcome="${outcome}"}`);
    const before = await Promise.all([count('done'), count('disconnected')]);
    const gaps = await grown('earshot_inter_delta_gap_seconds_count{mode="bidi",cause="tool"}', async () => {
      const { phone, over, model, callSid } = await stage.call();
      const watcher = await stage.watch(callSid);
      says(model, 'Let me see ', { open: true });
      model.toolCall({ id: 'c1', name: 'nobody_has_this' });
      await model.waitFor((frame) => 'toolResponse' in frame);
      says(model, 'now.');
      await watcher.until('the message', ({ sealed }) => sealed.includes('done: Let me see now.'));
      says(model, 'A second of it.', { ms: 2_000 });
      await watcher.until('its words', ({ frames }) => JSON.stringify(frames).includes('A second of it.'));
      phone.hangUp();
      await over;
      await stage.ended(callSid);
    });
    expect(gaps).toBe(1);
    const after = await Promise.all([count('done'), count('disconnected')]);
    expect(after.map((value, at) => value! - before[at]!)).toEqual([1, 1]);
    const greeting =
      'earshot_time_to_first_event_seconds_count{mode="bidi",turn="greeting",model="gemini-3.8-live"}';
    expect(await stage.metric(greeting)).toBeGreaterThan(0);
  });
});
