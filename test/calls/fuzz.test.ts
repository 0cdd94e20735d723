import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { defineAgent, defineTool } from '../../src/index.js';
import { END_REASONS } from '../../src/call/end-reason.js';
import type { Event } from '../../src/event/event.js';
import { PROMPT_TEXTS } from '../../src/call/prompts.js';
import type { CallSid } from '../../src/ids.js';
import { DRAIN_MAX_MS, PREWARMS_MAX, TICK_MS } from '../../src/limits.js';
import { HOLD_AGAIN_MS } from '../../src/link-limits.js';
import type { CallStatus } from '../../src/telephony/voice-door.js';
import {
  CallRig,
  END_CALL,
  type FakeModel,
  type FakeStream,
  tone,
  NOTHING_LEFT,
} from '../support/call-rig.js';
import { fuzzed, fuzzedAtLeast } from '../fuzz/seed.js';
import { VirtualClock } from '../../src/replay/virtual-clock.js';
import { type ConnectionPlan, RandomModels } from './random-models.js';

/** Sound per word of the model. */
const WORD_MS = 250;
/** Twice what the words may run ahead of the sound by the estimate of HeardText, for each message. */
const WORDS_AHEAD_MAX = 4;

/** Between two hold clips, with what a mark takes to come back. */
const SILENCE_MAX_MS = HOLD_AGAIN_MS + 500;

/** Nobody who asked for something waits longer in silence: a tick, in which the model is asked again, may come before the clip. */
const UNANSWERED_MAX_MS = 3_000 + TICK_MS;

const STEPS = [
  'modelSays',
  'modelBegins',
  'modelSound',
  'modelWords',
  'modelHush',
  'goAway',
  'givesHandle',
  'isNotResumable',
  'interrupted',
  'turnComplete',
  'generationComplete',
  'callerWords',
  'callerSpeaks',
  'callerIsSilent',
  'callerPresses',
  'unknownTool',
  'lookUp',
  'found',
  'modelStopsReading',
  'modelReads',
  'marksAreLost',
  'streamComesBack',
  'streamIsReplaced',
  'statusInProgress',
] as const;

/** What ends or hurts a call, each of them one step in two hundred. */
const RARE_STEPS = [
  'endCall',
  'streamIsLost',
  'modelIsLost',
  'drain',
  'operatorHangsUp',
  'statusCompleted',
  'callerHangsUp',
] as const;

type Step = (typeof STEPS)[number] | (typeof RARE_STEPS)[number] | number;

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 66, arbitrary: fc.constantFrom(...STEPS) },
  { weight: 30, arbitrary: fc.constantFrom(40, 300, 1_000, 3_000, 6_000) },
  { weight: 2, arbitrary: fc.constant('modelIsLost' as const) },
  { weight: 4, arbitrary: fc.constantFrom(...RARE_STEPS) },
);

/** How each connection to the model goes; that of the first is `modelReadyMs` for its beginning. */
const connection: fc.Arbitrary<ConnectionPlan> = fc.record({
  connect: fc.oneof(
    { weight: 5, arbitrary: fc.constant(0) },
    { weight: 3, arbitrary: fc.constantFrom(60, 400, 2_500) },
    { weight: 2, arbitrary: fc.constantFrom('fails' as const, 'setupRefused' as const, 'never' as const) },
  ),
  givesHandle: fc.boolean(),
  diesAfterMs: fc.constantFrom(undefined, undefined, undefined, 0, 700, 9_000),
  closesAfterMs: fc.constantFrom(0, 0, 60, 400, 'never' as const),
});

const script = fc.record({
  /** Calls that were announced before and take all prewarms. */
  isCrowded: fc.constantFrom(false, false, false, false, true),
  modelReadyMs: fc.constantFrom(0, 0, 0, 0, 0, 300, 2_000, 'fails' as const),
  connections: fc.array(connection, { minLength: 1, maxLength: 6 }),
  greetingProtectionMs: fc.constantFrom(0, 3_000),
  callMaxMs: fc.constantFrom(0, 40_000, 120_000),
  idleRepromptMs: fc.constantFrom(0, 5_000, 15_000),
  hangUp: fc.constantFrom(
    { kind: 'done' } as const,
    { kind: 'failed', cause: '500' } as const,
    { kind: 'unavailable' } as const,
  ),
  steps: fc.array(step, { minLength: 10, maxLength: 60, size: 'max' }),
  ending: fc.constantFrom('byItself', 'callerHangsUp', 'drain', 'operatorHangsUp', 'statusCompleted'),
});

type Script = typeof script extends fc.Arbitrary<infer T> ? T : never;

