/**
 * Models that fall silent, die and come back broken, one fault a call: nobody sits in unexplained silence, and in the end the call is
 * alive or says that it is not. Rows J8, C17, C27, C31. Server, model and phone are real, in stepped time.
 */
import { afterEach, describe, expect, it } from 'vitest';
import { ANSWER_HOLD_AGAIN_MS } from '../../src/link-limits.js';
import { lineSoundsOf } from '../soak/call-checks.js';
import { type LineSounds, type Silence, unexplainedSilences } from '../soak/silences.js';
import { LinkedCall } from '../support/linked-call.js';
import { QUESTION, RehearsedCall } from '../support/rehearsed-call.js';

let call: RehearsedCall | undefined;
let linked: LinkedCall | undefined;
afterEach(async () => {
  await call?.close();
  await linked?.close();
  call = undefined;
  linked = undefined;
});

/** The clip explains what follows on it until it comes again; it is looked at now and then. */
const EXPLAINED_MAX_MS = ANSWER_HOLD_AGAIN_MS + 300;

/** Silences that nothing explains, but for those between one clip and the next. */
function silencesIn(sounds: LineSounds): Silence[] {
  const isAfterClip = ({ fromMs }: Silence): boolean => sounds.clips.some(({ toMs }) => toMs === fromMs);
  return unexplainedSilences(sounds).filter(
    (silence) => !isAfterClip(silence) || silence.toMs - silence.fromMs > EXPLAINED_MAX_MS,
  );
}

interface Fault {
  readonly name: string;
  /** What the metric counts. */
  readonly reconnects: readonly string[];
  /** The caller speaks in the middle of the first answer, too. */
  readonly cutsIn?: boolean;
  /** The answer to wait for comes so long behind the question at the soonest: there is a function before it. */
  readonly functionMs?: number;
}

const FAULTS: readonly Fault[] = [
  { name: 'empty-turn', reconnects: [] },
  { name: 'near-silent', reconnects: [] },
  { name: 'mute-mid-speech', reconnects: ['stall fresh 1'] },
  { name: 'turn-complete-missing', reconnects: [] },
  { name: 'generation-complete-missing', reconnects: [] },
  { name: 'mute-after-resume', reconnects: ['lost resumed 1', 'stall fresh 1'] },
  { name: 'poisoned-resume', reconnects: ['lost resumed 2', 'lost fresh 1'] },
  { name: 'outage', reconnects: ['lost fresh 1'] },
  { name: 'resume-refused-for-good', reconnects: ['lost fresh 1'] },
  { name: 'no-handles', reconnects: ['lost fresh 1'] },
  { name: 'slow-reconnect', reconnects: ['lost resumed 1'] },
  { name: 'short-life', reconnects: ['go_away resumed 1'] },
  { name: 'go-away-then-mute', reconnects: ['go_away resumed 1'] },
  { name: 'go-away-then-drop', reconnects: ['go_away resumed 1'] },
  { name: 'go-away-in-a-tool', reconnects: ['go_away resumed 1'], functionMs: 4_000 },
  { name: 'mute-in-a-tool', reconnects: ['stall fresh 1'], functionMs: 4_000 },
  { name: 'tool-result-refused', reconnects: ['lost resumed 1'], functionMs: 4_000 },
  { name: 'greeting-ignored', reconnects: [] },
  { name: 'rejected-in-a-row', reconnects: [] },
  { name: 'phantom-interrupted-then-mute', reconnects: ['stall fresh 1'] },
  { name: 'silent-after-barge-in', reconnects: [], cutsIn: true },
  { name: 'mute-after-barge-in', reconnects: ['stall fresh 1'], cutsIn: true },
  { name: 'cut-in-during-a-tool', reconnects: [], functionMs: 4_000, cutsIn: true },
];

/** The caller asks, and hears an answer to the end; or the call is over. */
async function isAnswered(begun: RehearsedCall, { cutsIn = false, functionMs = 0 }: Partial<Fault> = {}) {
  let askedMs = begun.phone.elapsedMs;
  begun.ask();
  if (cutsIn) {
    await begun.passToSpeech(askedMs + 1_000, 800);
    askedMs = begun.phone.elapsedMs;
    begun.ask();
  }
  await begun.passToAnswer(askedMs + 500 + functionMs);
}

describe('a fault of the model', () => {
  it.each(FAULTS)('J8 C27: $name leaves nobody in silence, and the call goes on', async (fault) => {
    call = await RehearsedCall.open(fault.name);
    await call.passToAnswer(0);
    await isAnswered(call, fault);
    await isAnswered(call);
    expect(call.phone.state).toBe('talking');
    expect(await call.reconnects()).toEqual(fault.reconnects);
    const { sounds } = call;
    await call.hangUp();
    expect(silencesIn(sounds)).toEqual([]);
  });

  it('J8: a caller who asks again while a function runs does not wait anew when it ends', async () => {
    call = await RehearsedCall.open('mute-in-a-tool');
    await call.passToAnswer(0);
    await isAnswered(call);
    await isAnswered(call);
    const { sounds } = call;
    await call.hangUp();
    expect(silencesIn(sounds)).toEqual([]);
  });
});

describe('a short word that is understood late', () => {
  it('J8: is waited for from when it was said', async () => {
    linked = await LinkedCall.greeted();
    const saidMs = linked.phone.elapsedMs;
    linked.phone.say(QUESTION.subarray(4_000, 5_600));
    await linked.pass(1_100);
    linked.model.sendInputTranscription('Yes.');
    await linked.pass(3_000);
    const clip = lineSoundsOf(linked.phone.record())!.clips.find(({ fromMs }) => fromMs > saidMs);
    expect(clip!.fromMs - (saidMs + 200)).toBeLessThan(3_000);
    await linked.hangUp();
  });
});

const MUTE = { misbehave: [{ do: 'mute', at: 'midSpeech' }] };

describe('a model that does not come back', () => {
  it.each([
    [
      'that is away for good',
      'outage',
      { setup: { misbehave: [{ do: 'close', code: 1011 }], from: 2, connections: 100 } },
      ['lost failed 1'],
    ],
    [
      'whose every connection falls silent',
      'mute-mid-speech',
      {
        turns: [{ say: 'This is a long answer of many words.', ...MUTE }],
        otherText: { say: 'Sorry for all of it.', ...MUTE },
      },
      ['stall fresh 2'],
    ],
  ] as const)('%s: the caller hears that, and the call ends', async (_name, fault, changes, reconnects) => {
    call = await RehearsedCall.open(fault, changes);
    await call.passToAnswer(0);
    call.ask();
    await call.passUntil('the end', () => false);
    expect(call.phone.record().endedBy).toBe('server');
    const { clips, endedAtMs } = call.sounds;
    // The apology is the longest of them.
    expect(clips.at(-1)!.toMs - clips.at(-1)!.fromMs).toBeGreaterThan(3_000);
    expect(endedAtMs - clips.at(-1)!.toMs).toBeLessThan(1_500);
    expect(silencesIn(call.sounds)).toEqual([]);
    expect(await call.reconnects()).toEqual(reconnects);
    expect((await call.stage.json(`/calls/${call.phone.callSid}`)).body['endReason']).toBe('model_lost');
    await call.hangUp();
  });
});
