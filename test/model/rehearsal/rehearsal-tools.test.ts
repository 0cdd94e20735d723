import { Behavior, FunctionResponseScheduling } from '@google/genai';
import { afterEach, describe, expect, it } from 'vitest';
import { REHEARSAL_CALL_CHAIN_MAX } from '../../../src/model/rehearsal/rehearsal-limits.js';
import { count, eventually, order, type RehearsalClient } from './rehearsal-client.js';
import { callsIn, declare, saidBy, Stage } from './rehearsal-stage.js';

let stage: Stage;
afterEach(() => stage.close());

const lookUp = {
  name: 'look_up',
  args: { order: '{digits}' },
  thenSay: 'It is {result.status}.',
  ifError: 'It cannot be found: {result.error}.',
};
const asked = { contains: 'where', say: 'I look.', call: lookUp };

function answer({ session, messages }: RehearsalClient, response: object, more: object = {}): void {
  for (const { id, name } of callsIn(messages).slice(-1)) {
    session.sendToolResponse({
      functionResponses: [{ id: id!, name: name!, response: { ...response }, ...more }],
    });
  }
}

describe('a function that does not block', () => {
  it('is called behind the speech; the turn completes, and the result is spoken as a turn of its own', async () => {
    stage = await Stage.open({ texts: [asked] });
    const client = await stage.connect(declare(['look_up']));
    const first = await stage.say(client, 'Where is it?');
    expect(order(first)).toEqual(['audio', 'toolCall', 'generationComplete', 'turnComplete']);
    answer(client, { status: 'delivered' });
    await stage.until(() => count(client.messages, 'turnComplete') === 2);
    const second = client.messages.slice(first.length + 1);
    expect(saidBy(second)).toBe('It is delivered.');
    client.session.close();
  });

  it.each([
    ['WHEN_IDLE', 'audio generationComplete turnComplete audio generationComplete turnComplete'],
    ['INTERRUPT', 'audio interrupted turnComplete audio generationComplete turnComplete'],
    ['SILENT', 'audio generationComplete turnComplete'],
  ] as const)('has a result scheduled %s', async (scheduling, expected) => {
    const call = { ...lookUp, at: 'start' };
    stage = await Stage.open({ texts: [{ ...asked, say: 'I look for it now, please wait.', call }] });
    const client = await stage.connect(declare(['look_up']));
    await stage.say(client, 'Where is it?', 'audio');
    answer(client, { status: 'here' }, { scheduling: FunctionResponseScheduling[scheduling] });
    const turns = scheduling === 'SILENT' ? 1 : 2;
    await stage.until(() => count(client.messages, 'turnComplete') === turns);
    expect(order(client.messages).slice(1)).toEqual(expected.split(' '));
    client.session.close();
  });

  it('may answer in parts: a part is spoken about by a rule for parts, and the call stays open', async () => {
    stage = await Stage.open({
      texts: [asked],
      results: [{ of: 'look_up', partial: true, say: '{result.done} percent.' }],
    });
    const client = await stage.connect(declare(['look_up']));
    await stage.say(client, 'Where is it?');
    answer(client, { done: 40 }, { willContinue: true });
    await stage.until(() => count(client.messages, 'turnComplete') === 2);
    answer(client, { status: 'found' });
    await stage.until(() => count(client.messages, 'turnComplete') === 3);
    expect(saidBy(client.messages)).toContain('40 percent.');
    expect(saidBy(client.messages)).toContain('It is found.');
    client.session.close();
  });
});

describe('a response to a call that is not open', () => {
  it.each(['ignored', 'closes'])(
    'is %s, as the profile says, and one behind it speaks no more',
    async (policy) => {
      stage = await Stage.open({ profile: { unknownToolResponse: policy }, texts: [asked] });
      const client = await stage.connect(declare(['look_up']));
      const [call] = callsIn(await stage.say(client, 'Where?'));
      const known = { id: call!.id!, name: 'look_up', response: { status: 'here' } };
      client.session.sendToolResponse({ functionResponses: [{ ...known, id: 'unknown' }, known] });
      await stage.until(() => count(client.messages, 'turnComplete') === 2 || client.closes.length > 0);
      const closed = { code: 1008, reason: 'Requested entity was not found.' };
      expect(client.closes).toEqual(policy === 'closes' ? [closed] : []);
      expect(count(client.messages, 'turnComplete')).toBe(policy === 'closes' ? 1 : 2);
    },
  );
});

