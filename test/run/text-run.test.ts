import { describe, expect, it } from 'vitest';
import type { Event } from '../../src/event/event.js';
import { RunEvents } from '../../src/event/run-events.js';
import type { RunItem } from '../../src/event/run-stream.js';
import { SpokenOrder } from '../../src/event/spoken-order.js';
import { ModelError } from '../../src/errors.js';
import { FUNCTION_ROUNDS_MAX } from '../../src/limits.js';
import type { TextPiece, TextRequest } from '../../src/model/text-model.js';
import { VirtualClock } from '../../src/replay/virtual-clock.js';
import { OVERDUE, runText, type TextOutcome, type TextRunOptions } from '../../src/run/text-run.js';

type Round = readonly (TextPiece | Error)[];

const text = (said: string): TextPiece => ({ type: 'text', text: said });
const end = (finishReason = 'STOP', parts: { text?: string }[] = []): TextPiece => ({
  type: 'end',
  finishReason,
  parts,
});
const call = (id: string, name = 'lookup_order'): TextPiece => ({
  type: 'functionCalls',
  functionCalls: [{ id, name, args: {} }],
});

/** A model that answers its requests one after the other as it is told. */
async function run(
  rounds: readonly Round[],
  more: Partial<TextRunOptions> = {},
  onItem: (item: RunItem, stop: () => void) => void = () => {},
  signal?: AbortSignal,
): Promise<{ outcome: TextOutcome; items: RunItem[]; committed: Event[]; requests: TextRequest[] }> {
  const items: RunItem[] = [];
  const committed: Event[] = [];
  const requests: TextRequest[] = [];
  const controller = new AbortController();
  const order = new SpokenOrder((event) => committed.push(event));
  const events = new RunEvents({
    invocationId: 'i1',
    agentName: 'support',
    clock: new VirtualClock(),
    onFault: (error) => {
      throw error;
    },
  });
  events.stream.listen((item) => {
    items.push(item);
    order.hear(item);
    onItem(item, () => controller.abort());
  });
  const outcome = await runText(
    {
      instruction: 'Be brief.',
      history: [],
      message: 'Where is my order?',
      functionDeclarations: [],
      answer: async (calls, parts) => {
        events.called(calls, { parts });
        const responses = calls.map(({ id, name }) => ({ id, name, response: { status: 'delivered' } }));
        events.responded(responses);
        return { responses, isOver: false };
      },
      close: async () => {},
      generate: async function* (request) {
        requests.push({ ...request, contents: structuredClone<TextRequest['contents']>(request.contents) });
        for (const piece of rounds[requests.length - 1] ?? []) {
          if (piece instanceof Error) throw piece;
          yield piece;
        }
      },
      events,
      ...more,
    },
    signal ?? controller.signal,
  );
  return { outcome, items, committed, requests };
}

const said = (events: readonly Event[]): string[] =>
  events.flatMap((event) => {
    const words = event.content?.parts?.map((part) => part.text ?? '').join('') ?? '';
    return words === '' ? [] : [`${event.author}: ${words}`];
  });

