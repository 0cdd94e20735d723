/** A call as the sequence of its events: what a store commits and what a watcher is shown. */
import { describe, expect, it } from 'vitest';
import { type Event, functionCalls, functionResponses } from '../../src/event/event.js';
import type { RunItem } from '../../src/event/run-stream.js';
import { SpokenOrder } from '../../src/event/spoken-order.js';
import { DRAIN_MAX_MS } from '../../src/limits.js';
import { ANSWER, CallRig, END_CALL, type RigOptions } from '../support/call-rig.js';

/** Words of a kind that no model sends: whoever handles them throws. */
const BROKEN = undefined as unknown as string;

function followed(options: RigOptions = {}): { rig: CallRig; items: RunItem[]; committed: Event[] } {
  const items: RunItem[] = [];
  const committed: Event[] = [];
  const order = new SpokenOrder((event) => committed.push(event));
  const rig = new CallRig({
    ...options,
    deps: {
      ...options.deps,
      openRun: (_call, run) => {
        run.listen((item) => items.push(item));
        run.listen((item) => order.hear(item));
      },
    },
  });
  return { rig, items, committed };
}

function said({ author, content, interrupted }: Event): string {
  const text = content?.parts?.map((part) => part.text ?? '').join('') ?? '';
  return `${author}: ${text}${interrupted === true ? ' —' : ''}`;
}

