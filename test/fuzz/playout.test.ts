/**
 * Messages of the agent through the playout to a carrier's ear, with everything out of step that can be: marks early,
 * late, doubled, lost and invented, a full socket, a process that stood still, interruptions at once and held, floods.
 * Each message has a byte of its own for sound, so that what was sent tells whose it was.
 */
import assert from 'node:assert/strict';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { AgentMessage } from '../../src/call/agent-message.js';
import { HeardText } from '../../src/call/heard-text.js';
import {
  CARRIER_BUFFERED_MAX_BYTES,
  LAST_MARK_GRACE_MS,
  MULAW_SILENCE,
  PLAYOUT_LEAD_MS,
  PLAYOUT_MESSAGE_MS,
  PLAYOUT_QUEUE_MAX_MS,
  TRANSCRIPT_MAX_CHARS,
  UTTERANCES_MAX,
} from '../../src/limits.js';
import { PlayoutLine } from '../audio/playout-line.js';
import { fuzzed, fuzzedAtLeast } from './seed.js';

type Action =
  | { readonly kind: 'open' | 'end' | 'clear' | 'congest' | 'relieve' | 'nudge' | 'flood' | 'againMarks' }
  | { readonly kind: 'push'; readonly bytes: number }
  | { readonly kind: 'words'; readonly text: string }
  | { readonly kind: 'advance' | 'stall' | 'hold'; readonly ms: number }
  | { readonly kind: 'mark'; readonly generation: number; readonly mark: number }
  | { readonly kind: 'noMark'; readonly name: string };

const ms = fc.oneof(fc.nat(60), fc.nat(1_500), fc.double({ min: 0, max: 50, noNaN: true }));
const bytes = fc.oneof(fc.nat(400), fc.nat(12_000), fc.constantFrom(1, 159, 160, 161, 320, 479, 480, 1_280));
const some = <K extends Action['kind']>(...kinds: K[]) => fc.record({ kind: fc.constantFrom(...kinds) });
const action = fc.oneof(
  { weight: 16, arbitrary: fc.record({ kind: fc.constant('push' as const), bytes }) },
  { weight: 16, arbitrary: fc.record({ kind: fc.constant('advance' as const), ms }) },
  {
    weight: 6,
    arbitrary: fc.record({ kind: fc.constant('words' as const), text: fc.lorem({ maxCount: 3 }) }),
  },
  { weight: 4, arbitrary: some('open') },
  { weight: 4, arbitrary: some('end') },
  { weight: 3, arbitrary: some('clear', 'nudge', 'congest', 'relieve', 'againMarks') },
  { weight: 2, arbitrary: fc.record({ kind: fc.constantFrom('stall' as const, 'hold' as const), ms }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('mark' as const),
      generation: fc.nat(3),
      mark: fc.integer({ min: -2, max: 9 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('noMark' as const),
      name: fc.oneof(fc.string(), fc.stringMatching(/^g\d{1,20}:m\d{1,20}$/)),
    }),
  },
  { weight: 1, arbitrary: some('flood') },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('push' as const), bytes: fc.constant(400_000) }) },
) as fc.Arbitrary<Action>;

/** How each mark comes back. */
const returns = fc.array(
  fc.oneof(
    fc.constant([0]),
    fc.constant<number[]>([]),
    fc.constant([0, 0, 40]),
    fc.array(fc.nat(900), { maxLength: 3 }),
  ),
  { minLength: 1, maxLength: 8 },
);

interface Spoken {
  readonly message: AgentMessage;
  readonly byte: number;
  offeredBytes: number;
  acceptedMs: number;
  sentBytes: number;
  heardMs: number;
  words: string;
  /** Cut: nothing of it may be sent any more, and what was heard of it is final. */
  cutAtMs: number | undefined;
}

class Dialogue {
  readonly line: PlayoutLine;
  readonly spoken: Spoken[] = [];
  interruptions = 0;
  #heldUpTo: number | undefined;

  constructor(delays: readonly (readonly number[])[]) {
    let marks = 0;
    this.line = new PlayoutLine(() => delays[(marks += 1) % delays.length] ?? [0]);
    const send = this.line.send.bind(this.line);
    this.line.send = (mulaw, mark) => {
      this.#account(mulaw);
      send(mulaw, mark);
    };
    this.line.react = (event) => {
      if (event === 'hold over cleared') this.#cut(0, this.#heldUpTo ?? 0);
      if (event.startsWith('hold over')) this.#heldUpTo = undefined;
    };
  }