/** A tool that takes as long as the script says: the oldest look-up is answered with the next `found`. */
class Lookups {
  readonly #open: ((value: unknown) => void)[] = [];
  #found = 0;
  readonly agent = defineAgent({
    name: 'support',
    instruction: 'Be brief.',
    greeting: 'Hello, how can I help?',
    tools: [
      defineTool({
        name: 'look',
        description: 'Looks.',
        execute: () => new Promise((resolve) => void this.#open.push(resolve)),
      }),
    ],
  });

  found(): void {
    const answer = this.#open.shift();
    if (answer === undefined) return;
    this.#found += 1;
    answer({ message: `Found ${this.#found}.` });
  }
}

/** One call that is put through a script, and what was said in it. */
class RandomCall {
  readonly rig: CallRig;
  readonly models: RandomModels;
  readonly callSid: CallSid;
  /** What was told of the agent's messages as they were over. */
  readonly sealed: string[] = [];
  drained: Promise<void> | undefined;
  /** All the model's words, and where in them each fragment began. */
  spoken = '';
  readonly fragmentStarts = new Set<number>();
  readonly #lookUps: Lookups;
  #stream: FakeStream;
  #words = 0;
  #tools = 0;
  #goAways = 0;
  #silentMs = 0;
  /** Since a caller has pressed a key and has heard nothing. */
  #unansweredMs: number | undefined;

