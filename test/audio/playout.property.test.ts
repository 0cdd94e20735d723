/** What holds for the playout whatever the model, the clock, the carrier and the caller do. */
import assert from 'node:assert/strict';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Utterance } from '../../src/audio/utterance.js';
import {
  CARRIER_BUFFERED_MAX_BYTES,
  LAST_MARK_GRACE_MS,
  MULAW_FRAME_BYTES,
  MULAW_SILENCE,
  PLAYOUT_LEAD_MS,
  PLAYOUT_MESSAGE_MS,
  START_BUFFER_MIN_MS,
  START_BUFFER_WAIT_FACTOR,
} from '../../src/limits.js';
import { PlayoutLine, tellingSound } from './playout-line.js';

const START_BUFFER_MIN_BYTES = START_BUFFER_MIN_MS * 8;
const START_WAIT_MS = START_BUFFER_WAIT_FACTOR * START_BUFFER_MIN_MS;

type Action =
  | { readonly kind: 'start' | 'end' | 'clear' | 'congest' | 'relieve' }
  | { readonly kind: 'push'; readonly bytes: number }
  | { readonly kind: 'advance' | 'stall' | 'hold'; readonly ms: number }
  | { readonly kind: 'mark'; readonly name: string };

const bytes = fc.oneof(fc.nat(400), fc.nat(6_000), fc.constantFrom(1, 159, 160, 161, 320, 1_280, 1_281));
const ms = fc.oneof(fc.nat(60), fc.nat(1_000), fc.double({ min: 0, max: 50, noNaN: true }));
const markName = fc.oneof(
  fc.string({ maxLength: 12 }),
  fc.tuple(fc.nat(4), fc.nat(30)).map(([generation, mark]) => `g${generation}:m${mark}`),
);
const push: fc.Arbitrary<Action> = fc.record({ kind: fc.constant('push'), bytes });
const advance: fc.Arbitrary<Action> = fc.record({ kind: fc.constant('advance'), ms });
const start: fc.Arbitrary<Action> = fc.record({ kind: fc.constant('start') });
const end: fc.Arbitrary<Action> = fc.record({ kind: fc.constant('end') });
const action: fc.Arbitrary<Action> = fc.oneof(
  { arbitrary: push, weight: 8 },
  { arbitrary: advance, weight: 8 },
  { arbitrary: start, weight: 2 },
  { arbitrary: end, weight: 2 },
  { arbitrary: fc.record({ kind: fc.constant('clear' as const) }), weight: 1 },
  { arbitrary: fc.record({ kind: fc.constant('hold' as const), ms: fc.nat(1_500) }), weight: 1 },
  { arbitrary: fc.record({ kind: fc.constantFrom('congest' as const, 'relieve' as const) }), weight: 1 },
  { arbitrary: fc.record({ kind: fc.constant('stall' as const), ms: fc.nat(500) }), weight: 1 },
  { arbitrary: fc.record({ kind: fc.constant('mark' as const), name: markName }), weight: 1 },
);
/** How the carrier returns each mark: faithfully, never, twice, late and thus out of order. */
const returns = fc.array(
  fc.oneof(
    fc.constant<number[]>([0]),
    fc.constant<number[]>([]),
    fc.constant<number[]>([0, 30]),
    fc.array(fc.nat(900), { maxLength: 2 }),
  ),
  { minLength: 1, maxLength: 8 },
);

/** Plays a script against a line and checks at every step what must always hold. */
class Script {
  readonly line: PlayoutLine;
  readonly utterances: { readonly handle: Utterance; accepted: number[]; heardMs: number }[] = [];
  readonly sentBytes: number[] = [];
  #said = 0;

  constructor(delays: readonly (readonly number[])[]) {
    let marks = 0;
    this.line = new PlayoutLine(() => delays[(marks += 1) % delays.length] ?? [0]);
    const send = this.line.send.bind(this.line);
    this.line.send = (mulaw, mark) => {
      assert(mulaw.length % MULAW_FRAME_BYTES === 0 && mulaw.length > 0, 'whole frames');
      assert(mulaw.length <= PLAYOUT_MESSAGE_MS * 8, 'no more than a message');
      this.sentBytes.push(...mulaw);
      send(mulaw, mark);
    };
  }

  run(actions: readonly Action[]): void {
    for (const next of actions) {
      this.#do(next);
      this.check();
    }
  }

