/**
 * Whatever cuts a message, whenever, before or behind the greeting's protection, however much of it had been made: what is sealed as not
 * interrupted was said and heard to its end, and what is sealed as interrupted ends with a whole word.
 */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { PROMPT_TEXTS } from '../../src/call/prompts.js';
import type { RunItem } from '../../src/event/run-stream.js';
import { parseCallSid } from '../../src/ids.js';
import { eventText } from '../../src/run/run-happenings.js';
import { CallRig, type FakeModel, FakeStream, tone } from '../support/call-rig.js';
import { entering } from '../support/scopes.js';

const GREETING = 'Hello, you have reached Harbour Goods. How can I help you today?';
const PIECE_CHARS = 3;
const PIECES = Math.ceil(GREETING.length / PIECE_CHARS);

const MEANS = ['typed', 'key', 'transcribed', 'interrupted', 'hang-up', 'loss'] as const;
interface Cut {
  readonly means: (typeof MEANS)[number];
  /** How much of the greeting has been made by then, and what the model has said of its end. */
  readonly pieces: number;
  readonly pieceMs: number;
  readonly end: 'open' | 'generated' | 'turn over';
  readonly atMs: number;
  readonly protectionMs: number;
  /** The model says `interrupted` too. */
  readonly isHeardByModel: boolean;
  readonly returnsMarks: boolean;
  readonly isAnswered: boolean;
  /** The caller cuts in once more, so much later. */
  readonly againMs: number | undefined;
}

const USUAL: Cut = {
  means: 'typed',
  pieces: PIECES,
  pieceMs: 200,
  end: 'open',
  atMs: 1_000,
  protectionMs: 3_000,
  isHeardByModel: true,
  returnsMarks: true,
  isAnswered: true,
  againMs: undefined,
};

interface Sealed {
  readonly text: string;
  readonly interrupted: boolean;
  /** What the caller's ear had played by then. */
  readonly playedMs: number;
}

async function cut(chosen: Partial<Cut>): Promise<{ sealed: Sealed[]; stream: FakeStream; totalMs: number }> {
  const all = { ...USUAL, ...chosen };
  const sealed: Sealed[] = [];
  const playedMs = (): number => stream.ear.playedMs;
  const hear = (item: RunItem): void => {
    if (item.type !== 'sealed' || item.role !== 'model' || item.event === undefined) return;
    const { event } = item;
    // The caller who waits for an answer hears a clip.
    if (eventText(event) === PROMPT_TEXTS.hold) return;
    sealed.push({ text: eventText(event), interrupted: event.interrupted === true, playedMs: playedMs() });
  };
  const rig = new CallRig({
    deps: { greetingProtectionMs: all.protectionMs, openRun: (_call, run) => run.listen(hear) },
  });
  const stream: FakeStream = new FakeStream(parseCallSid('CA1')!, rig.clock, 1);
  stream.returnsMarks = all.returnsMarks;
  const line = rig.calls.openWeb({ userId: 'ada', sessionId: 's1' }, stream, []);
  if ('refused' in line) throw new Error(line.refused);
  stream.listener = entering(line.listener, line.scope.clock);
  await rig.settle();
  const model = rig.models.at(-1)!;
  for (let piece = 0; piece < all.pieces; piece += 1) {
    model.listener.onAudio(tone(all.pieceMs));
    model.listener.onOutputTranscription(GREETING.slice(piece * PIECE_CHARS, (piece + 1) * PIECE_CHARS));
  }
  if (all.end !== 'open') model.listener.onGenerationComplete();
  if (all.end === 'turn over') model.listener.onTurnComplete(undefined);
  await rig.advance(all.atMs);
  await interfere(all);
  if (all.againMs !== undefined) {
    await rig.advance(all.againMs);
    await interfere(all);
  }
  if (all.isAnswered) {
    await rig.advance(400);
    model.say('Very well.', 600);
  }
  await rig.advance(9_000);
  stream.listener.onStop();
  await rig.advance(1_000);
  return { sealed, stream, totalMs: all.pieces * all.pieceMs };

  async function interfere({ means, isHeardByModel }: Cut): Promise<void> {
    if (means === 'hang-up') return stream.listener?.onStop();
    if (means === 'loss') return stream.lose();
    if (means === 'typed' && 'type' in line) line.type('Where is my order?');
    if (means === 'key') stream.listener?.onDtmf('1');
    if (means === 'transcribed') {
      await rig.speak(stream, 100);
      model.listener.onInputTranscription('where is it');
    }
    if (means === 'interrupted' || isHeardByModel) saysInterrupted(model);
  }
}

