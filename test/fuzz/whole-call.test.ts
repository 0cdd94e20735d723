/**
 * Whole calls with hostile bytes on both legs at once: whatever they say and in whatever order, a call comes to its end in
 * bounded time once both sides have nothing more to say, not by a fault of ours, and nothing of it stays behind.
 */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { END_REASONS } from '../../src/call/end-reason.js';
import { PROMPT_TEXTS } from '../../src/call/prompts.js';
import { MAILBOX_MAX, TRANSCRIPT_MAX_CHARS } from '../../src/limits.js';
import { tone, NOTHING_LEFT } from '../support/call-rig.js';
import { turn } from './carrier-line.js';
import { Mutations, readCorpus } from './corpus.js';
import { type Answer, HostileCall } from './hostile-call.js';
import { Chance, fuzzed, fuzzedAtLeast } from './seed.js';
import { wireFrame } from './wire-frames.js';

const fromCarrier = ['carrier-start.txt', 'carrier-media.txt', 'carrier-control.txt'].flatMap(readCorpus);
const fromModel = ['model-speech.txt', 'model-control.txt'].flatMap(readCorpus);
const AUDIO = tone(200);

/** A good message of the model, of pieces in any combination. */
function speech(chance: Chance, word: string): string {
  const inlineData = { mimeType: 'audio/pcm;rate=24000', data: Buffer.from(AUDIO).toString('base64') };
  const pieces: [string, unknown][] = [
    ['modelTurn', { parts: Array.from({ length: chance.below(4) }, () => ({ inlineData })) }],
    ['outputTranscription', { text: word }],
    ['inputTranscription', { text: 'caller ' }],
    ['generationComplete', true],
    ['turnComplete', true],
    ['interrupted', true],
  ];
  const serverContent = Object.fromEntries(
    pieces.filter((_, index) => chance.once(index < 2 ? 2 : 2 + 2 * index)),
  );
  return JSON.stringify({ serverContent });
}

/** What a model says of its session and its connection: good, odd, or the end of it at once. */
function aboutSession(chance: Chance): string {
  const newHandle = `h${chance.below(100)}`;
  return JSON.stringify(
    chance.pick([
      { sessionResumptionUpdate: { newHandle, resumable: true } },
      { sessionResumptionUpdate: { newHandle, resumable: true } },
      { sessionResumptionUpdate: { resumable: false } },
      { sessionResumptionUpdate: { newHandle: '', resumable: true } },
      { goAway: { timeLeft: `${chance.below(60)}s` } },
      { goAway: { timeLeft: chance.pick(['soon', '-1s', '999999999s', 7, null]) } },
      { goAway: {} },
    ]),
  );
}

/** A caller's frame with timestamps that mostly go on, jump now and then, and stand still. */
function callerFrame(chance: Chance, nowMs: number): Buffer {
  const jumpMs = chance.once(20) ? chance.below(1_000_000) : chance.below(3) * 20;
  const payload = chance.bytes(chance.once(10) ? 1 + chance.below(2_000) : 160).toString('base64');
  const media = { track: 'inbound', timestamp: String(Math.round(nowMs) + jumpMs), payload };
  return Buffer.from(JSON.stringify({ event: 'media', media }));
}

class Attack {
  readonly call: HostileCall;
  words = 0;
  readonly #chance: Chance;
  readonly #carrier: Mutations;
  readonly #model: Mutations;

