/**
 * Everything that may go wrong in a call of the soak, as a list of named faults. A soak deals them out one a call, so that
 * two hundred calls see each of them. What models do is as reported of Gemini Live: closes and goAway (ai.google.dev/gemini-api/docs/live-session),
 * mute after a barge-in (googleapis/python-genai issues 1987 and 2333), early and missing turn ends (issue 2117 there, and
 * livekit/agents pull 4979), near-silent answers (google-gemini/gemini-live-api-examples issue 40), refused resumes (its issue 1448 and
 * aicc2025/sip-to-ai pull 14).
 */

/** Where in a call a connection to the model is struck. */
export const MOMENTS = [
  'before-setup',
  'after-setup',
  'greeting',
  'mid-speech',
  'listening',
  'caller-speaks',
  'tool-runs',
  'after-tool-response',
] as const;
export type Moment = (typeof MOMENTS)[number];

/** How a connection ends: a close frame with a code, a socket that ends without one (1006), or a TCP reset. */
export const DEATHS = [1000, 'cut', 1007, 1008, 1011, 'reset'] as const;
export type Death = (typeof DEATHS)[number];

export type ModelFault =
  | {
      readonly kind: 'death';
      readonly at: Moment;
      readonly how: Death;
      /** What the next connection does: dies as well, refuses to be resumed, or never says a word. */
      readonly next?: 'dies' | 'mute' | { readonly refuses: 1007 | 1011 };
    }
  | {
      readonly kind: 'goAway';
      readonly at: Moment;
      readonly timeLeftMs: number;
      /** The connection is really taken away. */
      readonly drops: boolean;
    }
  /** From the caller's turn on nothing comes any more on this connection; `nudged`: but texts are answered. */
  | { readonly kind: 'mute'; readonly after: 'caller' | 'interrupted' | 'nudged' }
  | { readonly kind: 'phantom-interrupted' }
  | { readonly kind: 'empty-turn' }
  | { readonly kind: 'no-turn-complete' }
  | { readonly kind: 'near-silent' }
  | { readonly kind: 'slow-setup'; readonly delayMs: number };

export type CallerFault =
  | { readonly kind: 'line-drop'; readonly while: 'agent-speaks' | 'caller-speaks' | 'listening' }
  | { readonly kind: 'barge-in' }
  | {
      readonly kind: 'hang-up';
      readonly while: 'ringing' | 'greeting' | 'caller-speaks' | 'waiting' | 'agent-speaks';
    };

export type WatcherFault = 'stalled' | 'slow';

export interface Fault {
  readonly name: string;
  readonly model?: ModelFault;
  readonly caller?: CallerFault;
  readonly watcher?: WatcherFault;
  /** The turn that is struck has a tool that takes so long. */
  readonly toolMs?: number;
}

/** Long enough for whatever strikes while a tool runs to strike. */
const TOOL_MS = 2_000;
const TIMES_LEFT_MS = [50_000, 5_000, 0];

function needsTool(at: Moment): { toolMs?: number } {
  return at === 'tool-runs' || at === 'after-tool-response' ? { toolMs: TOOL_MS } : {};
}

function deaths(): Fault[] {
  return MOMENTS.flatMap((at) =>
    DEATHS.map((how) => ({
      name: `close-${how}.${at}`,
      model: { kind: 'death' as const, at, how },
      ...needsTool(at),
    })),
  );
}

function goAways(): Fault[] {
  // Before and right behind the setup nobody goes away in the field.
  return MOMENTS.slice(2).flatMap((at) =>
    TIMES_LEFT_MS.flatMap((timeLeftMs) =>
      [true, false].map((drops) => ({
        name: `goaway-${timeLeftMs / 1_000}s-${drops ? 'drop' : 'stay'}.${at}`,
        model: { kind: 'goAway' as const, at, timeLeftMs, drops },
        ...needsTool(at),
      })),
    ),
  );
}

const AFTER_DEATH: readonly Fault[] = [
  ...(['greeting', 'mid-speech', 'caller-speaks', 'tool-runs'] as const).map((at) => ({
    name: `two-deaths.${at}`,
    model: { kind: 'death' as const, at, how: 1011 as const, next: 'dies' as const },
    ...needsTool(at),
  })),
  ...([1007, 1011] as const).flatMap((refuses) =>
    (['mid-speech', 'listening'] as const).map((at) => ({
      name: `refused-resume-${refuses}.${at}`,
      model: { kind: 'death' as const, at, how: 'cut' as const, next: { refuses } },
    })),
  ),
  ...(['mid-speech', 'listening'] as const).map((at) => ({
    name: `mute-after-resume.${at}`,
    model: { kind: 'death' as const, at, how: 1011 as const, next: 'mute' as const },
  })),
];

const ODDITIES: readonly Fault[] = [
  { name: 'mute.caller', model: { kind: 'mute', after: 'caller' } },
  { name: 'mute.nudged', model: { kind: 'mute', after: 'nudged' } },
  {
    name: 'mute.interrupted',
    model: { kind: 'mute', after: 'interrupted' },
    caller: { kind: 'barge-in' },
  },
  { name: 'phantom-interrupted', model: { kind: 'phantom-interrupted' } },
  { name: 'empty-turn', model: { kind: 'empty-turn' } },
  { name: 'no-turn-complete', model: { kind: 'no-turn-complete' } },
  { name: 'near-silent', model: { kind: 'near-silent' } },
  ...[1_000, 2_500, 4_000].map((delayMs) => ({
    name: `slow-setup-${delayMs}`,
    model: { kind: 'slow-setup' as const, delayMs },
  })),
];

const CALLERS: readonly Fault[] = [
  ...(['agent-speaks', 'caller-speaks', 'listening'] as const).map((state) => ({
    name: `line-drop.${state}`,
    caller: { kind: 'line-drop' as const, while: state },
  })),
  { name: 'barge-in', caller: { kind: 'barge-in' } },
  ...(['ringing', 'greeting', 'caller-speaks', 'waiting', 'agent-speaks'] as const).map((state) => ({
    name: `hang-up.${state}`,
    caller: { kind: 'hang-up' as const, while: state },
  })),
];

const SURROUNDINGS: readonly Fault[] = [
  { name: 'none' },
  ...[1_000, 3_000, 6_000].map((toolMs) => ({ name: `slow-tool-${toolMs}`, toolMs })),
  { name: 'watcher-stalled', watcher: 'stalled' },
  { name: 'watcher-slow', watcher: 'slow' },
];

export const FAULTS: readonly Fault[] = [
  ...deaths(),
  ...goAways(),
  ...AFTER_DEATH,
  ...ODDITIES,
  ...CALLERS,
  ...SURROUNDINGS,
];

/** Faults whose name has one of the words in `only`, which are divided by commas; all without it. */
export function chosenFaults(only: string): readonly Fault[] {
  const words = only
    .split(',')
    .map((word) => word.trim())
    .filter((word) => word !== '');
  const chosen = FAULTS.filter(({ name }) => words.length === 0 || words.some((word) => name.includes(word)));
  if (chosen.length === 0) throw new Error(`no fault is named ${only}`);
  return chosen;
}