describe('a turn that awaits its functions', () => {
  const awaiting = { profile: { turnCompleteAwaitsTools: true } };

  it('completes when every one of several calls in one message is answered', async () => {
    const calls = [lookUp, { name: 'look_up', thenSay: 'And {result.status}.' }];
    stage = await Stage.open({ ...awaiting, texts: [{ contains: 'where', say: 'I look.', calls }] });
    const client = await stage.connect(declare(['look_up']));
    const asking = await stage.say(client, 'Where?', 'toolCall');
    const [one, two] = asking.at(-1)?.toolCall?.functionCalls ?? [];
    const respond = (id: string, status: string) =>
      client.session.sendToolResponse({ functionResponses: [{ id, name: 'look_up', response: { status } }] });
    respond(two!.id!, 'far');
    await stage.until(() => stage.clock.nowMs() > 5_000, 500);
    expect(count(client.messages, 'turnComplete')).toBe(0);
    respond(one!.id!, 'near');
    await stage.until(() => count(client.messages, 'turnComplete') === 1);
    expect(saidBy(client.messages)).toBe('I look. And far. It is near.');
    client.session.close();
  });

  it.each([
    ['a field', { status: 'on its way' }, 'It is on its way.'],
    ['a field that is missing', {}, 'It is unknown.'],
    ['an error', { error: 'no such order' }, 'It cannot be found: no such order.'],
    ['what a rule wants', { status: 'lost', order: { by: 'sea' } }, 'Lost by sea.'],
  ])('speaks about %s of the result', async (_, response, said) => {
    const results = [
      { of: 'look_up', where: { status: 'lost', 'order.by': 'sea' }, say: 'Lost by {result.order.by}.' },
    ];
    stage = await Stage.open({ ...awaiting, texts: [asked], results });
    const client = await stage.connect(declare(['look_up']));
    await stage.say(client, 'Where?', 'toolCall');
    answer(client, response);
    await stage.until(() => count(client.messages, 'turnComplete') === 1);
    expect(saidBy(client.messages)).toBe(`I look. ${said}`);
    client.session.close();
  });

  it('stops when results lead to calls in a circle', async () => {
    const results = [{ of: 'look_up', say: 'Again.', call: { name: 'look_up' } }];
    stage = await Stage.open({ ...awaiting, texts: [asked], results });
    const client = await stage.connect(declare(['look_up']));
    client.session.sendRealtimeInput({ text: 'Where?' });
    let answered = 0;
    await stage.until(() => {
      if (callsIn(client.messages).length > answered) {
        answered += 1;
        answer(client, {});
      }
      return count(client.messages, 'turnComplete') === 1;
    });
    expect(callsIn(client.messages)).toHaveLength(REHEARSAL_CALL_CHAIN_MAX);
    client.session.close();
  });
});

describe('a function that blocks', () => {
  const blocking = declare(['look_up'], { behavior: Behavior.BLOCKING });

  it('is cancelled on 3.8 by any input, sound too', async () => {
    stage = await Stage.open({ texts: [asked] });
    const client = await stage.connect(blocking);
    await stage.say(client, 'Where?', 'toolCall');
    const from = client.messages.length;
    const silence = Buffer.alloc(640).toString('base64');
    client.session.sendRealtimeInput({ audio: { mimeType: 'audio/pcm;rate=16000', data: silence } });
    await eventually(() => count(client.messages, 'turnComplete') === 1);
    expect(order(client.messages.slice(from))).toEqual([
      'toolCallCancellation',
      'interrupted',
      'turnComplete',
    ]);
    client.session.close();
  });

  it('closes the connection on 2.5 when sound comes meanwhile', async () => {
    stage = await Stage.open({ profile: '2.5', texts: [asked] });
    const client = await stage.connect(declare(['look_up']));
    await stage.say(client, 'Where?', 'toolCall');
    client.session.sendRealtimeInput({ audio: { mimeType: 'audio/pcm;rate=16000', data: '' } });
    await eventually(() => client.closes.length === 1);
    expect(client.closes[0]).toMatchObject({ code: 1008, reason: expect.stringMatching(/not implemented/) });
  });

  it('keeps 3.1 silent in the midst of a sentence until it is answered, and input waits', async () => {
    const say = 'This sentence is long enough to have a middle in which the call is made.';
    stage = await Stage.open({
      profile: '3.1',
      texts: [{ ...asked, say, call: { ...lookUp, at: 'middle' } }],
    });
    const client = await stage.connect(declare(['look_up']), 'rehearsal');
    await stage.say(client, 'Where?', 'toolCall');
    client.session.sendRealtimeInput({ text: 'Hello?' });
    const from = client.messages.length;
    await stage.until(() => stage.clock.nowMs() > 10_000, 500);
    expect(client.messages).toHaveLength(from);
    answer(client, { status: 'here' });
    await stage.until(() => count(client.messages, 'turnComplete') === 2);
    expect(saidBy(client.messages)).toBe(`${say} It is here.Other.`);
    client.session.close();
  });
});

