/**
 * A connection that is about to end is left for another, measured on the sound of both sides: rows C28, C29, C30, J6, X4. Time is
 * stepped; the sockets are real.
 */
import { createRequire } from 'node:module';
import { afterEach, describe, expect, it } from 'vitest';
import { LinkedCall } from '../support/linked-call.js';
import { numberedSound, numbersIn } from '../support/numbered-sound.js';
import { desk, HeldTool } from '../support/probe-agents.js';
import type { ScriptedConnection } from '../support/scripted-gemini.js';

const { mulaw } = createRequire(import.meta.url)('alawmulaw') as typeof import('alawmulaw');

const FRAME_MS = 20;
/** Too low to be taken for a voice, and still to be read. */
const HUSH = 0.0005;
const VOICE = 0.1;
/** What a move may cost beyond what the model's server takes for a setup. */
const MOVE_MAX_MS = 300;
const WORD_MS = 100;

let call: LinkedCall | undefined;
afterEach(async () => {
  await call?.close();
  call = undefined;
});

/** From now on the model's server takes so long for a setup. */
function takesItsTime({ stage, clock }: LinkedCall, setupMs: number): void {
  stage.gemini.script.setup = (connection) => void clock.setTimer(setupMs, () => connection.setupComplete());
}

function pcmOf(...models: readonly ScriptedConnection[]): Int16Array {
  const bytes = Buffer.concat(models.map(({ receivedAudio }) => receivedAudio));
  return new Int16Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
}

/** The numbers of the caller's frames as connections got them, from the first that can be heard. */
function framesAt(...models: readonly ScriptedConnection[]): (number | undefined)[] {
  const pcm = pcmOf(...models);
  const from = pcm.findIndex((sample) => Math.abs(sample) > 8);
  return from < 0 ? [] : numbersIn(pcm.subarray(Math.max(0, from - 8)), 16_000);
}

const range = (from: number, to: number): number[] => Array.from({ length: to - from }, (_, at) => from + at);

/** When the last connection was left, how much of the caller's sound had come until then, and how long the next one kept it waiting. */
async function moves(begun: LinkedCall): Promise<{ next: ScriptedConnection; gapMs: number }> {
  const former = begun.model;
  await begun.passUntil('the connection to be left', () => !former.isOpen);
  const next = await begun.passToConnection(begun.models.length + (begun.model === former ? 1 : 0));
  await begun.pass(100);
  return { next, gapMs: begun.soundAt(next).first - begun.soundAt(former).last - FRAME_MS };
}

/** The caller breathes for so many frames and speaks from then on. */
function callerSays(begun: LinkedCall, hushFrames: number, frames: number): void {
  const level = (number: number): number => (number < hushFrames ? HUSH : VOICE);
  begun.phone.say(mulaw.encode(numberedSound(frames, { level })));
}

describe('the caller’s sound, when a connection is left', () => {
  it.each([100, 400, 900])(
    'C30: is whole and single over a setup of %i ms, into which it speaks',
    async (setupMs) => {
      call = await LinkedCall.greeted();
      const { model: first } = call;
      takesItsTime(call, setupMs);
      callerSays(call, 20, 100);
      await call.pass(200);
      first.goAway('50s');
      const { next, gapMs } = await moves(call);
      await call.pass(2_400);
      // The first word was said when nobody took it.
      const before = framesAt(first).length;
      expect(before).toBeLessThanOrEqual(20);
      expect((20 - before) * FRAME_MS).toBeLessThan(setupMs);
      expect(framesAt(first, next).slice(0, 100)).toEqual(range(0, 100));
      expect(gapMs - setupMs).toBeLessThan(MOVE_MAX_MS);
      expect(await call.reconnects()).toEqual(['go_away resumed 1']);
      expect(call.handles).toEqual([undefined, 'h1']);
      expect(next.receivedTextInputs).toEqual([]);
      await call.hangUp();
    },
  );

  it('C30: is whole also where the caller never pauses and the deadline comes', async () => {
    call = await LinkedCall.greeted();
    const { model: first } = call;
    takesItsTime(call, 400);
    callerSays(call, 0, 250);
    await call.pass(300);
    first.goAway('4s');
    const { next, gapMs } = await moves(call);
    await call.pass(4_000);
    const before = framesAt(first).length;
    // Two seconds before the end, as late as may be.
    expect(before * FRAME_MS).toBeGreaterThan(2_000);
    expect(before * FRAME_MS).toBeLessThan(2_600);
    expect(framesAt(first, next).slice(0, 250)).toEqual(range(0, 250));
    expect(gapMs - 400).toBeLessThan(MOVE_MAX_MS);
    await call.hangUp();
  });

  it('is the newest second where the model takes longer', async () => {
    call = await LinkedCall.greeted();
    const { model: first } = call;
    takesItsTime(call, 1_800);
    callerSays(call, 20, 200);
    await call.pass(200);
    first.goAway('50s');
    const { next } = await moves(call);
    await call.pass(4_000);
    const before = framesAt(first);
    expect(before).toEqual(range(0, before.length));
    const after = framesAt(next).slice(0, 120) as number[];
    const lost = after[0]! - before.length;
    expect(lost * FRAME_MS).toBeGreaterThanOrEqual(700);
    expect(lost * FRAME_MS).toBeLessThan(800 + MOVE_MAX_MS);
    expect(after).toEqual(range(after[0]!, after[0]! + 120));
    await call.hangUp();
  });
});