  #do(next: Action): void {
    const { line } = this;
    const { playout } = line;
    const open = this.utterances.at(-1);
    if (next.kind === 'start') {
      this.utterances.push({ handle: playout.startUtterance(), accepted: [], heardMs: 0 });
    } else if (next.kind === 'end') {
      if (open !== undefined) playout.endUtterance(open.handle);
    } else if (next.kind === 'push') {
      if (open === undefined) return;
      const sound = tellingSound(next.bytes, this.#said);
      const acceptedMs = playout.push(open.handle, sound);
      assert(acceptedMs === 0 || acceptedMs === next.bytes / 8, 'all or nothing while there is room');
      if (acceptedMs > 0) open.accepted.push(...sound);
      this.#said += next.bytes;
    } else if (next.kind === 'advance') {
      this.#advance(next.ms);
    } else if (next.kind === 'stall') {
      line.clock.stall(next.ms);
      line.clock.advance(0);
    } else if (next.kind === 'mark') {
      playout.onMark(next.name);
    } else if (next.kind === 'congest') {
      line.bufferedAmount = CARRIER_BUFFERED_MAX_BYTES + 1;
    } else if (next.kind === 'relieve') {
      line.bufferedAmount = 0;
    } else {
      this.#interrupt(next);
    }
  }

  #interrupt(next: Action): void {
    const { playout, clock } = this.line;
    if (next.kind === 'hold' && playout.clearAt(clock.nowMs() + next.ms)) return;
    if (next.kind === 'clear') playout.clear();
    assert(playout.isSilent, 'nothing is left after a clear');
    assert.equal(this.line.sent.at(-1)?.kind, 'clear');
  }

  #advance(total: number): void {
    for (let left = total; left > 0; left -= 7) {
      this.line.clock.advance(Math.min(7, left));
      this.check();
    }
  }

  /** Called thousands of times, hence plain asserts. */
  check(): void {
    const { playout, ear } = this.line;
    assert(ear.queuedMs <= PLAYOUT_LEAD_MS + PLAYOUT_MESSAGE_MS, 'the lead is bounded');
    assert(playout.unplayedMs() >= 0, 'what is unplayed is never negative');
    let heardMs = 0;
    for (const utterance of this.utterances) {
      const now = playout.heardMs(utterance.handle);
      assert(now >= utterance.heardMs, 'heard never falls');
      assert(now <= utterance.handle.sentMs, 'heard never exceeds sent');
      utterance.heardMs = now;
      heardMs += now;
    }
    // The ear has neither delay nor jitter: nothing may be called heard that it has not played.
    assert(heardMs <= ear.playedMs + 1, 'nothing unheard is called heard');
  }

  /** Ends what is open and lets everything play out. */
  finish(): void {
    const { line } = this;
    line.bufferedAmount = 0;
    const open = this.utterances.at(-1);
    if (open !== undefined) line.playout.endUtterance(open.handle);
    const waitingMs = line.playout.unplayedMs();
    line.clock.advance(waitingMs + this.utterances.length * 20 + 2 * LAST_MARK_GRACE_MS + 2_000);
    this.check();
    assert(line.playout.isSilent, 'all was played');
    assert.equal(line.clock.pendingTimers, 0);
  }

  /** What must have been sent, given how much of each utterance was: its sound in order, padded to whole frames. */
  expectedBytes(): number[] {
    return this.utterances.flatMap(({ handle, accepted }) => {
      const sent = accepted.slice(0, handle.sentMs * 8);
      const padding = (MULAW_FRAME_BYTES - (sent.length % MULAW_FRAME_BYTES)) % MULAW_FRAME_BYTES;
      return [...sent, ...Array<number>(padding).fill(MULAW_SILENCE)];
    });
  }
}

