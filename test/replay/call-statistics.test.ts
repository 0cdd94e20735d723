import { describe, expect, it } from 'vitest';
import { callStatistics, levelDb, soundSpans } from '../../src/replay/call-statistics.js';
import type { PhoneRecord } from '../../src/replay/phone-record.js';
import { concat, silence, tone } from './tones.js';

/** Speech-like noise that never is digital silence, as a bad line has it. */
function hiss(ms: number, amplitude: number): Uint8Array {
  let state = 12_345;
  return Uint8Array.from({ length: ms * 8 }, () => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    return state / 2 ** 31 < 0.5 ? 0xff - amplitude : 0x7f - amplitude;
  });
}

function recordOf(parts: Partial<PhoneRecord> & { said: Uint8Array; heard: Uint8Array }): PhoneRecord {
  return {
    callSid: 'CA1',
    endedBy: 'caller',
    durationMs: parts.heard.length / 8,
    streams: [{ streamSid: 'MZ1', openedAtMs: 0, closedAtMs: undefined, closeCode: undefined }],
    stretches: [],
    clears: [],
    marksPlayed: 0,
    overflowMs: 0,
    cutMs: 0,
    carrierSpeech: [],
    pacing: { framesSent: 0, framesSkipped: 0, latenessMaxMs: 0 },
    warnings: [],
    warningsMore: 0,
    ...parts,
  };
}

describe('what a call was like, from the caller’s side alone', () => {
  it('finds sound and bridges the pauses of speech, not those between turns', () => {
    const track = concat(
      silence(100),
      tone(200),
      silence(300),
      tone(100),
      silence(700),
      tone(100),
      silence(50),
    );
    expect(soundSpans(track)).toEqual([
      { startMs: 100, endMs: 700 },
      { startMs: 1_400, endMs: 1_500 },
    ]);
  });

  it('takes no click and no line noise for speech', () => {
    const track = concat(hiss(1_000, 3), tone(400), hiss(1_000, 3), tone(20), hiss(800, 3));
    expect(levelDb(hiss(100, 3))).toBeGreaterThan(-70);
    expect(soundSpans(track)).toEqual([{ startMs: 1_000, endMs: 1_400 }]);
  });

  it('hears nothing in silence', () => {
    expect(soundSpans(silence(1_000))).toEqual([]);
    expect(levelDb(silence(100))).toBe(-120);
    expect(callStatistics(recordOf({ said: silence(500), heard: silence(500) }))).toMatchObject({
      soundHeardMs: 0,
      firstSoundMs: undefined,
      turnLatenciesMs: [],
      bargeIns: [],
    });
  });

  it('measures the first sound from the opening of the stream', () => {
    const streams = [{ streamSid: 'MZ1', openedAtMs: 100, closedAtMs: undefined, closeCode: undefined }];
    const heard = concat(silence(400), tone(200));
    expect(callStatistics(recordOf({ said: silence(600), heard, streams })).firstSoundMs).toBe(300);
  });

  it('measures a turn from the end of the caller’s voice to the next sound heard', () => {
    const said = concat(silence(1_000), tone(500), silence(2_500), tone(400), silence(1_600));
    const heard = concat(tone(500), silence(1_800), tone(700), silence(2_100), tone(500), silence(400));
    expect(callStatistics(recordOf({ said, heard })).turnLatenciesMs).toEqual([800, 700]);
  });

  it('counts no turn that the caller took up again before an answer, nor one talked over', () => {
    const said = concat(tone(300), silence(900), tone(300), silence(1_500), tone(300), silence(700));
    const heard = concat(silence(2_000), tone(2_000));
    expect(callStatistics(recordOf({ said, heard })).turnLatenciesMs).toEqual([500]);
  });

  it('measures a barge-in from the caller’s first sound to silence, and knows a cut from an end', () => {
    const said = concat(silence(500), tone(600), silence(1_900), tone(600), silence(400));
    const heard = concat(tone(800), silence(1_200), tone(1_100), silence(900));
    const clears = [{ atMs: 800, droppedMs: 2_000, marksReturned: 3 }];
    expect(callStatistics(recordOf({ said, heard, clears }))).toMatchObject({
      bargeIns: [
        { atMs: 500, silenceAfterMs: 300, cleared: true },
        { atMs: 3_000, silenceAfterMs: 100, cleared: false },
      ],
      clears: 1,
      clearedMs: 2_000,
      marksReturned: 3,
    });
  });

  it('does not bridge the silence that a clear made', () => {
    const heard = concat(tone(300), silence(200), tone(300));
    expect(soundSpans(heard)).toHaveLength(1);
    expect(soundSpans(heard, [300])).toHaveLength(2);
  });

  it('counts as dry only a queue that ran empty in the middle of an utterance', () => {
    const stretch = (startMs: number, endMs: number, endedBy: 'dry' | 'cleared' | 'cut' = 'dry') => ({
      start: startMs * 8,
      end: endMs * 8,
      endedBy,
    });
    const stretches = [
      stretch(0, 500),
      stretch(530, 900), // 30 ms dry
      stretch(1_400.5, 2_000), // over half a second: another utterance
      stretch(2_400, 2_600), // the caller spoke in between: an answer
      stretch(2_612, 2_800, 'cleared'), // 12 ms dry
      stretch(2_900, 3_000), // behind a clear
      stretch(3_005, 3_100), // 5 ms dry, although the caller speaks over it
    ];
    const said = concat(silence(2_100), tone(200), silence(650), tone(400));
    expect(callStatistics(recordOf({ said, heard: silence(3_350), stretches }))).toMatchObject({
      dryMs: 47,
      dryGaps: 3,
    });
  });
});