describe('a function that is written out', () => {
  const room = { type: 'object', properties: { room: { type: 'string' } }, required: ['room'] };
  const declared = {
    tools: [
      {
        functionDeclarations: [
          { name: 'find_guest', parametersJsonSchema: room },
          { name: 'watch_taxi', description: 'No arguments.' },
        ],
      },
    ],
  };
  const NOTE = 'The caller cut in and heard only this of your last message: "Good day"\n';

  it.each([
    ['find_guest {"room":"101"}', [['find_guest', { room: '101' }]]],
    ['  find_guest{ "room" : "}{" } ', [['find_guest', { room: '}{' }]]],
    // As it stands, so that what a tool says to wrong arguments can be heard.
    ['find_guest {"door":7}', [['find_guest', { door: 7 }]]],
    ['find_guest', [['find_guest', { room: 'rehearsal' }]]],
    [
      'find_guest {"room":"101"} watch_taxi\nfind_guest {"room":"7"}',
      [
        ['find_guest', { room: '101' }],
        ['watch_taxi', {}],
        ['find_guest', { room: '7' }],
      ],
    ],
    [`${NOTE}watch_taxi {}`, [['watch_taxi', {}]]],
  ])('in %j is called, and its result spoken', async (written, expected) => {
    stage = await Stage.open({ profile: { turnCompleteAwaitsTools: true } });
    const client = await stage.connect(declared);
    const calls = callsIn(await stage.say(client, written, 'toolCall'));
    expect(calls.map(({ name, args }) => [name, args])).toEqual(expected);
    client.session.sendToolResponse({
      functionResponses: calls.map(({ id, name }) => ({
        id: id!,
        name: name!,
        response: { message: 'Ms Gray is there.' },
      })),
    });
    await stage.until(() => count(client.messages, 'turnComplete') === 1);
    expect(saidBy(client.messages)).toContain('Ms Gray is there.');
    client.session.close();
  });

  it.each([
    ['a name that is not declared', 'find_hotel {"room":"101"}'],
    ['words around it', 'please find_guest {"room":"101"}'],
    ['half a JSON', 'find_guest {"room":'],
    ['a list', 'find_guest ["101"]'],
    ['what a tool reports', 'Your tool find_guest reports: {"room":"101"}'],
    ['more than an answer calls', 'watch_taxi '.repeat(100)],
  ])('is not called in %s', async (_what, typed) => {
    stage = await Stage.open({});
    const client = await stage.connect(declared);
    expect(callsIn(await stage.say(client, typed))).toEqual([]);
    client.session.close();
  });

  it('is said to have failed where it has', async () => {
    stage = await Stage.open({});
    const client = await stage.connect(declared);
    await stage.say(client, 'find_guest {"room":"7"}', 'toolCall');
    answer(client, { error: 'There is no room 7.' });
    await stage.until(() => saidBy(client.messages).includes('There is no room 7.'));
    expect(saidBy(client.messages)).toContain('There is no room 7.');
    client.session.close();
  });
});

describe('arguments', () => {
  it('come from the dialogue, filled, and the missing ones from the declaration', async () => {
    stage = await Stage.open({
      keys: [{ keys: '12', collect: true, say: '{key}.' }],
      texts: [
        {
          matches: 'order (?<number>\\d+) by (?<who>\\w+)',
          call: { name: 'look_up', args: { n: '{number}', d: '{digits}' } },
        },
      ],
    });
    const parametersJsonSchema = {
      type: 'object',
      properties: {
        n: { type: 'string' },
        kind: { enum: ['a', 'b'] },
        count: { type: 'integer' },
        other: {},
      },
      required: ['n', 'kind', 'count'],
    };
    const client = await stage.connect(declare(['look_up'], { parametersJsonSchema }));
    await stage.say(client, 'The caller pressed the key "2" on the phone.');
    const [call] = callsIn(await stage.say(client, 'ORDER 77 by post', 'toolCall'));
    expect(call?.args).toEqual({ n: '77', d: '2', kind: 'a', count: 1 });
    client.session.close();
  });

  it('belong to the tools that a context update brought', async () => {
    stage = await Stage.open({ texts: [asked] });
    const client = await stage.connect();
    expect(callsIn(await stage.say(client, 'Where?'))).toEqual([]);
    const { tools = [] } = declare(['look_up']);
    client.session.conn.send(JSON.stringify({ contextUpdate: { tools: { tools } } }));
    expect(callsIn(await stage.say(client, 'Where?'))).toHaveLength(1);
    client.session.close();
  });
});
