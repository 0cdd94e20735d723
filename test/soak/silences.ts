/**
 * The law that nobody sits in silence without an explanation, measured at the caller's ear. A caller is owed sound
 *
 * - from the opening of the call's first stream, until somebody has spoken,
 * - from the end of everything that the caller says, and
 * - from where the agent broke off in the middle of an answer.
 *
 * The debt is paid by an answer that is heard to its end (it is the caller's turn then, however long that is), not by a recorded clip:
 * that explains what follows on it for five seconds. While anybody is heard, the caller included, there is no silence. A silence is
 * a fault where it lasts for over three seconds while something is owed, and goes on for more than five seconds behind
 * the last clip. The end of the call ends it. What the measuring machine itself was late by within a silence is no part of it.
 */
import type { AgentSpan, Span } from './heard-sound.js';

export const SILENCE_MAX_MS = 3_000;
export const EXPLAINED_FOR_MS = 5_000;
/** An answer that ends so shortly behind the caller's own words was none to them. */
const TOO_SOON_MS = 300;

export type Owed = 'the stream had opened' | 'the caller had spoken' | 'the agent had broken off';

export interface LineSounds {
  /** When the first stream of the call opened. */
  readonly openedAtMs: number;
  readonly endedAtMs: number;
  readonly agent: readonly AgentSpan[];
  readonly clips: readonly Span[];
  readonly caller: readonly Span[];
}

export interface Silence extends Span {
  readonly owed: Owed;
}

type Sound = Span &
  ({ readonly by: 'caller' | 'clip' } | { readonly by: 'agent'; readonly isWhole: boolean });

function soundsOf({ agent, clips, caller }: LineSounds): Sound[] {
  return [
    ...agent.map((span) => ({ ...span, by: 'agent' as const })),
    ...clips.map((span) => ({ ...span, by: 'clip' as const })),
    ...caller.map((span) => ({ ...span, by: 'caller' as const })),
  ];
}

/** Stretches in which nobody is heard, from the opening to the end. */
function gapsBetween(sounds: readonly Sound[], { openedAtMs, endedAtMs }: LineSounds): Span[] {
  const gaps: Span[] = [];
  let quietFromMs = openedAtMs;
  for (const { fromMs, toMs } of sounds.toSorted((a, b) => a.fromMs - b.fromMs)) {
    if (fromMs > quietFromMs) gaps.push({ fromMs: quietFromMs, toMs: Math.min(fromMs, endedAtMs) });
    quietFromMs = Math.max(quietFromMs, toMs);
  }
  gaps.push({ fromMs: quietFromMs, toMs: endedAtMs });
  return gaps;
}

/** What the caller is owed at a moment, from all that had ended by then. */
function owedAt(atMs: number, ended: readonly Sound[]): Owed | undefined {
  let owed: Owed | undefined = 'the stream had opened';
  let spokeUntilMs = -Infinity;
  for (const sound of ended) {
    if (sound.toMs > atMs) break;
    if (sound.by === 'caller') {
      owed = 'the caller had spoken';
      spokeUntilMs = sound.toMs;
    } else if (sound.by === 'agent') {
      if (!sound.isWhole) owed = 'the agent had broken off';
      else if (sound.toMs - spokeUntilMs > TOO_SOON_MS) owed = undefined;
    }
  }
  return owed;
}

/** Every silence of the call that nothing explains, in order; `lateWithin` tells for how long the one who measures stood still. */
export function unexplainedSilences(
  line: LineSounds,
  lateWithin: (fromMs: number, toMs: number) => number = () => 0,
): Silence[] {
  const sounds = soundsOf(line);
  const ended = sounds.toSorted((a, b) => a.toMs - b.toMs);
  return gapsBetween(sounds, line).flatMap(({ fromMs, toMs }) => {
    const owed = owedAt(fromMs, ended);
    if (owed === undefined) return [];
    const clipEndMs =
      ended.findLast(({ by, toMs: end }) => by === 'clip' && end <= fromMs)?.toMs ?? -Infinity;
    const patienceMs = Math.max(fromMs + SILENCE_MAX_MS, clipEndMs + EXPLAINED_FOR_MS);
    return toMs - lateWithin(fromMs, toMs) > patienceMs ? [{ fromMs, toMs, owed }] : [];
  });
}