/** The agent says words number `from` to `to`, a tenth of a second each, all at once. */
function agentSays(model: ScriptedConnection, from: number, to: number, { open = false } = {}): void {
  for (let number = from; number < to; number += 1) {
    model.sendAudio(agentWord(number));
    model.sendOutputTranscription(`w${number} `);
  }
  if (open) return;
  model.generationComplete();
  model.turnComplete();
}

function agentWord(number: number): Uint8Array {
  const samples = numberedSound(number + 1, { pieceMs: WORD_MS, rate: 24_000 });
  return new Uint8Array(samples.slice(-WORD_MS * 24).buffer);
}

/** The words that the caller heard, in order: a number that stands for most of a word's time. */
function wordsHeard({ phone }: LinkedCall): number[] {
  const heard = mulaw.decode(phone.record().heard);
  const words: { number: number; windows: number }[] = [];
  for (const number of numbersIn(heard, 8_000)) {
    const last = words.at(-1);
    if (number === undefined) continue;
    if (last?.number === number) last.windows += 1;
    else words.push({ number, windows: 1 });
  }
  return words.filter(({ windows }) => windows >= 3).map(({ number }) => number);
}

/** A call with numbered words only: greeted by the first ten. */
async function greetedInNumbers(agent = desk()): Promise<LinkedCall> {
  const begun = await LinkedCall.open(agent);
  agentSays(begun.model, 0, 10);
  await begun.pass(1_600);
  begun.model.sendResumptionHandle('h1');
  await begun.pass(100);
  return begun;
}

const greetings = ({ told }: LinkedCall): number =>
  told.flat().filter((text) => text.includes('word for word')).length;