describe('Playout, whatever happens', () => {
  it('keeps order and bytes, never claims unheard sound as heard, never runs too far ahead, and comes to rest', () => {
    fc.assert(
      fc.property(fc.array(action, { maxLength: 60 }), returns, (actions, delays) => {
        const script = new Script(delays);
        script.run([{ kind: 'start' }, ...actions]);
        script.finish();
        expect(script.sentBytes).toEqual(script.expectedBytes());
        const heard = script.line.events.filter((event) => event.startsWith('heard'));
        const heardIds = heard.map((event) => Number(event.slice('heard '.length)));
        expect(heardIds).toEqual([...new Set(heardIds)].sort((a, b) => a - b));
        for (const { handle, accepted } of script.utterances) {
          const wholeMs = accepted.length / 8;
          if (heardIds.includes(handle.id)) expect(script.line.playout.heardMs(handle)).toBe(wholeMs);
          expect(handle.ended).toBe(true);
        }
        const marks = script.line.marks;
        expect(new Set(marks).size).toBe(marks.length);
      }),
      { numRuns: 100 },
    );
  });

  it('plays everything and reports each utterance once when nothing is cleared', () => {
    const calm = fc.oneof(
      { arbitrary: push, weight: 4 },
      { arbitrary: advance, weight: 4 },
      { arbitrary: start, weight: 1 },
      { arbitrary: end, weight: 1 },
    );
    fc.assert(
      fc.property(fc.array(calm, { maxLength: 60 }), returns, (actions, delays) => {
        const script = new Script(delays);
        script.run([{ kind: 'start' }, ...actions]);
        script.finish();
        expect(script.sentBytes).toEqual(script.expectedBytes());
        expect([...script.line.ear.heard()]).toEqual(script.sentBytes);
        const { events } = script.line;
        expect(events.filter((event) => event.startsWith('heard'))).toEqual(
          script.utterances.map(({ handle }) => `heard ${handle.id}`),
        );
        for (const { handle, accepted } of script.utterances) {
          expect(handle.sentMs).toBe(accepted.length / 8);
          expect(script.line.playout.heardMs(handle)).toBe(accepted.length / 8);
        }
        // On a clock that is never late, a dry carrier is always the model's doing.
        expect(events.filter((event) => event.endsWith('late'))).toEqual([]);
        expect(events.filter((event) => event === 'drained').length).toBeGreaterThan(0);
      }),
      { numRuns: 100 },
    );
  });

  // Speech starts when the start buffer is full, when the wait that began with the first whole frame is over, or when
  // the utterance ends. In time is what comes, from then on, before the whole frames ahead of it have been played.
  it('starts by its rule and never lets the carrier run dry while sound comes in time', () => {
    const piece = fc.record({
      bytes: fc.oneof(
        fc.integer({ min: 1, max: 4_000 }),
        fc.integer({ min: 1, max: START_BUFFER_MIN_BYTES }),
      ),
      earlyShare: fc.oneof(fc.constantFrom(0, 1), fc.double({ min: 0, max: 1, noNaN: true })),
    });
    fc.assert(
      fc.property(fc.array(piece, { minLength: 1, maxLength: 40 }), returns, (pieces, delays) => {
        const line = new PlayoutLine(() => delays[0] ?? [0]);
        const utterance = line.playout.startUtterance();
        let pushed = 0;
        let startMs = Number.POSITIVE_INFINITY;
        for (const { bytes: size, earlyShare } of pieces) {
          const whole = pushed - (pushed % MULAW_FRAME_BYTES);
          // Below a whole frame nothing can start, and any pause will do.
          const slackMs = whole === 0 ? 1_000 : Math.max(0, startMs + whole / 8 - line.timeMs);
          line.clock.advance(slackMs * (1 - earlyShare));
          line.playout.push(utterance, tellingSound(size, pushed));
          pushed += size;
          if (pushed >= START_BUFFER_MIN_BYTES) startMs = Math.min(startMs, line.timeMs);
          else if (pushed >= MULAW_FRAME_BYTES) startMs = Math.min(startMs, line.timeMs + START_WAIT_MS);
        }
        line.playout.endUtterance(utterance);
        startMs = Math.min(startMs, line.timeMs);
        line.clock.advance(pushed / 8 + 5_000);
        const startedMs = line.sent[0]?.atMs ?? Number.NaN;
        expect(startedMs).toBeGreaterThan(startMs - 0.001);
        // No timer is set for less than a millisecond.
        expect(startedMs).toBeLessThanOrEqual(startMs + 1);
        expect(line.ear.stretches()).toHaveLength(1);
        expect([...line.ear.heard().subarray(0, pushed)]).toEqual([...tellingSound(pushed)]);
        expect(line.events.filter((event) => event.startsWith('underrun'))).toEqual([]);
      }),
      { numRuns: 100 },
    );
  });

  it('reports as underruns exactly the gaps that the ear hears within an utterance', () => {
    const piece = fc.record({ bytes: fc.integer({ min: 160, max: 6_000 }), pauseMs: fc.nat(700) });
    fc.assert(
      fc.property(fc.array(piece, { minLength: 1, maxLength: 20 }), (pieces) => {
        const line = new PlayoutLine();
        const utterance = line.playout.startUtterance();
        for (const { bytes: size, pauseMs } of pieces) {
          line.playout.push(utterance, tellingSound(size));
          line.clock.advance(pauseMs);
        }
        line.playout.endUtterance(utterance);
        line.clock.advance(60_000);
        const gaps = line.ear.stretches().slice(1).length;
        const underruns = line.events.filter((event) => event.startsWith('underrun'));
        // A last bit below a frame and a gap within a millisecond are none.
        expect(gaps - underruns.length).toBeGreaterThanOrEqual(0);
        const tail = pieces.reduce((sum, { bytes: size }) => sum + size, 0) % MULAW_FRAME_BYTES;
        const tailGap = tail > 0 && line.ear.stretches().at(-1)?.sound.length === MULAW_FRAME_BYTES ? 1 : 0;
        expect(gaps - underruns.length).toBeLessThanOrEqual(tailGap + line.shortGaps());
      }),
      { numRuns: 100 },
    );
  });
});
