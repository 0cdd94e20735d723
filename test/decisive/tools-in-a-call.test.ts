/**
 * What a tool may do, and what may befall it, in a live call over real sockets: interrupted, withdrawn, wrong, slow, broken,
 * in a worker; and what it sees of its run. Rows A1, A2, A5, A11 to A16, A21, A22, D1, D2, D5, D6, D7, D10, D14, E9, I2, I6, I7.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { systemClock } from '../../src/clock.js';
import { functionCalls, functionResponses } from '../../src/event/event.js';
import { defineTool, type ToolContext } from '../../src/index.js';
import { answersTo, answerTo, desk, HeldTool, linesOf, toolFrames } from '../support/probe-agents.js';
import type { JsonObject } from '../support/scripted-gemini.js';
import { heardMs, type PlacedCall, says, Stage } from '../support/stage.js';
import { waitUntil } from '../support/wait-until.js';

const slow = new HeldTool('slow');
const deaf = new HeldTool('deaf', {}, false);
const quick = new HeldTool('quick', { timeoutMs: 200 });
let typedRuns = 0;

const typed = defineTool({
  name: 'typed',
  description: 'Wants an order.',
  parameters: z.object({ order_id: z.string(), count: z.number().int().optional() }),
  execute: ({ order_id }) => {
    typedRuns += 1;
    return { order_id, message: 'It is there.' };
  },
});

const returns = (name: string, value: unknown) =>
  defineTool({ name, description: 'Returns.', execute: () => value });

const throws = defineTool({
  name: 'throws',
  description: 'Throws.',
  execute() {
    throw new Error('the shelf is empty');
  },
});

const starts = defineTool({
  name: 'starts',
  description: 'Starts something.',
  execute(_args, ctx) {
    ctx.followUp('starts: the work is done');
    return { status: 'started' };
  },
});

/** The contexts that `dumps` was given. */
const contexts: ToolContext[] = [];
const dumps = defineTool({
  name: 'dumps',
  description: 'Looks around.',
  async execute(_args, ctx) {
    contexts.push(ctx);
    const events = ctx.events.length;
    const version = await ctx.saveArtifact('note.txt', Buffer.from(`note ${contexts.length}`), 'text/plain');
    ctx.state['last_query'] = contexts.length;
    return { events, version };
  },
});

const waits = defineTool({
  name: 'waits',
  description: 'Waits for a value.',
  execute: async (_args, { shared }) => ({ got: await shared.waitFor('parcel') }),
});
const sets = defineTool({
  name: 'sets',
  description: 'Sets a value.',
  execute(_args, { shared }) {
    shared.set('parcel', 'a box');
    return { ok: true };
  },
});
const ends = defineTool({
  name: 'ends',
  description: 'Ends it all.',
  execute(_args, ctx) {
    ctx.endInvocation = true;
    ctx.state['why'] = 'unrecoverable';
    return { error: 'This cannot go on.' };
  },
});
const forever = defineTool({
  name: 'forever',
  description: 'Streams for ever.',
  inputStream: true,
  async *execute(_args, { inputStream, signal }) {
    for await (const frame of inputStream ?? []) if (signal.aborted || frame.data.length === 0) return;
    yield* [];
  },
});

const runConfig = {
  speechConfig: { languageCode: 'en-US' },
  maxConcurrentTools: 4,
  toolResponses: 'group',
  limits: { maxTurns: 400, maxTokens: 4_000_000, maxMinutes: 40 },
  userScopes: () => [],
} as const;
const agent = desk({
  runConfig,
  tools: [
    slow.tool,
    deaf.tool,
    quick.tool,
    typed,
    throws,
    starts,
    dumps,
    waits,
    sets,
    ends,
    forever,
    returns('text', 'ok'),
    returns('number', 42),
    returns('nothing', null),
  ],
});
const observing = desk({
  name: 'observing',
  tools: [returns('text', 'ok')],
  runConfig: { autoExecuteTools: false },
});
const mute = desk({ name: 'mute', tools: [returns('text', 'ok')], runConfig: { autoRespondTools: false } });

let stage: Stage;
beforeAll(async () => {
  stage = await Stage.open({}, systemClock, [agent, observing, mute]);
});
afterAll(() => stage.close());