  take(next: Action): void {
    const { line } = this;
    const { playout, clock } = line;
    const current = this.spoken.at(-1);
    switch (next.kind) {
      case 'open':
        return this.#open();
      case 'push':
        return this.#push(next.bytes);
      case 'words':
        if (current === undefined || current.cutAtMs !== undefined) return;
        current.message.addWords(`${next.text} `);
        current.words += `${next.text} `;
        return;
      case 'end':
        return current?.message.endSound();
      case 'clear':
        playout.clear();
        this.interruptions += 1;
        this.#heldUpTo = undefined;
        return this.#cut(0, this.spoken.length);
      case 'hold':
        return this.#hold(next.ms);
      case 'advance':
        return this.#advance(next.ms);
      case 'stall':
        clock.stall(next.ms);
        return clock.advance(0);
      case 'nudge':
        return playout.nudge();
      case 'congest':
      case 'relieve':
        line.bufferedAmount = next.kind === 'congest' ? CARRIER_BUFFERED_MAX_BYTES + 1 : 0;
        return;
      case 'mark': // Around those that there are: of this generation and others, old, next and never sent.
        return playout.onMark(
          `g${playout.generation + 1 - next.generation}:m${line.marks.length + 2 - next.mark}`,
        );
      case 'noMark':
        return playout.onMark(next.name);
      case 'againMarks':
        for (const name of line.marks) playout.onMark(name);
        return;
      case 'flood':
        for (let times = 0; times < UTTERANCES_MAX + 6; times += 1) {
          this.#push(3);
          this.spoken.at(-1)?.message.endSound();
        }
    }
  }

  /** Called thousands of times, hence plain asserts. */
  check(): void {
    const { playout, ear } = this.line;
    assert(ear.queuedMs <= PLAYOUT_LEAD_MS + PLAYOUT_MESSAGE_MS, 'the lead is bounded');
    assert(playout.queuedMs <= PLAYOUT_QUEUE_MAX_MS && playout.queuedMs >= 0, 'the queue is bounded');
    assert(playout.unplayedMs() >= 0, 'what is unplayed is never negative');
    assert(this.line.corked === 0, 'what was corked was uncorked');
    let heardMs = 0;
    for (const one of this.spoken) {
      const now = one.message.heardMs();
      assert(now >= one.heardMs, 'heard never falls');
      assert(now * 8 <= one.sentBytes, 'heard never exceeds sent');
      assert(one.sentBytes <= one.acceptedMs * 8, 'sent never exceeds accepted');
      assert(one.acceptedMs * 8 <= one.offeredBytes, 'accepted never exceeds generated');
      if (one.cutAtMs !== undefined)
        assert.equal(now, one.cutAtMs, 'what was heard of a cut message is final');
      const text = one.message.heardText();
      assert(one.words.startsWith(text), 'heard text is a prefix of the words');
      assert(now > 0 || text === '', 'no word is heard without sound');
      one.heardMs = now;
      heardMs += now;
    }
    assert(heardMs <= ear.playedMs + 1, 'nothing unheard is called heard');
  }

  /** Lets everything play out, closes, and looks that all is quiet. */
  finish(): void {
    const { line } = this;
    line.bufferedAmount = 0;
    this.spoken.at(-1)?.message.endSound();
    line.clock.advance(line.playout.unplayedMs() + UTTERANCES_MAX * 20 + 2 * LAST_MARK_GRACE_MS + 2_000);
    this.check();
    assert(line.playout.isSilent, 'all was played');
    for (const one of this.spoken) {
      if (one.cutAtMs === undefined)
        assert.equal(one.message.heardMs(), one.acceptedMs, 'what was not cut was heard');
    }
    assert.equal(line.clock.pendingTimers, 0);
  }

  /** Closes in the middle of whatever is going on. */
  breakOff(): void {
    const { line } = this;
    line.playout.close();
    line.ear.hangUp();
    assert.equal(line.clock.pendingTimers, 0, 'no timer is left');
    const sent = line.sent.length;
    const heard = this.spoken.map(({ message }) => message.heardMs());
    this.#push(1_000);
    this.take({ kind: 'clear' });
    line.playout.onMark(line.marks.at(-1) ?? 'g1:m1');
    line.clock.advance(10_000);
    assert.equal(line.sent.length, sent, 'nothing is sent after the end');
    assert.deepEqual(
      this.spoken.slice(0, heard.length).map(({ message }) => message.heardMs()),
      heard,
    );
    assert.equal(line.clock.pendingTimers, 0);
  }