describe('a run in text', () => {
  it('commits the question and the whole answer, and tells the pieces', async () => {
    const { outcome, items, committed } = await run([[text('It is '), text('on its way.'), end()]]);
    expect(outcome).toBe('done');
    expect(said(committed)).toEqual(['user: Where is my order?', 'support: It is on its way.']);
    expect(items.filter(({ type }) => type === 'delta')).toHaveLength(2);
    expect(items.at(-1)?.type).toBe('over');
  });

  it('tells what the model used, and commits nothing of it', async () => {
    const usage = { promptTokens: { TEXT: 9 }, responseTokens: { TEXT: 4 }, totalTokenCount: 13 };
    const { items, committed } = await run([[text('Yes.'), { type: 'usageMetadata', usage }, end()]]);
    expect(items.filter(({ type }) => type === 'used')).toEqual([{ type: 'used', usage }]);
    expect(committed).toHaveLength(2);
  });

  it('says at its end how the answer ended', async () => {
    const stopped = (reason?: string) => {
      const controller = new AbortController();
      controller.abort(reason);
      return controller.signal;
    };
    const answered: Round = [text('Yes.'), end()];
    for (const [rounds, signal, outcome] of [
      [[answered], undefined, 'done'],
      [[[new ModelError('model_unreachable', 'lost')]], undefined, 'error'],
      [[answered], stopped(), 'disconnected'],
      [[answered], stopped(OVERDUE), 'error'],
    ] as const) {
      const { items } = await run(rounds, {}, () => {}, signal);
      expect(items.at(-1)).toEqual({ type: 'over', outcome });
    }
  });

  it('answers each group of calls once and joins what is said around it into one message', async () => {
    const { committed, requests, items } = await run([
      [text('Let me see. '), call('c1'), call('c2'), end('STOP', [{ text: 'Let me see. ' }])],
      [text('It was delivered.'), end()],
    ]);
    expect(requests).toHaveLength(2);
    expect(requests[1]?.contents.at(-1)?.parts).toHaveLength(2);
    expect(said(committed)).toEqual(['user: Where is my order?', 'support: Let me see. It was delivered.']);
    expect(items.filter(({ type }) => type === 'opened')).toHaveLength(2);
  });

  it('keeps nothing half-said when the model fails in the middle, and says that it failed', async () => {
    const { outcome, committed } = await run([[text('It is '), new ModelError('model_unreachable', 'lost')]]);
    expect(outcome).toBe('error');
    expect(said(committed)).toEqual(['user: Where is my order?']);
    expect(committed.at(-1)).toMatchObject({ errorCode: 'model_unreachable' });
  });

  it('tells an answer that is none by the model’s own word', async () => {
    for (const [finish, code] of [
      ['SAFETY', 'SAFETY'],
      ['STOP', 'empty_answer'],
    ] as const) {
      const { outcome, committed } = await run([[end(finish)]]);
      expect(outcome).toBe('error');
      expect(committed.at(-1)?.errorCode).toBe(code);
    }
  });

  it('asks nothing more and keeps no fragment once it is stopped', async () => {
    const { outcome, committed, requests } = await run(
      [
        [text('It is '), text('on its way.'), end()],
        [text('never'), end()],
      ],
      {},
      (item, stop) => {
        if (item.type === 'delta') stop();
      },
    );
    expect(outcome).toBe('stopped');
    expect(requests).toHaveLength(1);
    expect(said(committed)).toEqual(['user: Where is my order?']);
  });

  it('ends a model that does nothing but call functions', async () => {
    const rounds = Array.from({ length: FUNCTION_ROUNDS_MAX + 5 }, (_, index): Round => [
      call(`c${index}`),
      end(),
    ]);
    const { outcome, requests } = await run(rounds);
    expect(outcome).toBe('error');
    expect(requests).toHaveLength(FUNCTION_ROUNDS_MAX + 1);
  });

  it('gives the model what was committed before, an interrupted message as what was heard', async () => {
    const past = (author: string, words: string, more: Partial<Event> = {}): Event => ({
      id: words,
      invocationId: 'i0',
      author,
      timestamp: 0,
      actions: { stateDelta: {}, artifactDelta: {} },
      content: { role: author === 'user' ? 'user' : 'model', parts: [{ text: words }] },
      ...more,
    });
    const history = [
      past('support', 'Hello.'),
      past('user', 'Hi.'),
      past('support', 'One two', { interrupted: true }),
      past('support', 'half', { partial: true }),
    ];
    const { requests } = await run([[text('Yes.'), end()]], { history });
    expect(requests[0]?.contents).toEqual([
      { role: 'user', parts: [{ text: 'The conversation has begun.' }] },
      { role: 'model', parts: [{ text: 'Hello.' }] },
      { role: 'user', parts: [{ text: 'Hi.' }] },
      { role: 'model', parts: [{ text: 'One two' }] },
      { role: 'user', parts: [{ text: 'Where is my order?' }] },
    ]);
  });
});