async function hangUp({ phone, over, callSid }: PlacedCall): Promise<void> {
  phone.hangUp();
  await over;
  await stage.ended(callSid);
  await stage.idle();
}

const toldByTools = ({ model }: PlacedCall): string[] =>
  model.receivedTextInputs.filter((text) => text.includes('Your tool'));

describe('a tool call', () => {
  it('A1: the setup lists each tool with its parameters, and no context', async () => {
    const call = await stage.call();
    const setup = JSON.stringify(call.model.setup);
    for (const name of ['slow', 'typed', 'forever', 'stop_streaming', 'end_call'])
      expect(setup).toContain(`"name":"${name}"`);
    expect(setup).toContain('"required":["order_id"]');
    expect(setup).not.toMatch(/inputStream|"ctx"/);
    await hangUp(call);
  });

  it('A2 A21 A22 E9: comes between pieces of sound, and is told while its tool runs', async () => {
    const call = await stage.call();
    const watcher = await stage.watch(call.callSid);
    call.model.toolCall({ id: 'c1', name: 'slow', args: { secret: 'argument' } });
    await watcher.until('the call', () => toolFrames(watcher).length === 1);
    await waitUntil('it to be stored', async () => {
      return linesOf(await stage.events(call.callSid).catch(() => [])).includes('call c1');
    });
    slow.letGo(() => ({ secret: 'result' }));
    await answerTo(call.model, 'c1');
    says(call.model, 'There it is.');
    await watcher.until('the answer', ({ sealed }) => sealed.includes('done: There it is.'));
    expect(toolFrames(watcher)).toEqual(['c1 slow running', 'c1 slow done']);
    // A17: nothing of it reaches a client.
    expect(JSON.stringify(watcher.frames)).not.toMatch(/secret|argument|result/);
    await hangUp(call);
    expect(linesOf(await stage.events(call.callSid))).toEqual([
      'call c1',
      'response c1',
      'desk: There it is.',
    ]);
  });

  it('A11: a result that is no object is wrapped', async () => {
    const call = await stage.call();
    call.model.toolCall({ id: 't', name: 'text' }, { id: 'n', name: 'number' }, { id: 'x', name: 'nothing' });
    await answerTo(call.model, 'x');
    expect(answersTo(call.model)).toEqual([
      [
        { id: 't', name: 'text', response: { result: 'ok' } },
        { id: 'n', name: 'number', response: { result: 42 } },
        { id: 'x', name: 'nothing', response: { result: null } },
      ],
    ]);
    await hangUp(call);
  });

  it('A12 A13: what throws, has no such name, lacks an argument or takes too long is an error; the others and the call go on', async () => {
    const call = await stage.call();
    const watcher = await stage.watch(call.callSid);
    call.model.toolCall(
      { id: 'ok', name: 'typed', args: { order_id: 'A-1' } },
      { id: 'throws', name: 'throws' },
      { id: 'nope', name: 'nobody_has_this' },
      { id: 'bare', name: 'typed' },
      { id: 'odd', name: 'typed', args: { order_id: 'A-1', count: 'three' } },
      { id: 'late', name: 'quick' },
    );
    await answerTo(call.model, 'late');
    const [answers, ...more] = answersTo(call.model);
    expect(more).toEqual([]);
    expect(answers!.map(({ id }) => id)).toEqual(['ok', 'throws', 'nope', 'bare', 'odd', 'late']);
    const [ok, thrown, nope, bare, odd, late] = answers!.map(({ response }) => response);
    // A14: what the handler returned, unchanged.
    expect(ok).toEqual({ order_id: 'A-1', message: 'It is there.' });
    expect(thrown).toEqual({ error: 'the shelf is empty' });
    expect(nope).toMatchObject({ error: 'There is no tool named nobody_has_this.' });
    expect(bare!['error']).toContain('order_id');
    expect(odd!['error']).toContain('count');
    expect(late!['error']).toContain('took too long');
    expect(typedRuns).toBe(1);
    says(call.model, 'Well.');
    await watcher.until('the next message', ({ sealed }) => sealed.includes('done: Well.'));
    expect(toolFrames(watcher).filter((line) => line.endsWith(' error'))).toHaveLength(5);
    expect(
      await stage.metric('earshot_tool_calls_total{tool="unknown",outcome="error"}'),
    ).toBeGreaterThanOrEqual(1);
    await hangUp(call);
  });

  it('A15: a quick "started" is followed by the outcome at the next pause', async () => {
    const call = await stage.call();
    call.model.toolCall({ id: 'c1', name: 'starts' });
    expect((await answerTo(call.model, 'c1')).response).toEqual({ status: 'started' });
    await waitUntil('the follow-up', () => toldByTools(call).length === 1);
    expect(toldByTools(call)).toEqual(['Your tool starts: the work is done']);
    await hangUp(call);
  });

  it('A16: is only told where tools are not to be carried out, and not answered where the model is not to be', async () => {
    const watching = await stage.call({ agent: 'observing' });
    watching.model.toolCall({ id: 'c1', name: 'text' });
    const events = () => stage.events(watching.callSid, undefined, 'observing').catch(() => []);
    await waitUntil('the call', async () => linesOf(await events()).includes('call c1'));
    const unanswered = await stage.call({ agent: 'mute' });
    unanswered.model.toolCall({ id: 'c1', name: 'text' });
    const mutes = () => stage.events(unanswered.callSid, undefined, 'mute').catch(() => []);
    await waitUntil('the response', async () => linesOf(await mutes()).includes('response c1'));
    watching.phone.hangUp();
    await hangUp(unanswered);
    await stage.ended(watching.callSid);
    expect(linesOf(await events())).toEqual(['call c1']);
    expect([...answersTo(watching.model), ...answersTo(unanswered.model)]).toEqual([]);
  });

  it('A5: in a worker leaves the sound alone', async () => {
    const concierge = await Stage.open({ AGENT: 'concierge' });
    const call = await concierge.call();
    const sound = call.model.receivedAudio.length;
    says(call.model, 'One moment.', { ms: 1_500, open: true });
    call.model.toolCall({ id: 'c1', name: 'calculate', args: { expression: '15 + 25' } });
    expect((await answerTo(call.model, 'c1')).response).toMatchObject({ result: 40 });
    expect(call.model.receivedAudio.length).toBeGreaterThan(sound);
    await waitUntil('the words to be heard', () => heardMs(call.phone) > 1_400);
    call.phone.hangUp();
    await call.over;
    await concierge.close();
  });
});

