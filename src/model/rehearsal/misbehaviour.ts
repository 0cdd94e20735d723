/**
 * What a live model does wrong at times, to be asked for: by a dialogue's script, turn by turn, or drawn from a seed.
 * Each kind was seen on the real service; `docs/rehearsal.md` tells an author what each does. Here they are data; the
 * turn and the connection carry them out.
 */
import { z } from 'zod';
import { SeededRandom } from './seeded-random.js';

/** Where in a turn the connection is made to fail. */
const POINTS = [
  'start',
  'midSpeech',
  'afterSpeech',
  'afterToolCall',
  'beforeTurnComplete',
  'afterTurnComplete',
] as const;
/** `interrupted` stands behind the end of a turn that was cut off; chance does not draw it, for most turns have none. */
const ALL_POINTS = [...POINTS, 'interrupted'] as const;
export type TurnPoint = (typeof ALL_POINTS)[number];

const CLOSE_CODES = [1000, 1006, 1007, 1008, 1011] as const;
export type RehearsalCloseCode = (typeof CLOSE_CODES)[number];

/** The reasons that a client meets with each code; 1006 is no frame at all, so it has none. */
export const CLOSE_REASONS: Readonly<Record<RehearsalCloseCode, string>> = {
  1000: '',
  1006: '',
  1007: 'Request contains an invalid argument.',
  1008: 'The operation was aborted.',
  1011: 'Internal error encountered.',
};
export const LIFE_OVER = 'Deadline expired before operation could complete.';

/** Reasons of a turn that ends for another cause than its end: those of `TurnCompleteReason` that are not about pictures. */
const TURN_COMPLETE_REASONS = [
  'RESPONSE_REJECTED',
  'MALFORMED_FUNCTION_CALL',
  'NEED_MORE_INPUT',
  'PROHIBITED_INPUT_CONTENT',
  'INPUT_TEXT_CONTAIN_PROMINENT_PERSON_PROHIBITED',
  'INPUT_TEXT_NCII_PROHIBITED',
  'INPUT_IP_PROHIBITED',
  'INPUT_OTHER',
  'BLOCKLIST',
  'GENERATED_CONTENT_SAFETY',
  'GENERATED_CONTENT_PROHIBITED',
  'GENERATED_CONTENT_BLOCKLIST',
  'GENERATED_AUDIO_SAFETY',
  'GENERATED_OTHER',
  'MAX_REGENERATION_REACHED',
] as const;

export const turnPointSchema = z.enum(ALL_POINTS);
const at = turnPointSchema;
const seconds = z.number().min(0).max(3_600);
const closeCode = z.literal(CLOSE_CODES);
const closing = { code: closeCode, reason: z.string().max(500).optional() };
const goingAway = {
  timeLeftSeconds: seconds.default(50),
  /** Without the drop the connection lives on: the message was a false alarm, or the deadline was not kept. */
  thenDrop: z.boolean().default(true),
  code: closeCode.default(1011),
};
const muting = { forSeconds: seconds.optional() };

/** Only the first time in a conversation, however many connections that has. */
const often = { once: z.boolean().optional() };

const misbehaviourSchema = z.discriminatedUnion('do', [
  z.strictObject({ ...often, do: z.literal('goAway'), at: at.default('start'), ...goingAway }),
  z.strictObject({ ...often, do: z.literal('close'), at: at.default('midSpeech'), ...closing }),
  z.strictObject({ ...often, do: z.literal('mute'), at: at.default('start'), ...muting }),
  z.strictObject({ ...often, do: z.literal('phantomInterrupted'), at: at.default('start') }),
  z.strictObject({
    ...often,
    do: z.literal('leakText'),
    at: at.default('start'),
    text: z.string().min(1).max(2_000),
  }),
  z.strictObject({ ...often, do: z.literal('silent') }),
  z.strictObject({ ...often, do: z.literal('nearSilence') }),
  z.strictObject({
    ...often,
    do: z.literal('noTurnComplete'),
    /** False: that the speech has been generated is not said either. */
    generationComplete: z.boolean().default(true),
  }),
  z.strictObject({ ...often, do: z.literal('lateTurnComplete'), seconds: seconds.default(20) }),
  z.strictObject({ ...often, do: z.literal('emptyTurn'), reason: z.enum(TURN_COMPLETE_REASONS).optional() }),
  z.strictObject({ ...often, do: z.literal('waitForInput') }),
  z.strictObject({ ...often, do: z.literal('cutShort'), reason: z.enum(TURN_COMPLETE_REASONS).optional() }),
  z.strictObject({ ...often, do: z.literal('callMidSpeech') }),
  z.strictObject({
    ...often,
    do: z.literal('stutter'),
    ms: z.number().int().min(1).max(60_000).default(800),
  }),
  z.strictObject({ ...often, do: z.literal('repeatSpeech') }),
  z.strictObject({ ...often, do: z.literal('repeatCall'), times: z.number().int().min(1).max(5).default(1) }),
]);
export type Misbehaviour = z.infer<typeof misbehaviourSchema>;
export type MisbehaviourKind = Misbehaviour['do'];
/** Those that happen at a point of a turn. */
export type PointMisbehaviour = Extract<Misbehaviour, { at: TurnPoint }>;

