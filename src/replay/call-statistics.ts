/**
 * What a call was like for the caller, measured from the phone's record alone: nothing here asks the server. Sound is
 * found by its level in 10 ms blocks, so a server that sends silence is not credited with speech. All times are
 * milliseconds since the call was answered.
 */
import { createRequire } from 'node:module';
import { MULAW_BYTES_PER_MS } from '../limits.js';
import type { PhoneRecord } from './phone-record.js';
import { msOf } from './sound-track.js';

const { mulaw } = createRequire(import.meta.url)('alawmulaw') as typeof import('alawmulaw');

/** A stretch of sound, from its first loud block to the end of its last. */
export interface SoundSpan {
  readonly startMs: number;
  readonly endMs: number;
}

/** The caller began to speak while the agent was heard. */
export interface BargeIn {
  readonly atMs: number;
  /** From the caller's first sound until the agent was silent. */
  readonly silenceAfterMs: number;
  /** Whether a `clear` cut the agent off; otherwise it had just finished. */
  readonly cleared: boolean;
}

export interface CallStatistics {
  readonly durationMs: number;
  readonly soundHeardMs: number;
  readonly soundSaidMs: number;
  /** From the first stream's opening to the first sound heard; undefined if none was. */
  readonly firstSoundMs: number | undefined;
  /** From the end of the caller's voice to the next sound heard, one for each turn that was answered. */
  readonly turnLatenciesMs: readonly number[];
  readonly bargeIns: readonly BargeIn[];
  /** Time in which the carrier's queue had run empty in the middle of an utterance. */
  readonly dryMs: number;
  readonly dryGaps: number;
  readonly clears: number;
  readonly clearedMs: number;
  readonly marksReturned: number;
  readonly streams: number;
  /** Sound that never was heard because a stream ended with it queued, or because over ten minutes waited. */
  readonly lostMs: number;
  /** The phone's own lateness; numbers of a phone that was late are not the server's. */
  readonly latenessMaxMs: number;
  readonly framesSkipped: number;
}

const BLOCK_MS = 10;
const BLOCK_BYTES = BLOCK_MS * MULAW_BYTES_PER_MS;
/** Pauses up to this long belong to one utterance; people and voices pause about 200 to 400 ms between phrases. */
const PAUSE_IN_SPEECH_MS = 500;
/** A click is no sound. */
const SOUND_MIN_MS = 60;
/** A queue that was empty for longer than any pause in speech was the end of an utterance, not a gap in it. */
const DRY_GAP_MAX_MS = PAUSE_IN_SPEECH_MS;
/** Levels in dBFS. Sound lies this much over the side's own noise floor, within these bounds. */
const OVER_FLOOR_DB = 10;
const THRESHOLD_MIN_DB = -50;
const THRESHOLD_MAX_DB = -30;
const FLOOR_PERCENTILE = 0.1;
/** Digital silence, and the idle pattern beside it (one step of mu-law), say nothing about the noise of a line. */
const DIGITAL_SILENCE_DB = -70;

const LINEAR = mulaw.decode(Uint8Array.from({ length: 256 }, (_, code) => code));

/** RMS level of mu-law sound, in dB below full scale; -120 for none. */
export function levelDb(sound: Uint8Array): number {
  let sum = 0;
  for (const code of sound) sum += (LINEAR[code] ?? 0) ** 2;
  return sum === 0 ? -120 : 10 * Math.log10(sum / sound.length / 32_768 ** 2);
}

/** Finds the stretches of sound in a track: over its noise floor, pauses bridged unless a `split` lies in them. */
export function soundSpans(track: Uint8Array, splitsMs: readonly number[] = []): SoundSpan[] {
  const levels: number[] = [];
  for (let at = 0; at + BLOCK_BYTES <= track.length; at += BLOCK_BYTES) {
    levels.push(levelDb(track.subarray(at, at + BLOCK_BYTES)));
  }
  const threshold = thresholdOf(levels);
  const spans: { startMs: number; endMs: number }[] = [];
  levels.forEach((level, index) => {
    if (level < threshold) return;
    const startMs = index * BLOCK_MS;
    const endMs = startMs + BLOCK_MS;
    const last = spans.at(-1);
    const bridged =
      last !== undefined &&
      startMs - last.endMs <= PAUSE_IN_SPEECH_MS &&
      !splitsMs.some((split) => split >= last.endMs - BLOCK_MS && split <= startMs);
    if (bridged) last.endMs = endMs;
    else spans.push({ startMs, endMs });
  });
  return spans.filter((span) => span.endMs - span.startMs >= SOUND_MIN_MS);
}