describe('a slow tool', () => {
  it('I2: goes on through a barge-in, and its result arrives once', async () => {
    const call = await stage.call();
    const watcher = await stage.watch(call.callSid);
    says(call.model, 'Let me look for that in the long list of things.', {
      ms: 4_000,
      pieces: 8,
      open: true,
    });
    call.model.toolCall({ id: 'c1', name: 'slow' });
    await waitUntil('a second to be heard', () => heardMs(call.phone) > 1_000);
    call.model.interrupt();
    call.model.turnComplete();
    await watcher.until('the flush', ({ frames }) => frames.some(({ type }) => type === 'flush'));
    expect(slow.running).toBe(1);
    slow.letGo();
    expect((await answerTo(call.model, 'c1')).response).toMatchObject({ message: 'slow is done.' });
    says(call.model, 'Found it.');
    await watcher.until('the answer', ({ sealed }) => sealed.includes('done: Found it.'));
    expect(answersTo(call.model)).toHaveLength(1);
    expect(toolFrames(watcher)).toEqual(['c1 slow running', 'c1 slow done']);
    await hangUp(call);
    const events = await stage.events(call.callSid);
    expect(events.flatMap((event) => functionResponses(event))).toHaveLength(1);
  });

  it('I7: one that is withdrawn is aborted and never answered; the other is', async () => {
    const call = await stage.call();
    const watcher = await stage.watch(call.callSid);
    const aborted = slow.aborted.length;
    call.model.toolCall({ id: 'c1', name: 'slow' }, { id: 'c2', name: 'text' });
    await waitUntil('it to run', () => slow.running === 1);
    call.model.cancelToolCalls('c1');
    await answerTo(call.model, 'c2');
    await waitUntil('the abort', () => slow.aborted.length === aborted + 1);
    says(call.model, 'Well.');
    await watcher.until('the next message', ({ sealed }) => sealed.includes('done: Well.'));
    expect(
      answersTo(call.model)
        .flat()
        .map(({ id }) => id),
    ).toEqual(['c2']);
    expect(toolFrames(watcher)).toEqual(
      expect.arrayContaining(['c1 slow running', 'c1 slow cancelled', 'c2 text done']),
    );
    expect(toolFrames(watcher)).not.toContain('c1 slow done');
    expect(toldByTools(call)).toEqual([]);
    await hangUp(call);
    // It stands in the history with what became of it.
    const responses = (await stage.events(call.callSid)).flatMap((event) => functionResponses(event));
    expect(new Set(responses.map(({ id }) => id))).toEqual(new Set(['c1', 'c2']));
    expect(responses).toHaveLength(2);
  });

  it('I7: what a withdrawn call had done all the same is told later', async () => {
    const call = await stage.call();
    call.model.toolCall({ id: 'c1', name: 'deaf' });
    await waitUntil('it to run', () => deaf.isWaiting);
    call.model.cancelToolCalls('c1');
    await waitUntil('the abort', () => deaf.aborted.length === 1);
    deaf.letGo();
    await waitUntil('what was done', () => toldByTools(call).length === 1);
    expect(toldByTools(call)[0]).toMatch(/deaf (was withdrawn|was given up).*deaf is done\./);
    expect(answersTo(call.model)).toEqual([]);
    await hangUp(call);
  });

  it('I3 I6 B12: everything in flight ends with the call', async () => {
    const call = await stage.call();
    call.model.toolCall(
      { id: 'c1', name: 'slow' },
      { id: 'c2', name: 'forever' },
      { id: 'c3', name: 'waits' },
      { id: 'c4', name: 'slow' },
      { id: 'c5', name: 'slow' },
      { id: 'c6', name: 'slow' },
    );
    await waitUntil('three to run', () => slow.running >= 3);
    const { body } = await stage.json('/debug/runs');
    expect(body).toMatchObject({ streamingTools: 1, inputStreams: 1 });
    call.phone.hangUp();
    await call.over;
    await call.model.waitForClose();
    await stage.idle();
    expect(slow.running).toBe(0);
    // None stands in the history without a response.
    await stage.ended(call.callSid);
    const events = await stage.events(call.callSid);
    const ids = events.flatMap((event) => functionCalls(event)).map(({ id }) => id);
    const answered = events.flatMap((event) => functionResponses(event)).map(({ id }) => id);
    expect(ids).toEqual(['c1', 'c2', 'c3', 'c4', 'c5', 'c6']);
    expect(new Set(answered)).toEqual(new Set(ids));
    expect(answered).toHaveLength(ids.length);
  });
});