describe('the events of a call', () => {
  it('hold each message once, whole, as its pieces together are', async () => {
    const { rig, items, committed } = followed();
    await rig.greeted();
    await rig.advance(2_000);
    const pieces = items.flatMap((item) => (item.type === 'delta' ? [item.event] : []));
    expect(pieces.every(({ partial }) => partial === true)).toBe(true);
    expect(committed.map((event) => said(event))).toEqual(['support: Hello, how can I help?']);
    expect(pieces.map(({ content }) => content?.parts?.[0]?.text).join('')).toBe('Hello, how can I help?');
    expect(committed.every(({ partial }) => partial !== true)).toBe(true);
  });

  it('hold an interrupted message as what was heard, at once, and the question in front of its answer', async () => {
    const { rig, items, committed } = followed();
    const { stream, model, callSid } = await rig.greeted();
    await rig.speak(stream, 500);
    model.listener.onInputTranscription('Where is');
    model.say(ANSWER, 4_000, { generationComplete: false, turnComplete: false });
    await rig.advance(200);
    model.listener.onInputTranscription(' my order?');
    await rig.advance(1_300);
    model.listener.onInterrupted();
    const flushed = items.findLast((item) => item.type === 'sealed');
    expect(flushed?.event?.interrupted).toBe(true);
    model.listener.onTurnComplete(undefined);
    await rig.advance(1_000);
    const view = rig.view(callSid).messages.map(({ role, text, interrupted }) => {
      return `${role === 'user' ? 'user' : 'support'}: ${text}${interrupted ? ' —' : ''}`;
    });
    expect(committed.map((event) => said(event))).toEqual(view);
    expect(view[1]).toBe('user: Where is my order?');
    expect(view[2]).toMatch(/^support: one two .* —$/);
  });

  it('hold function calls and responses behind the message in which they came', async () => {
    const { rig, committed } = followed();
    const { model } = await rig.greeted();
    model.say('Thank you, goodbye.', 1_000, { generationComplete: false, turnComplete: false });
    model.listener.onToolCall(END_CALL);
    model.listener.onGenerationComplete();
    model.listener.onTurnComplete(undefined);
    await rig.advance(3_000);
    expect(committed.map((event) => said(event)).slice(0, 2)).toEqual([
      'support: Hello, how can I help?',
      'support: Thank you, goodbye.',
    ]);
    expect(
      committed
        .slice(2)
        .flatMap((event) => functionCalls(event))
        .map(({ name }) => name),
    ).toEqual(['end_call']);
    expect(
      committed
        .slice(2)
        .flatMap((event) => functionResponses(event))
        .map(({ id }) => id),
    ).toEqual(['c1']);
  });

  it('hold nothing of what the model used, which is counted', async () => {
    const { rig, items, committed } = followed();
    const { model } = await rig.greeted();
    await rig.advance(2_000);
    const before = committed.length;
    model.listener.onUsageMetadata({
      promptTokens: { AUDIO: 10, TEXT: 2 },
      responseTokens: { AUDIO: 7 },
      totalTokenCount: 19,
    });
    await rig.advance(2_000);
    expect(items.filter(({ type }) => type === 'used')).toHaveLength(1);
    expect(committed).toHaveLength(before);
    expect(rig.seen('onTokens')).toEqual([
      ['input', 'AUDIO', 10],
      ['input', 'TEXT', 2],
      ['output', 'AUDIO', 7],
    ]);
  });

  it('end with the call, with nothing half-said', async () => {
    const { rig, items, committed } = followed();
    const { stream, model, callSid } = await rig.greeted();
    model.say(ANSWER, 4_000, { generationComplete: false, turnComplete: false });
    await rig.advance(1_000);
    stream.listener!.onStop();
    await rig.advance(500);
    expect(items.at(-1)).toEqual({ type: 'over' });
    const texts = rig.view(callSid).messages.map(({ text }) => text);
    expect(committed.map((event) => event.content?.parts?.[0]?.text?.trim())).toEqual(texts);
    expect(committed.at(-1)?.interrupted).toBe(true);
  });

  it('tell a lost model at once, without ending the run', async () => {
    const { rig, committed, items } = followed();
    const { model } = await rig.greeted();
    model.lose();
    await rig.advance(500);
    expect(committed.find(({ errorCode }) => errorCode !== undefined)?.errorCode).toBe('model_lost');
    expect(items.some((item) => item.type === 'event' && item.fatal === true)).toBe(false);
  });

  const failures: readonly [reason: string, options: RigOptions, fail: (rig: CallRig) => Promise<void>][] = [
    ['model_lost', {}, async (rig) => rig.loseModel(rig.models[0]!)],
    ['model_unreachable', { modelReadyMs: 'fails' }, async () => {}],
    ['internal_error', {}, async (rig) => rig.models[0]!.listener.onOutputTranscription(BROKEN)],
    ['server_draining', {}, async (rig) => rig.calls.close()],
    [
      'server_draining',
      {},
      async (rig) => {
        void rig.calls.drain();
        await rig.advance(DRAIN_MAX_MS);
      },
    ],
  ];
  it.each(failures)(
    'end with a fatal error where the call fails (%s), behind everything else',
    async (reason, options, fail) => {
      const { rig, committed, items } = followed({ deps: { idleRepromptMs: 0 }, ...options });
      const { callSid, answer } = rig.ring();
      await rig.settle();
      rig.open(callSid, answer);
      await rig.settle();
      rig.models[0]?.say('Hello, how can I help?', 1_000);
      await rig.advance(1_500);
      await fail(rig);
      await rig.advance(25_000);
      expect(rig.view(callSid).endReason).toBe(reason);
      expect(items.at(-1)).toEqual({ type: 'over' });
      expect(items.at(-2)).toMatchObject({ type: 'event', fatal: true, event: { errorCode: reason } });
      expect(items.filter((item) => item.type === 'event' && item.fatal === true)).toHaveLength(1);
      expect(committed.at(-1)?.errorCode).toBe(reason);
      // Whoever was owed an explanation was told in front of it.
      const heard = rig.view(callSid).messages.at(-1)?.text;
      expect(committed.at(-2)?.content?.parts?.[0]?.text?.trim()).toBe(heard);
    },
  );

  it('end without an error where nothing failed', async () => {
    const { rig, items } = followed();
    const { stream } = await rig.greeted();
    stream.listener!.onStop();
    await rig.advance(500);
    expect(items.some((item) => item.type === 'event' && item.event.errorCode !== undefined)).toBe(false);
  });

  it('are not disturbed by a listener that throws', async () => {
    const items: RunItem[] = [];
    const rig = new CallRig({
      deps: {
        openRun: (_call, run) => {
          run.listen(() => {
            throw new Error('a broken watcher');
          });
          run.listen((item) => items.push(item));
        },
      },
    });
    await rig.greeted();
    expect(items.length).toBeGreaterThan(1);
  });
});