export const MISBEHAVIOURS: readonly MisbehaviourKind[] = misbehaviourSchema.options.map(
  ({ shape }) => shape.do.value,
);

/** At most this many at once: more would hide one another. */
export const misbehaveSchema = z.array(misbehaviourSchema).min(1).max(8);

/** So long behind `setupComplete`; without it before. */
const atSetup = { afterSeconds: seconds.optional() };

/** What goes wrong with a connection, whatever is being said. */
const setupMisbehaviourSchema = z.discriminatedUnion('do', [
  z.strictObject({ do: z.literal('goAway'), ...atSetup, ...goingAway }),
  z.strictObject({ do: z.literal('close'), ...atSetup, ...closing }),
  z.strictObject({ do: z.literal('mute'), ...atSetup, ...muting }),
]);
export type SetupMisbehaviour = z.infer<typeof setupMisbehaviourSchema>;
const setupMisbehaviours = z.array(setupMisbehaviourSchema).min(1).max(4);
const count = z.number().int().min(1).max(1_000);

export const setupMisbehaveSchema = z
  .strictObject({
    /** `setupComplete` waits so long. */
    delayMs: z.number().int().min(0).max(10_000).optional(),
    misbehave: setupMisbehaviours.optional(),
    /** The first connection of the dialogue that is concerned. */
    from: count.default(1),
    /** Only so many connections; without it every one from there on. */
    connections: count.optional(),
  })
  .refine(({ delayMs, misbehave }) => (delayMs ?? misbehave) !== undefined, {
    message: 'needs one of delayMs, misbehave',
  });

export const resumptionMisbehaveSchema = z
  .strictObject({
    /** False: no handle is ever given out. */
    handles: z.boolean().default(true),
    /** A handle is refused with this code. */
    refuse: closeCode.optional(),
    /** Goes wrong on connections that were resumed. */
    misbehave: setupMisbehaviours.optional(),
    /** Refuses or misbehaves only the first so many times that a conversation is resumed; without it always. */
    times: count.optional(),
  })
  .refine(({ handles, refuse, misbehave }) => !handles || (refuse ?? misbehave) !== undefined, {
    message: 'needs one of handles, refuse, misbehave',
  });
export type ResumptionMisbehaviour = z.infer<typeof resumptionMisbehaveSchema>;

export const chaosSchema = z.strictObject({
  seed: z.number().int(),
  /** Share of the turns in which something goes wrong. */
  rate: z.number().min(0).max(1),
  /** Draws from these alone. */
  only: z
    .array(z.enum(misbehaviourSchema.options.map(({ shape }) => shape.do.value)))
    .min(1)
    .optional(),
});
export type ChaosSetting = z.infer<typeof chaosSchema>;

/** What is not at its default when it is drawn. */
function drawn(kind: MisbehaviourKind, random: SeededRandom): unknown {
  const code = CLOSE_CODES[random.between(0, CLOSE_CODES.length - 1)];
  const point = POINTS[random.between(0, POINTS.length - 1)];
  switch (kind) {
    case 'close':
      return { do: kind, code, at: point };
    case 'goAway':
      return { do: kind, code, at: point, timeLeftSeconds: 10, thenDrop: random.chance(0.5) };
    case 'mute':
      return { do: kind, at: point, forSeconds: 15 };
    case 'leakText':
      return { do: kind, text: 'print(default_api.end_call())' };
    case 'emptyTurn':
      return random.chance(0.5) ? { do: kind } : { do: kind, reason: 'RESPONSE_REJECTED' };
    default:
      return { do: kind };
  }
}

/** The misbehaviour of one connection's turns; the same seed, connection and order give the same ones. */
export class Chaos {
  readonly #setting: ChaosSetting;
  readonly #random: SeededRandom;

  /** `connection` counts the dialogue's connections from 1. */
  constructor(setting: ChaosSetting, connection: number) {
    this.#setting = setting;
    this.#random = new SeededRandom(Math.imul(setting.seed, 8_191) + connection);
  }

  /** For the next turn: mostly none. */
  draw(): Misbehaviour[] {
    if (!this.#random.chance(this.#setting.rate)) return [];
    const kinds = this.#setting.only ?? MISBEHAVIOURS;
    const kind = kinds[this.#random.between(0, kinds.length - 1)];
    return kind === undefined ? [] : [misbehaviourSchema.parse(drawn(kind, this.#random))];
  }
}