  private constructor(rig: CallRig, models: RandomModels, lookUps: Lookups) {
    this.rig = rig;
    this.models = models;
    this.#lookUps = lookUps;
    const { callSid, answer } = rig.ring();
    this.callSid = callSid;
    models.heard = () => heardOf(this);
    // Late words may have joined what was said to its end.
    models.isWhole = (text) => {
      const from = this.spoken.indexOf(text);
      return from >= 0 && [...this.#ends].some((end) => end > from && end <= from + text.length);
    };
    this.#stream = rig.open(callSid, answer);
  }

  static async begin(options: Script): Promise<RandomCall> {
    const { isCrowded, hangUp, greetingProtectionMs, callMaxMs, idleRepromptMs } = options;
    const others = isCrowded ? PREWARMS_MAX : 0;
    const clock = new VirtualClock(1_000_000);
    const models = new RandomModels({ clock, plans: plansOf(options), others });
    const lookUps = new Lookups();
    let call: RandomCall | undefined;
    const rig = new CallRig({
      clock,
      agent: lookUps.agent,
      hangUp,
      deps: {
        greetingProtectionMs,
        callMaxMs,
        idleRepromptMs,
        connectLive: models.connect,
        openRun: ({ callSid }, run) => {
          run.listen((item) => {
            if (callSid !== call?.callSid || item.type !== 'sealed' || item.role !== 'model') return;
            if (item.event !== undefined) call.sealed.push(textOf(item.event));
          });
        },
      },
    });
    for (let count = 0; count < others; count += 1) rig.ring();
    await rig.settle();
    call = new RandomCall(rig, models, lookUps);
    await rig.settle();
    return call;
  }

  get hasEnded(): boolean {
    return this.rig.view(this.callSid).state === 'ended';
  }

  async take(next: Step): Promise<void> {
    if (typeof next === 'number') return this.#pass(next);
    if (!this.#takeOfLine(next)) this.#takeOfModel(next);
    const stream = this.#stream.closed ? undefined : this.#stream;
    if (next === 'callerSpeaks' && stream !== undefined) await this.rig.speak(stream, 200);
    if (next === 'callerIsSilent' && stream !== undefined) await this.rig.frames(stream, 100);
    if (next === 'found') this.#lookUps.found();
    if (next === 'found' || next === 'lookUp') await this.rig.turns();
    await this.rig.settle();
  }

  /** Ends the call from outside, unless it would end by itself. */
  async end(ending: Script['ending'], endsByItself: boolean): Promise<void> {
    const how = ending === 'byItself' && !endsByItself ? 'drain' : ending;
    if (how !== 'byItself') await this.take(how);
    for (let waitedMs = 0; waitedMs < DRAIN_MAX_MS + 60_000 && !this.hasEnded; waitedMs += 500) {
      this.rig.clock.advance(500);
      await this.rig.settle();
    }
    // Calls that nobody came for end too.
    await this.rig.advance(12_000);
  }

  /** Time goes by. A caller without a model hears something every few seconds, unless the carrier does not tell what is over. */
  async #pass(ms: number): Promise<void> {
    for (let passedMs = 0; passedMs < ms; passedMs += 20) {
      await this.rig.advance(20);
      const { state } = this.rig.view(this.callSid);
      const isAlone = this.models.open === undefined && (state === 'live' || state === 'connecting');
      const { closed, returnsMarks, ear } = this.#stream;
      const waits = isAlone && !closed && returnsMarks && ear.queuedMs === 0;
      this.#silentMs = waits ? this.#silentMs + 20 : 0;
      this.models.rule(this.#silentMs <= SILENCE_MAX_MS, 'a caller without a model was left in silence');
      const isAnswered = isAlone || state !== 'live' || closed || !returnsMarks || ear.queuedMs > 0;
      this.#unansweredMs = isAnswered ? undefined : this.#unansweredMs && this.#unansweredMs + 20;
      this.models.rule(
        (this.#unansweredMs ?? 0) <= UNANSWERED_MAX_MS,
        'a caller who asked was left in silence',
      );
    }
  }

  /** What the carrier, the caller and the operator do. Returns whether the step is one of theirs. */
  #takeOfLine(next: Step): boolean {
    const { rig, callSid } = this;
    const line = this.#stream.closed ? undefined : this.#stream;
    switch (next) {
      case 'callerPresses':
        line?.listener!.onDtmf('1');
        this.#unansweredMs = line && 1;
        return true;
      case 'callerHangsUp':
        if (line !== undefined) line.listener!.onStop();
        else rig.status(callSid, 'completed');
        return true;
      case 'marksAreLost':
        this.#stream.returnsMarks = false;
        return true;
      case 'streamIsLost':
        line?.lose();
        return true;
      case 'streamComesBack':
        if (line === undefined) this.#reopen(rig.after(callSid));
        return true;
      case 'streamIsReplaced':
        this.#reopen(rig.ring(callSid).answer);
        return true;
      case 'operatorHangsUp':
        rig.calls.hangUp(callSid);
        return true;
      case 'drain':
        this.drained = rig.calls.drain();
        return true;
      case 'statusInProgress':
      case 'statusCompleted':
        rig.status(callSid, STATUSES[next]);
        return true;
      default:
        return false;
    }
  }

  #takeOfModel(next: Step): void {
    const model = this.models.open;
    if (model === undefined) return;
    const { listener } = model;
    switch (next) {
      case 'modelSays':
        this.#say(model, 8);
        this.#ends.add(this.spoken.trimEnd().length);
        listener.onGenerationComplete();
        return listener.onTurnComplete(undefined);
      case 'modelBegins':
        return this.#say(model, 16);
      case 'modelSound':
        return listener.onAudio(tone(WORD_MS));
      case 'modelWords':
        return this.#sayWords(model, 1);
      case 'modelHush':
        return listener.onAudio(new Uint8Array(48 * 2_000));
      case 'goAway':
        return listener.onGoAway(GO_AWAY_MS[(this.#goAways += 1) % GO_AWAY_MS.length]!);
      case 'givesHandle':
        return this.models.giveHandle(model);
      case 'isNotResumable':
        return listener.onSessionResumptionUpdate(undefined, false);
      case 'interrupted':
        return listener.onInterrupted();
      case 'turnComplete':
        this.#ends.add(this.spoken.trimEnd().length);
        return listener.onTurnComplete(undefined);
      case 'generationComplete':
        this.#ends.add(this.spoken.trimEnd().length);
        return listener.onGenerationComplete();
      case 'callerWords':
        return listener.onInputTranscription('word ');
      case 'unknownTool':
        return listener.onToolCall([{ id: `t${(this.#tools += 1)}`, name: 'nope', args: {} }]);
      case 'lookUp':
        return model.looksUp();
      case 'endCall':
        return listener.onToolCall(END_CALL);
      case 'modelStopsReading':
        model.bufferedAmount = Number.MAX_SAFE_INTEGER;
        return;
      case 'modelReads':
        model.bufferedAmount = 0;
        return;
      case 'modelIsLost':
        return model.lose();
      default:
        return;
    }
  }

  #reopen(answer: ReturnType<CallRig['after']>): void {
    if (answer.kind !== 'stream') return;
    this.#stream = this.rig.open(this.callSid, answer);
    this.#silentMs = 0;
    this.#unansweredMs = undefined;
  }

  #say(model: FakeModel, words: number): void {
    for (let said = 0; said < words; said += 2) {
      model.listener.onAudio(tone(2 * WORD_MS));
      this.#sayWords(model, 2);
    }
  }

  /** Where generations ended in all that was spoken. */
  readonly #ends = new Set<number>();

  #sayWords(model: FakeModel, count: number): void {
    const fragment = Array.from({ length: count }, () => `w${(this.#words += 1)} `).join('');
    this.fragmentStarts.add(this.spoken.length);
    this.spoken += fragment;
    model.listener.onOutputTranscription(fragment);
  }
}

function textOf({ content }: Event): string {
  return (content?.parts ?? [])
    .map(({ text = '' }) => text)
    .join('')
    .trim();
}

const GO_AWAY_MS = [0, 3_000, 50_000];

/** The call's first connection is ready as the script says. */
function plansOf({ modelReadyMs, connections }: Script): readonly ConnectionPlan[] {
  const [first, ...others] = connections;
  return first === undefined ? [] : [{ ...first, connect: modelReadyMs }, ...others];
}

/** What of the agent's own words the caller has heard by now. */
function heardOf({ rig, callSid }: Pick<RandomCall, 'rig' | 'callSid'>): string[] {
  const recorded = new Set(Object.values(PROMPT_TEXTS));
  const { messages } = rig.view(callSid);
  return messages.filter(({ role, text }) => role === 'model' && !recorded.has(text)).map(({ text }) => text);
}

const STATUSES: Record<'statusInProgress' | 'statusCompleted', CallStatus> = {
  statusInProgress: 'in-progress',
  statusCompleted: 'completed',
};

const sumOf = (rig: CallRig, name: 'onCallActive'): number =>
  rig.seen(name).reduce((sum, [change]) => sum + (change as number), 0);

function expectAtRest({ rig, models, callSid }: RandomCall, calls: number): void {
  expect(rig.view(callSid).state).toBe('ended');
  expect(rig.calls.counts()).toEqual(NOTHING_LEFT);
  expect(rig.clock.pendingTimers).toBe(0);
  expect(models.isAtRest).toBe(true);
  expect(models.broken).toEqual([]);
  const results = models.told(/Found \d+/g);
  expect(results, 'a result is told once').toHaveLength(new Set(results).size);
  expect(rig.streams.every((stream) => stream.closed)).toBe(true);
  const reasons = rig.seen('onCallEnded').map(([, reason]) => reason);
  expect(reasons).toHaveLength(calls);
  expect(END_REASONS).toEqual(expect.arrayContaining(reasons));
  expect(reasons).not.toContain('internal_error');
  expect(rig.seen('onStreamEnded')).toHaveLength(rig.seen('onStreamStarted').length);
  expect(sumOf(rig, 'onCallActive')).toBe(0);
  for (const [latencyMs] of rig.seen('onTurnLatency')) expect(latencyMs).toBeGreaterThanOrEqual(0);
}

/** Each message of the agent is what the model said from one fragment on, up to some word; no word is kept twice or out
 * of its order, and no more of them than there was sound for. */
function expectOnlyHeard({ rig, callSid, spoken, fragmentStarts, sealed }: RandomCall): void {
  const recorded = new Set(Object.values(PROMPT_TEXTS));
  const kept = rig.view(callSid).messages.filter(({ role, text }) => role === 'model' && !recorded.has(text));
  let from = 0;
  for (const { text, interrupted } of kept) {
    const at = spoken.indexOf(`${text} `, from);
    expect(at).toBeGreaterThanOrEqual(0);
    expect(fragmentStarts).toContain(at);
    from = at + text.length + 1;
    if (!interrupted) expect(fragmentStarts.has(from) || from === spoken.length).toBe(true);
  }
  // Told as they were over, each once.
  expect(sealed.filter((text) => !recorded.has(text)).toSorted()).toEqual(
    kept.map(({ text }) => text).toSorted(),
  );
  const words = kept.reduce((sum, { text }) => sum + text.split(' ').length, 0);
  const playedMs = rig.streams.reduce((sum, stream) => sum + stream.ear.playedMs, 0);
  const silentWords = kept.length * WORDS_AHEAD_MAX;
  expect(words).toBeLessThanOrEqual(playedMs / WORD_MS + silentWords);
}

describe('four hundred calls in which anything may happen', () => {
  it('throw nothing, end once, keep only what was heard and leave nothing behind', async () => {
    const rejections: unknown[] = [];
    let again = 0;
    let resumed = 0;
    let toldLater = 0;
    const noteRejection = (cause: unknown): void => void rejections.push(cause);
    process.on('unhandledRejection', noteRejection);
    const property = fc.asyncProperty(script, async (options) => {
      const call = await RandomCall.begin(options);
      const { rig } = call;
      for (const next of options.steps) {
        await call.take(next);
        expect(sumOf(rig, 'onCallActive')).toBe(rig.calls.counts()['streams']);
      }
      await call.end(options.ending, options.callMaxMs > 0 || options.idleRepromptMs > 0);
      expectAtRest(call, 1 + (options.isCrowded ? PREWARMS_MAX : 0));
      expectOnlyHeard(call);
      again += Math.max(0, call.models.connections - 1);
      resumed += call.models.resumed;
      toldLater += call.models.told(/Your tool look, which was asked for before/g).length;
      await call.drained;
      // Node reports rejections once the promises of a turn are through.
      await new Promise((resolve) => setImmediate(resolve));
      expect(rejections).toEqual([]);
    });
    try {
      await fc.assert(property, fuzzed(400));
      expect(again).toBeGreaterThan(fuzzedAtLeast(200));
      expect(resumed).toBeGreaterThan(fuzzedAtLeast(50));
      expect(toldLater).toBeGreaterThan(fuzzedAtLeast(10));
    } finally {
      process.off('unhandledRejection', noteRejection);
    }
  }, 120_000);
});