describe('the agent’s words, when a connection is left', () => {
  it('are all heard before and after a pause, and nobody is greeted twice', async () => {
    call = await greetedInNumbers();
    takesItsTime(call, 400);
    call.model.sendInputTranscription('Go on.');
    agentSays(call.model, 10, 30);
    call.model.goAway('50s');
    await call.pass(2_400);
    // Not while it speaks, nor before its handle knows what was said.
    expect(call.models).toHaveLength(1);
    call.model.sendResumptionHandle('h2');
    const { next } = await moves(call);
    expect(call.handles).toEqual([undefined, 'h2']);
    await call.pass(3_000);
    expect(next.receivedTextInputs).toEqual([]);
    agentSays(next, 30, 50);
    await call.pass(2_600);
    expect(wordsHeard(call)).toEqual(range(0, 50));
    expect(greetings(call)).toBe(1);
    expect(await call.reconnects()).toEqual(['go_away resumed 1']);
    await call.hangUp();
  });

  it('are all heard where the deadline comes while it speaks and has said all it means to', async () => {
    call = await greetedInNumbers();
    call.model.sendInputTranscription('Go on.');
    agentSays(call.model, 10, 50);
    await call.pass(300);
    call.model.goAway('3s');
    const { next } = await moves(call);
    expect(wordsHeard(call).length).toBeLessThan(30);
    await call.pass(4_500);
    expect(wordsHeard(call)).toEqual(range(0, 50));
    expect(next.receivedTextInputs).toEqual([]);
    await call.hangUp();
  });

  it('are gone on with where the deadline comes in the middle of what is being made', async () => {
    call = await greetedInNumbers();
    const { model: first } = call;
    first.sendInputTranscription('Go on.');
    agentSays(first, 10, 14, { open: true });
    first.goAway('3s');
    for (let number = 14; first.isOpen; number += 1) {
      agentSays(first, number, number + 1, { open: true });
      await call.pass(WORD_MS);
    }
    const next = await call.passToConnection(2);
    await call.passUntil('the question', () => next.receivedTextInputs.length > 0);
    const heard = wordsHeard(call);
    expect(heard).toEqual(range(0, heard.length));
    expect(heard.length).toBeGreaterThan(20);
    const [asked] = next.receivedTextInputs;
    const toldLast = Number(/w(\d+)"/.exec(asked!)?.[1]);
    // The word that may have gone on is not counted.
    expect(heard.length - 1 - toldLast).toBeLessThanOrEqual(1);
    agentSays(next, toldLast + 1, toldLast + 21);
    await call.pass(3_000);
    expect(wordsHeard(call)).toEqual([...heard, ...range(toldLast + 1, toldLast + 21)]);
    expect(greetings(call)).toBe(1);
    await call.hangUp();
  });
});

describe('a connection that is about to end while a function runs', () => {
  async function running() {
    const slow = new HeldTool('slow');
    const begun = await greetedInNumbers(desk({ tools: [slow.tool] }));
    begun.model.sendInputTranscription('Do it.');
    begun.model.toolCall({ id: 'c1', name: 'slow' });
    await begun.passUntil('the function', () => slow.isWaiting);
    return { begun, slow };
  }

  it('C29: is left behind the function and what was said of it, where there is time', async () => {
    const { begun, slow } = await running();
    call = begun;
    call.model.goAway('50s');
    await call.pass(4_000);
    expect(call.models).toHaveLength(1);
    slow.letGo();
    await call.pass(400);
    expect(call.models).toHaveLength(1);
    agentSays(call.model, 10, 20);
    call.model.sendResumptionHandle('h2');
    await call.passToConnection(2);
    await call.pass(3_000);
    expect(call.handles).toEqual([undefined, 'h2']);
    expect(call.told[1]).toEqual([]);
    await call.hangUp();
  });

  it('C29: is left at its deadline, and the result is told once to the next one', async () => {
    const { begun, slow } = await running();
    call = begun;
    call.model.goAway('3s');
    const { next } = await moves(call);
    await call.pass(1_000);
    expect(slow.aborted).toEqual([]);
    slow.letGo(() => ({ message: 'The number is 4711.' }));
    await call.passUntil('the result', () => next.receivedTextInputs.join().includes('4711'));
    agentSays(next, 10, 20);
    await call.pass(6_000);
    expect(next.receivedTextInputs.join('\n').match(/4711/g)).toHaveLength(1);
    expect(slow.runs).toBe(1);
    expect(await call.reconnects()).toEqual(['go_away resumed 1']);
    await call.hangUp();
  });
});

describe('a model that says goAway and nothing more', () => {
  it('is left at its deadline where its handle is behind, and nobody is disturbed', async () => {
    call = await greetedInNumbers();
    call.model.sendInputTranscription('Go on.');
    agentSays(call.model, 10, 20);
    await call.pass(1_500);
    call.model.goAway('5s');
    await call.pass(2_900);
    expect(call.models).toHaveLength(1);
    const { next } = await moves(call);
    expect(call.handles).toEqual([undefined, 'h1']);
    // What the handle does not know.
    expect(call.instruction(next)).toContain('w10 w11');
    await call.pass(5_000);
    expect(next.receivedTextInputs).toEqual([]);
    await call.hangUp();
  });

  it('owes the caller an answer, which the next one is asked for', async () => {
    call = await greetedInNumbers();
    const { phone } = call;
    const first = call.model;
    first.goAway('5s');
    callerSays(call, 0, 60);
    await call.pass(1_200);
    first.sendInputTranscription('Are you there?');
    const { next } = await moves(call);
    await call.passUntil('the question', () => next.receivedTextInputs.length > 0);
    agentSays(next, 10, 20);
    await call.pass(2_000);
    expect(wordsHeard(call)).toEqual(range(0, 20));
    expect(phone.state).toBe('talking');
    await call.hangUp();
  });
});