  #open(): void {
    this.spoken.at(-1)?.message.endSound();
    const message = new AgentMessage({ playout: this.line.playout, isGreeting: false });
    const byte = this.spoken.length % 250;
    this.spoken.push({
      message,
      byte,
      offeredBytes: 0,
      acceptedMs: 0,
      sentBytes: 0,
      heardMs: 0,
      words: '',
      cutAtMs: undefined,
    });
  }

  #push(length: number): void {
    const last = this.spoken.at(-1);
    // As the agent's leg does it: what comes behind an interruption, held ones too, is another message.
    if (last === undefined || last.cutAtMs !== undefined || this.#heldUpTo === this.spoken.length)
      this.#open();
    const current = this.spoken.at(-1)!;
    current.offeredBytes += length;
    // Before the playout is asked: it may send at once, and what it sends is checked.
    current.acceptedMs += length / 8;
    current.acceptedMs -= length / 8 - current.message.push(new Uint8Array(length).fill(current.byte));
  }

  #hold(afterMs: number): void {
    const { playout, clock } = this.line;
    const behind = this.#heldUpTo;
    this.interruptions += 1;
    if (!playout.clearAt(clock.nowMs() + afterMs)) {
      this.#heldUpTo = undefined;
      return this.#cut(0, this.spoken.length);
    }
    if (behind === undefined) this.#heldUpTo = this.spoken.length;
    else this.#cut(behind, this.spoken.length);
    return undefined;
  }

  #advance(total: number): void {
    for (let left = total; left > 0; left -= 13) {
      const texts = this.spoken.map(({ message }) => message.heardText().length);
      this.line.clock.advance(Math.min(13, left));
      this.check();
      this.spoken.forEach(({ message }, at) =>
        assert(message.heardText().length >= (texts[at] ?? 0), 'words stay heard'),
      );
    }
  }

  #cut(from: number, to: number): void {
    for (const one of this.spoken.slice(from, to)) one.cutAtMs ??= one.message.heardMs();
  }

  #account(mulaw: Uint8Array): void {
    for (const code of mulaw) {
      if (code === MULAW_SILENCE) continue;
      const one = this.spoken.findLast(({ byte }) => byte === code);
      assert(one !== undefined && one.cutAtMs === undefined, 'nothing of a cut message is sent');
      one.sentBytes += 1;
    }
  }
}

describe('the sound of the agent, whatever happens to it', () => {
  it('is sent in order and bounds, never after it was cut, and never called heard before it was', () => {
    let interruptions = 0;
    const property = fc.property(
      fc.array(action, { maxLength: 80, size: 'max' }),
      returns,
      fc.boolean(),
      (actions, delays, breaksOff) => {
        const dialogue = new Dialogue(delays);
        for (const next of actions) {
          dialogue.take(next);
          dialogue.check();
        }
        if (breaksOff) dialogue.breakOff();
        else dialogue.finish();
        interruptions += dialogue.interruptions;
      },
    );
    fc.assert(property, fuzzed(120));
    expect(interruptions).toBeGreaterThan(fuzzedAtLeast(100));
  });
});

describe('heard text, whatever the order of sound and words', () => {
  it('is a prefix of the words that never shrinks with more sound heard, and ends with no half of a pair', () => {
    const text = fc.oneof(
      fc.string({ unit: 'grapheme', maxLength: 30 }),
      fc.constantFrom(' ', 'word ', '你好世界', 'ภาษาไทย', '👩‍👩‍👧‍👦', '  \n', '\u200b', 'a\u0301'),
      fc.nat(3_000).map((length) => '漢'.repeat(length)),
    );
    const sound = fc.oneof(
      fc.nat(2_000),
      fc.constantFrom(0.125, 20, 1e-9),
      fc.constantFrom(Number.NaN, -1, Infinity),
    );
    const steps = fc.array(fc.oneof(text, sound), { maxLength: 20 });
    const positions = fc.array(fc.double({ min: 0, max: 1.2, noNaN: true }), { minLength: 2, maxLength: 8 });
    const property = fc.property(steps, positions, (all, shares) => {
      const heard = new HeardText();
      for (const one of all) {
        if (typeof one === 'string') heard.addTranscript(one);
        else heard.addAudio(one);
      }
      let before = '';
      for (const share of shares.toSorted((a, b) => a - b)) {
        const prefix = heard.heardPrefix(share * heard.audioMs);
        assert(heard.text.startsWith(prefix));
        assert(prefix.startsWith(before));
        assert(!/[\ud800-\udbff]$/.test(prefix), 'no half of a pair');
        before = prefix;
      }
      for (const odd of [0, -1, Number.NaN, -Infinity]) assert.equal(heard.heardPrefix(odd), '');
      assert.equal(heard.heardPrefix(Infinity), heard.text);
    });
    fc.assert(property, fuzzed(500));
  });

  it('is bounded, however long the model talks', () => {
    const heard = new HeardText();
    for (let times = 0; times < 3_000; times += 1) {
      heard.addAudio(20);
      heard.addTranscript('many more words ');
    }
    expect(heard.text.length).toBe(Math.min(TRANSCRIPT_MAX_CHARS, 3_000 * 16));
    heard.addTranscript('x'.repeat(5 * TRANSCRIPT_MAX_CHARS));
    expect(heard.text.length).toBe(TRANSCRIPT_MAX_CHARS);
    expect(heard.text.startsWith(heard.heardPrefix(30_000))).toBe(true);
  });
});
