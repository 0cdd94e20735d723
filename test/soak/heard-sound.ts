/**
 * What was to be heard on one side of a line, read off its sound alone. The soak's model speaks in a tone of its own and ends each
 * whole answer with a second one, so that the sound itself tells an answer that was heard out from one that broke off; everything else that
 * is audible is a recorded clip of the server's.
 */
import { MULAW_FRAME_BYTES, FRAME_MS } from '../../src/limits.js';

/** What the model's speech and the end of its answers sound like. Both are whole periods in 20 ms and in 40 ms. */
export const SPEECH_HZ = 500;
export const CLOSING_HZ = 750;

export interface Span {
  readonly fromMs: number;
  readonly toMs: number;
}

export interface AgentSpan extends Span {
  /** It ends with the closing tone. */
  readonly isWhole: boolean;
}

export interface HeardSound {
  readonly agent: readonly AgentSpan[];
  readonly clips: readonly Span[];
}

export type FrameKind = 'silent' | 'speech' | 'closing' | 'other';

const RATE_HZ = 8_000;
/** Root mean square of 16-bit samples: telephone speech has a thousand and more, a line's noise some ten. */
const AUDIBLE_RMS = 200;
/** Share of a frame's power in one tone, from which it is that tone. */
const TONE_SHARE = 0.7;
/** Shorter sounds that are no tone are the edge of one, or a click. */
const SOUND_MIN_FRAMES = 5;
/** Pauses within one sentence of a clip, and gaps of a frame or two in the model's tone. */
const CLIP_PAUSE_MAX_FRAMES = 35;
const AGENT_GAP_MAX_FRAMES = 10;
/** Pauses within what a caller says at a time. */
const CALLER_PAUSE_MAX_FRAMES = 30;

/** G.711 mu-law, by its definition: sign, exponent and mantissa, all inverted. */
const LINEAR = Int16Array.from({ length: 256 }, (_, code) => {
  const inverted = ~code & 0xff;
  const magnitude = ((((inverted & 0x0f) << 3) + 0x84) << ((inverted >> 4) & 0x07)) - 0x84;
  return (inverted & 0x80) === 0 ? magnitude : -magnitude;
});

function toneShare(samples: Int16Array, hertz: number, energy: number): number {
  const step = 2 * Math.cos((2 * Math.PI * hertz) / RATE_HZ);
  let last = 0;
  let before = 0;
  for (let at = 0; at < samples.length; at += 1) {
    const next = samples[at]! + step * last - before;
    before = last;
    last = next;
  }
  return (2 * (last * last + before * before - step * last * before)) / (samples.length * energy);
}

const scratch = new Int16Array(MULAW_FRAME_BYTES);

/** One frame of 20 ms, mu-law. */
export function frameKind(mulaw: Uint8Array): FrameKind {
  const samples = scratch.subarray(0, mulaw.length);
  let energy = 0;
  for (let at = 0; at < mulaw.length; at += 1) {
    const sample = LINEAR[mulaw[at]!]!;
    samples[at] = sample;
    energy += sample * sample;
  }
  if (energy < AUDIBLE_RMS * AUDIBLE_RMS * mulaw.length) return 'silent';
  if (toneShare(samples, SPEECH_HZ, energy) > TONE_SHARE) return 'speech';
  return toneShare(samples, CLOSING_HZ, energy) > TONE_SHARE ? 'closing' : 'other';
}

function frameKinds(mulaw: Uint8Array): FrameKind[] {
  const kinds: FrameKind[] = [];
  for (let at = 0; at + MULAW_FRAME_BYTES <= mulaw.length; at += MULAW_FRAME_BYTES)
    kinds.push(frameKind(mulaw.subarray(at, at + MULAW_FRAME_BYTES)));
  return kinds;
}

interface Run {
  from: number;
  to: number;
}

/** Stretches of frames that fit, joined over gaps of at most `gapMax` frames. */
function runs(count: number, fits: (index: number) => boolean, gapMax: number): Run[] {
  const found: Run[] = [];
  for (let at = 0; at < count; at += 1) {
    if (!fits(at)) continue;
    const last = found.at(-1);
    if (last !== undefined && at - last.to <= gapMax) last.to = at + 1;
    else found.push({ from: at, to: at + 1 });
  }
  return found;
}

const spanOf = ({ from, to }: Run): Span => ({ fromMs: from * FRAME_MS, toMs: to * FRAME_MS });

/** What the caller heard, mu-law at 8 kHz from the moment the call was answered. */
export function readHeard(mulaw: Uint8Array): HeardSound {
  const kinds = frameKinds(mulaw);
  const isTone = (at: number): boolean => kinds[at] === 'speech' || kinds[at] === 'closing';
  // A clip may sound like a tone for a moment, and the edge of a tone like no tone.
  const tones = runs(kinds.length, isTone, 0).filter(({ from, to }) => to - from >= SOUND_MIN_FRAMES);
  const agentFrames = new Uint8Array(kinds.length);
  for (const { from, to } of tones) agentFrames.fill(1, from, to);
  const others = runs(kinds.length, (at) => kinds[at] !== 'silent' && agentFrames[at] === 0, 0);
  const clipFrames = new Uint8Array(kinds.length);
  for (const { from, to } of others) {
    const isEdge = agentFrames[from - 1] === 1 || agentFrames[to] === 1;
    if (!isEdge || to - from >= SOUND_MIN_FRAMES) clipFrames.fill(1, from, to);
  }
  const agent = runs(kinds.length, (at) => agentFrames[at] === 1, AGENT_GAP_MAX_FRAMES).map((run) => ({
    ...spanOf(run),
    isWhole: kinds[run.to - 1] === 'closing',
  }));
  const clips = runs(kinds.length, (at) => clipFrames[at] === 1, CLIP_PAUSE_MAX_FRAMES)
    .filter(({ from, to }) => to - from >= SOUND_MIN_FRAMES)
    .map(spanOf);
  return { agent, clips };
}

/** When the caller spoke, of the caller's own side. */
export function readSaid(mulaw: Uint8Array): Span[] {
  const kinds = frameKinds(mulaw);
  return runs(kinds.length, (at) => kinds[at] !== 'silent', CALLER_PAUSE_MAX_FRAMES).map(spanOf);
}