function thresholdOf(levels: readonly number[]): number {
  const sounding = levels.filter((level) => level > DIGITAL_SILENCE_DB).sort((a, b) => a - b);
  const floor = sounding[Math.floor(sounding.length * FLOOR_PERCENTILE)] ?? THRESHOLD_MIN_DB;
  return Math.min(THRESHOLD_MAX_DB, Math.max(THRESHOLD_MIN_DB, floor + OVER_FLOOR_DB));
}

/** Measures a call. */
export function callStatistics(record: PhoneRecord): CallStatistics {
  const clearsMs = record.clears.map((clear) => clear.atMs);
  const heard = soundSpans(record.heard, clearsMs);
  const said = soundSpans(record.said);
  const gaps = dryGapsMs(record, said);
  const opened = record.streams[0]?.openedAtMs;
  const first = heard.find((span) => opened !== undefined && span.startMs >= opened - BLOCK_MS);
  return {
    durationMs: record.durationMs,
    soundHeardMs: totalMs(heard),
    soundSaidMs: totalMs(said),
    firstSoundMs:
      first === undefined || opened === undefined ? undefined : Math.max(0, first.startMs - opened),
    turnLatenciesMs: turnLatenciesMs(said, heard),
    bargeIns: bargeIns(said, heard, clearsMs),
    dryMs: gaps.reduce((sum, gap) => sum + gap, 0),
    dryGaps: gaps.length,
    clears: record.clears.length,
    clearedMs: record.clears.reduce((sum, clear) => sum + clear.droppedMs, 0),
    marksReturned: record.marksPlayed + record.clears.reduce((sum, clear) => sum + clear.marksReturned, 0),
    streams: record.streams.length,
    lostMs: record.cutMs + record.overflowMs,
    latenessMaxMs: record.pacing.latenessMaxMs,
    framesSkipped: record.pacing.framesSkipped,
  };
}

function totalMs(spans: readonly SoundSpan[]): number {
  return spans.reduce((sum, span) => sum + span.endMs - span.startMs, 0);
}

/** A turn counts if the agent was silent when the caller stopped and spoke before the caller went on. */
function turnLatenciesMs(said: readonly SoundSpan[], heard: readonly SoundSpan[]): number[] {
  return said.flatMap((turn, index) => {
    const isTalkedOver = heard.some((span) => span.startMs < turn.endMs && span.endMs > turn.endMs);
    const answer = heard.find((span) => span.startMs >= turn.endMs);
    const next = said[index + 1];
    if (isTalkedOver || answer === undefined) return [];
    return next !== undefined && next.startMs <= answer.startMs ? [] : [answer.startMs - turn.endMs];
  });
}

function bargeIns(
  said: readonly SoundSpan[],
  heard: readonly SoundSpan[],
  clearsMs: readonly number[],
): BargeIn[] {
  return said.flatMap((turn) => {
    const over = heard.find((span) => span.startMs < turn.startMs && span.endMs > turn.startMs);
    if (over === undefined) return [];
    const cleared = clearsMs.some(
      (at) => at > turn.startMs && Math.abs(at - over.endMs) <= PAUSE_IN_SPEECH_MS,
    );
    return [{ atMs: turn.startMs, silenceAfterMs: over.endMs - turn.startMs, cleared }];
  });
}

/** Gaps after which the same utterance went on: short, not made by `clear`, and no caller finished in them. */
function dryGapsMs(record: PhoneRecord, said: readonly SoundSpan[]): number[] {
  const { stretches } = record;
  return stretches.flatMap((stretch, index) => {
    const next = stretches[index + 1];
    if (next === undefined || stretch.endedBy !== 'dry') return [];
    const [fromMs, toMs] = [msOf(stretch.end), msOf(next.start)];
    const isAnswer = said.some((span) => span.endMs > fromMs && span.endMs <= toMs);
    return isAnswer || toMs - fromMs > DRY_GAP_MAX_MS ? [] : [toMs - fromMs];
  });
}