/** What of it somebody could change. */
function unfrozenIn(value: unknown, path = ''): string[] {
  if (typeof value !== 'object' || value === null) return [];
  const inner = Object.entries(value).flatMap(([key, one]) => unfrozenIn(one, `${path}/${key}`));
  return Object.isFrozen(value) ? inner : [path, ...inner];
}

describe('what a tool sees', () => {
  it('D5: the configuration of a run in text, where nothing is spoken, and of an agent that has none', async () => {
    for (const [app, own] of [
      ['desk', runConfig],
      ['plain', {}],
    ] as const) {
      contexts.length = 0;
      const plain =
        app === 'plain' ? await Stage.open({}, systemClock, [desk({ name: app, tools: [dumps] })]) : stage;
      plain.textModel.answer = (one) => {
        if (one.contents.at(-1)?.parts.some((part) => part.functionResponse !== undefined) === true)
          one.answers('Well.');
        else one.calls('dumps', 'c1');
      };
      expect((await plain.run(undefined, 'Go.')).status).toBe(200);
      expect(contexts[0]!.runConfig).toEqual({ ...own, responseModalities: ['TEXT'] });
      expect(unfrozenIn(contexts[0]!.runConfig)).toEqual([]);
      if (plain !== stage) await plain.close();
    }
  });

  it('D1 D2 D5 D7 D14: one invocation for all turns, what was said so far, the configuration, and what it changes', async () => {
    contexts.length = 0;
    const call = await stage.call();
    const watcher = await stage.watch(call.callSid);
    call.model.toolCall({ id: 'c1', name: 'dumps' });
    // The call itself is all there is.
    expect((await answerTo(call.model, 'c1')).response).toEqual({ events: 1, version: 0 });
    for (const words of ['One.', 'Two.', 'Three.']) {
      call.model.sendInputTranscription('Go on.');
      says(call.model, words, { ms: 200 });
      await watcher.until(words, ({ sealed }) => sealed.includes(`done: ${words}`));
    }
    call.model.toolCall({ id: 'c2', name: 'dumps' });
    const { response } = await answerTo(call.model, 'c2');
    expect(response['version']).toBe(1);
    expect(response['events']).toBeGreaterThanOrEqual(5);
    const [first, second] = contexts;
    expect(second!.invocationId).toBe(first!.invocationId);
    expect(first).toMatchObject({ callSid: call.callSid, sessionId: call.callSid, appName: 'desk' });
    // As it was written, and as the model was asked for.
    const { generationConfig, ...asked } = call.model.setup as Record<string, JsonObject>;
    const spoken = {
      responseModalities: generationConfig!['responseModalities'],
      inputAudioTranscription: asked['inputAudioTranscription'],
      outputAudioTranscription: asked['outputAudioTranscription'],
    };
    expect(first!.runConfig).toEqual({ ...runConfig, ...spoken });
    expect(spoken).toEqual({
      responseModalities: ['AUDIO'],
      inputAudioTranscription: {},
      outputAudioTranscription: {},
    });
    expect(unfrozenIn(first!.runConfig)).toEqual([]);
    await hangUp(call);
    const session = await stage.session(call.callSid);
    expect(session.state).toMatchObject({ last_query: 2 });
    const deltas = session.events.map(({ actions }) => actions);
    expect(deltas).toContainEqual(
      expect.objectContaining({ stateDelta: { last_query: 1 }, artifactDelta: { 'note.txt': 0 } }),
    );
    for (const version of [0, 1]) {
      const path = `/apps/desk/users/${encodeURIComponent(session.userId)}/sessions/${call.callSid}/artifacts/note.txt/versions/${version}`;
      expect(await (await fetch(`${stage.url}${path}`)).text()).toBe(`note ${version + 1}`);
    }
    const next = await stage.call();
    next.model.toolCall({ id: 'c1', name: 'dumps' });
    await answerTo(next.model, 'c1');
    expect(contexts.at(-1)!.invocationId).not.toBe(first!.invocationId);
    await hangUp(next);
  });

  it('D10: what another tool of the run sets, and waits for it', async () => {
    const call = await stage.call();
    call.model.toolCall({ id: 'c1', name: 'waits' }, { id: 'c2', name: 'sets' });
    expect((await answerTo(call.model, 'c1')).response).toEqual({ got: 'a box' });
    await hangUp(call);
  });
});

