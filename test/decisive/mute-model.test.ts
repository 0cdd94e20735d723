/**
 * Models that fall silent, die and come back broken, one fault a call: nobody sits in unexplained silence, and in the end the call is
 * alive or says that it is not. Rows J8, C17, C27, C31. Server, model and phone are real, in stepped time.
 */
import { afterEach, describe, expect, it } from 'vitest';
import { RehearsedCall } from '../support/rehearsed-call.js';
import { unexplainedSilences } from '../soak/silences.js';

let call: RehearsedCall | undefined;
afterEach(async () => {
  await call?.close();
  call = undefined;
});

const FAULTS = [
  'empty-turn', 'near-silent', 'mute-mid-speech', 'turn-complete-missing', 'generation-complete-missing', 'mute-after-resume',
  'poisoned-resume', 'outage', 'go-away-in-a-tool', 'mute-in-a-tool', 'tool-result-refused', 'cut-short', 'resume-refused-for-good', 'go-away-then-mute',
  'go-away-then-drop', 'greeting-ignored', 'no-handles', 'rejected-in-a-row', 'slow-reconnect', 'short-life', 'phantom-interrupted-then-mute',
  'silent-after-barge-in', 'mute-after-barge-in', 'cut-in-during-a-tool',
];
const BARGE = new Set(['silent-after-barge-in', 'mute-after-barge-in', 'cut-in-during-a-tool']);

describe('a fault of the model', () => {
  it.each(FAULTS)('%s', async (fault) => {
    call = await RehearsedCall.open(fault);
    await call.passToAnswer(0);
    let askedMs = call.phone.elapsedMs;
    call.ask();
    if (BARGE.has(fault)) {
      await call.passToSpeech(askedMs + 1_000, 800);
      askedMs = call.phone.elapsedMs;
      call.ask();
    }
    await call.passToAnswer(askedMs + 500);
    if (!call.isOver) {
      askedMs = call.phone.elapsedMs;
      call.ask();
      await call.passToAnswer(askedMs + 500);
    }
    const told = await call.reconnects();
    const { sounds } = call;
    const state = call.phone.state;
    console.log(fault, told, state, JSON.stringify(sounds), JSON.stringify(unexplainedSilences(sounds)));
    await call.hangUp();
    expect(unexplainedSilences(sounds)).toEqual([]);
  }, 60_000);
});