function saysInterrupted(model: FakeModel): void {
  model.listener.onInterrupted();
  model.listener.onTurnComplete(undefined);
}

/** Neither in the middle of a word nor with words of its own. */
function endsWithWholeWord(text: string): boolean {
  const next = GREETING.slice(text.length);
  return GREETING.startsWith(text) && !(/[\p{L}\p{N}]$/u.test(text) && /^[\p{L}\p{N}]/u.test(next));
}

describe('a message that is cut', () => {
  it.each(
    MEANS.flatMap((means) =>
      [0, 3_000].flatMap((protectionMs) =>
        [20, 60, 160, 1_000, 3_500].map((atMs) => [means, protectionMs, atMs] as const),
      ),
    ),
  )('%s, protected for %i ms, at %i ms: the beginning of its first word is no message', async (...how) => {
    const [means, protectionMs, atMs] = how;
    const { sealed } = await cut({ means, protectionMs, atMs, pieces: 1, pieceMs: 40, isAnswered: false });
    expect(sealed).toEqual([]);
  });

  it.each([20, 100, 2_000, 4_000])(
    'a key while the rest is being made, at %i ms: is told as cut',
    async (atMs) => {
      // "Hello, you have reached Harbour G", 2,200 ms of it.
      const { sealed } = await cut({ means: 'key', atMs, pieces: 11, isAnswered: false });
      expect(sealed).toMatchObject([{ interrupted: true, text: 'Hello, you have reached Harbour' }]);
    },
  );

  it('is whole, or is said to be cut and ends with a whole word', async () => {
    const chosen = fc.record({
      means: fc.constantFrom(...MEANS),
      pieces: fc.integer({ min: 1, max: PIECES }),
      pieceMs: fc.constantFrom(40, 100, 200),
      end: fc.constantFrom('open', 'generated', 'turn over'),
      atMs: fc.integer({ min: 0, max: 250 }).map((ticks) => 20 * ticks),
      protectionMs: fc.constantFrom(0, 1_000, 3_000),
      isHeardByModel: fc.boolean(),
      returnsMarks: fc.boolean(),
      isAnswered: fc.boolean(),
      againMs: fc.option(
        fc.integer({ min: 0, max: 100 }).map((ticks) => 20 * ticks),
        { nil: undefined },
      ),
    });
    let whole = 0;
    let partial = 0;
    await fc.assert(
      fc.asyncProperty(chosen, async (one) => {
        const { sealed, totalMs } = await cut(one);
        const made = GREETING.slice(0, one.pieces * PIECE_CHARS);
        const greeting = sealed.filter(({ text }) => text !== 'Very well.' && GREETING.startsWith(text));
        expect(greeting.length).toBeLessThanOrEqual(1);
        for (const { text, interrupted, playedMs } of greeting) {
          if (interrupted) {
            partial += 1;
            expect(text === made || endsWithWholeWord(text)).toBe(true);
            if (one.end === 'open') expect(endsWithWholeWord(text)).toBe(true);
          } else {
            whole += 1;
            expect(one.end).not.toBe('open');
            expect(text).toBe(made);
            expect(playedMs).toBeGreaterThanOrEqual(totalMs);
          }
        }
      }),
      { numRuns: 300 },
    );
    expect(Math.min(whole, partial)).toBeGreaterThan(0);
  });
});