describe('D6: a tool that ends the conversation', () => {
  it('closes the model at once, and cuts the line', async () => {
    const call = await stage.call();
    call.model.toolCall({ id: 'c1', name: 'ends' });
    await call.model.waitForClose();
    await call.over;
    await stage.ended(call.callSid);
    expect((await stage.json(`/calls/${call.callSid}`)).body['endReason']).toBe('agent_ended');
    await stage.idle();
    const { events, state } = await stage.session(call.callSid);
    expect(linesOf(events)).toEqual(['call c1', 'response c1']);
    expect(state).toMatchObject({ why: 'unrecoverable' });
  });

  it('lets what is said be heard, for three seconds at most', async () => {
    const call = await stage.call();
    says(call.model, 'one two three four five six seven eight nine ten', {
      ms: 10_000,
      pieces: 10,
      open: true,
    });
    await waitUntil('it to be heard', () => heardMs(call.phone) > 500);
    const before = heardMs(call.phone);
    call.model.toolCall({ id: 'c1', name: 'ends' });
    await call.model.waitForClose();
    await call.over;
    const heard = heardMs(call.phone) - before;
    expect(heard).toBeGreaterThan(2_000);
    expect(heard).toBeLessThan(4_500);
    await stage.ended(call.callSid);
    await stage.idle();
  });
});
