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
import { says } from '../support/stage.js';

const { mulaw } = createRequire(import.meta.url)('alawmulaw') as typeof import('alawmulaw');

const FRAME_MS = 20;
/** Too low to be taken for a voice, and still to be read. */
const HUSH = 0.0008;

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

describe('a connection that is left at a pause, while the caller begins to speak', () => {
  it.each([100, 400, 900])('C30: loses and doubles none of the caller’s sound over a setup of %i ms', async (setupMs) => {
    call = await LinkedCall.greeted();
    const { model: first, phone } = call;
    takesItsTime(call, setupMs);
    const frames = 250;
    // The caller draws breath for a second and speaks right into the gap.
    const level = (number: number): number => (number < 25 ? HUSH : 0.1);
    phone.say(mulaw.encode(numberedSound(frames, { level })));
    await call.pass(200);
    first.goAway('50s');
    await call.passUntil('the first to be left', () => !first.isOpen);
    const next = await call.passToConnection(2);
    await call.pass(frames * FRAME_MS);
    console.log(setupMs, call.soundAt(first), call.soundAt(next));
    console.log(JSON.stringify(framesAt(first).length), JSON.stringify(framesAt(first, next)));
    expect(framesAt(first, next).slice(0, frames)).toEqual(range(0, frames));
  });
});
void says; void desk; void HeldTool;
