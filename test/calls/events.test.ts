/** A call as the sequence of its events: what a store commits and what a watcher is shown. */
import { describe, expect, it } from 'vitest';
import { type Event, functionCalls, functionResponses } from '../../src/event/event.js';
import type { RunItem } from '../../src/event/run-stream.js';
import { SpokenOrder } from '../../src/event/spoken-order.js';
import { ANSWER, CallRig, END_CALL } from '../support/call-rig.js';

function followed(): { rig: CallRig; items: RunItem[]; committed: Event[] } {
  const items: RunItem[] = [];
  const committed: Event[] = [];
  const order = new SpokenOrder((event) => committed.push(event));
  const rig = new CallRig({
    deps: {
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

  it('tell a lost model without ending the run', async () => {
    const { rig, committed } = followed();
    const { model } = await rig.greeted();
    model.lose();
    await rig.advance(500);
    expect(committed.find(({ errorCode }) => errorCode !== undefined)?.errorCode).toBe('model_lost');
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