  constructor(call: HostileCall, chance: Chance) {
    this.call = call;
    this.#chance = chance;
    const small = ({ data }: { data: Buffer }): boolean => data.length < 3_000 || chance.once(4);
    this.#carrier = new Mutations(
      fromCarrier.filter(small).map(({ data }) => data),
      chance,
    );
    this.#model = new Mutations(
      fromModel.filter(small).map(({ data }) => data),
      chance,
    );
  }

  /** One burst on one leg, then some time or none. */
  async strike(): Promise<void> {
    const { call } = this;
    const chance = this.#chance;
    for (let count = 1 + chance.below(20); count > 0; count -= 1) {
      const kind = chance.below(12);
      if (kind < 3) call.fromCarrier(wireFrame(callerFrame(chance, call.rig.clock.nowMs() - 1_000_000)));
      else if (kind < 5) call.fromCarrier(wireFrame(this.#carrier.next()));
      else if (kind < 9) call.fromModel(speech(chance, `w${(this.words += 1)} `));
      else call.fromModel(this.#model.next().toString('utf8'));
    }
    if (chance.once(40)) call.fromCarrier(chance.bytes(30));
    if (chance.once(60)) call.loseLine();
    if (chance.once(12)) call.fromModel(aboutSession(chance));
    if (chance.once(25)) call.loseModel(chance.pick([1000, 1006, 1007, 1008, 1011]));
    await turn();
    if (!call.hasLine && chance.once(2)) await call.redial();
    if (!chance.once(3)) await call.advance(chance.pick([20, 60, 200, 900]));
  }
}

const script = fc.record({
  seed: fc.nat(),
  strikes: fc.integer({ min: 1, max: 60 }),
  markDelays: fc.array(
    fc.oneof(fc.constant([0]), fc.constant<number[]>([]), fc.array(fc.nat(900), { maxLength: 3 })),
    {
      minLength: 1,
      maxLength: 5,
    },
  ),
  greetingProtectionMs: fc.constantFrom(0, 3_000),
  answers: fc.array(fc.constantFrom<Answer>(0, 0, 0, 80, 300, 3_000, 'refused', 'never'), { maxLength: 5 }),
  ending: fc.constantFrom('silence', 'quietCaller', 'lineLost', 'modelLost', 'stop'),
});

/** Longer than any wait of a call that hears nothing: idle twice, a farewell, the line's cut, a stream that may come back,
 * and five minutes of speech that waits to be played. */
const LONGEST_END_MS = 8 * 60_000;

const SILENCE = Buffer.from(
  JSON.stringify({
    event: 'media',
    media: { timestamp: 0, payload: Buffer.alloc(160, 0xff).toString('base64') },
  }),
);

async function expectEnd(call: HostileCall, callerListens = false): Promise<void> {
  for (let waitedMs = 0; waitedMs < LONGEST_END_MS && call.state !== 'ended'; waitedMs += 500) {
    if (callerListens) call.fromCarrier(wireFrame(SILENCE));
    call.rig.clock.advance(500);
    await turn();
  }
  expect(call.state).toBe('ended');
  call.ear.hangUp();
  for (const wire of call.wires) wire.destroy();
  while (call.door.server.openStreams + call.door.server.unstartedSockets > 0) await turn();
  await call.advance(15_000);
  expect(call.rig.clock.pendingTimers).toBe(0);
  expect(call.rig.calls.counts()).toEqual(NOTHING_LEFT);
  const reasons = call.rig.seen('onCallEnded').map(([, reason]) => reason);
  expect(reasons).toHaveLength(1);
  expect(END_REASONS).toContain(reasons[0]);
}

describe('calls with hostile bytes on both legs', () => {
  it('come to their end in bounded time, without a fault inside, and leave nothing behind', async () => {
    let spoke = 0;
    let again = 0;
    const property = fc.asyncProperty(script, async ({ seed, strikes, ending, ...options }) => {
      const call = new HostileCall(options);
      await turn();
      await call.dial();
      const attack = new Attack(call, new Chance(seed));
      for (let count = 0; count < strikes && call.state !== 'ended'; count += 1) {
        await attack.strike();
        expect(call.ear.playedMs).toBeGreaterThanOrEqual(0);
        const kept = call.rig.view(call.callSid).messages.reduce((sum, { text }) => sum + text.length, 0);
        expect(kept).toBeLessThan(3 * TRANSCRIPT_MAX_CHARS);
      }
      if (ending === 'lineLost') call.loseLine();
      if (ending === 'modelLost') call.loseModel(1006);
      if (ending === 'stop') call.fromCarrier(wireFrame(Buffer.from('{"event":"stop"}')));
      await turn();
      await expectEnd(call, ending === 'quietCaller');
      spoke += call.ear.playedMs > 0 ? 1 : 0;
      again += call.models.length - 1;
      expect(call.secondAtATime).toBe(0);
      expect(call.isModelGone).toBe(true);
      // No message may be a fault of ours: bad ones are counted and skipped.
      expect(call.rig.seen('onCallEnded').map(([, reason]) => reason)).not.toContain('internal_error');
      expect(call.oddities).not.toContain('listener_threw');
      for (const args of call.rig.seen('onTurnLatency')) expect(args[0]).toBeGreaterThanOrEqual(0);
      for (const args of call.rig.seen('onAudioDropped')) expect(args[2]).toBeGreaterThanOrEqual(0);
      for (const args of call.rig.seen('onTokens')) expect(args[2]).toBeLessThan(Infinity);
      const recorded = new Set(Object.values(PROMPT_TEXTS));
      const words = call.rig
        .view(call.callSid)
        .messages.filter(({ role, text }) => role === 'model' && !recorded.has(text));
      expect(words.every(({ text }) => text.trim() !== '')).toBe(true);
    });
    await fc.assert(property, fuzzed(60));
    expect(spoke).toBeGreaterThan(fuzzedAtLeast(20));
    expect(again).toBeGreaterThan(fuzzedAtLeast(20));
  }, 120_000);

  it('keep a bounded transcript of a model that says words without end, with sound and without', async () => {
    const call = new HostileCall({ markDelays: [[0]], greetingProtectionMs: 0 });
    await turn();
    await call.dial();
    const chance = new Chance(1);
    const text = 'word '.repeat(5_000);
    for (let times = 0; times < 200; times += 1) {
      const inputTranscription = { text };
      call.fromModel(JSON.stringify({ serverContent: { inputTranscription } }));
      call.fromModel(JSON.stringify({ serverContent: { outputTranscription: { text } } }));
      if (chance.once(4)) call.fromModel(speech(chance, text));
      const kept = call.rig
        .view(call.callSid)
        .messages.reduce((sum, message) => sum + message.text.length, 0);
      // What is closed, and what is open: here one message at a time.
      expect(kept).toBeLessThanOrEqual(2 * TRANSCRIPT_MAX_CHARS);
      await call.advance(100);
    }
    call.fromCarrier(wireFrame(Buffer.from('{"event":"stop"}')));
    await turn();
    await expectEnd(call);
  });

  it('hear every key and word of a burst of thousands, one control event after the other', async () => {
    const call = new HostileCall({ markDelays: [[0]], greetingProtectionMs: 0 });
    await turn();
    await call.dial();
    for (let times = 0; times < 3 * MAILBOX_MAX; times += 1) {
      call.fromModel(
        '{"serverContent":{"inputTranscription":{"text":"x"},"turnComplete":true,"interrupted":true}}',
      );
    }
    expect(call.state).toBe('live');
    call.fromCarrier(wireFrame(Buffer.from('{"event":"stop"}')));
    await turn();
    await expectEnd(call);
  });
});
