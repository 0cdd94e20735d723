/**
 * How the live models differ, as one table: the rehearsal behaves as the row says that its dialogue names, and the
 * dialogue may change single entries. Sources: Google's pages on each model and on tools in the Live API, the Vertex
 * guide from 2.5 to 3.8, and user reports where a comment names one.
 */
import { z } from 'zod';

const profileSchema = z.strictObject({
  /** What a function does whose declaration states no `behavior`. */
  toolBehavior: z.enum(['BLOCKING', 'NON_BLOCKING']),
  /** Whether a declaration may state another one. */
  heedsDeclaredBehavior: z.boolean(),
  /** Input while a blocking call is open: the call is cancelled, the connection is closed (1008), or input waits. */
  inputWhileBlocked: z.enum(['cancels', 'closes', 'waits']),
  /** The turn stays open until every call is answered, though none blocks. */
  turnCompleteAwaitsTools: z.boolean(),
  /** A function result with `scheduling: INTERRUPT` while the caller speaks. */
  interruptWhileCallerSpeaks: z.enum(['waits', 'talksOver']),
  /** A response to a call that is not open: pitfall of connections that were resumed. */
  unknownToolResponse: z.enum(['ignored', 'closes']),
  /** Sound, words and completion in one message, each in its own, or now so and now so. */
  messages: z.enum(['bundled', 'single', 'mixed']),
  /** Of one answer; all but the last with `interactionStatus` IN_PROGRESS where the status is sent. */
  turnCompletes: z.number().int().min(1).max(5),
  interactionStatus: z.boolean(),
  /** Said in front of each answer, with a `turnComplete` of its own; empty for none. */
  filler: z.string().trim().max(500),
  /** `clientContent` is refused (1007) unless setup held `historyConfig`. */
  clientContentNeedsHistoryConfig: z.boolean(),
  missingRole: z.enum(['accepted', 'refused']),
  thinkingConfig: z.enum(['optional', 'refused', 'required']),
  proactiveAudio: z.enum(['optional', 'refused', 'alwaysOn']),
  affectiveDialog: z.enum(['optional', 'refused']),
  /** Of setup, what Vertex alone takes: `explicitVadSignal` and transparent resumption. */
  vertexFields: z.enum(['optional', 'refused']),
});
export type ModelProfile = z.infer<typeof profileSchema>;

const GEMINI_3_8: ModelProfile = {
  toolBehavior: 'NON_BLOCKING',
  heedsDeclaredBehavior: true,
  inputWhileBlocked: 'cancels',
  turnCompleteAwaitsTools: false,
  interruptWhileCallerSpeaks: 'waits',
  unknownToolResponse: 'ignored',
  messages: 'mixed',
  turnCompletes: 1,
  interactionStatus: false,
  filler: '',
  clientContentNeedsHistoryConfig: false,
  missingRole: 'refused',
  thinkingConfig: 'refused',
  proactiveAudio: 'alwaysOn',
  affectiveDialog: 'refused',
  vertexFields: 'refused',
};

export const MODEL_PROFILES = {
  '3.8': GEMINI_3_8,
  'extended-thinking': {
    ...GEMINI_3_8,
    heedsDeclaredBehavior: false,
    turnCompletes: 3,
    interactionStatus: true,
    filler: 'One moment.',
    thinkingConfig: 'required',
  },
  '3.1': {
    ...GEMINI_3_8,
    toolBehavior: 'BLOCKING',
    heedsDeclaredBehavior: false,
    inputWhileBlocked: 'waits',
    messages: 'bundled',
    clientContentNeedsHistoryConfig: true,
    thinkingConfig: 'optional',
    proactiveAudio: 'refused',
  },
  '2.5': {
    ...GEMINI_3_8,
    toolBehavior: 'BLOCKING',
    // github.com/googleapis/js-genai/issues/1236
    inputWhileBlocked: 'closes',
    interruptWhileCallerSpeaks: 'talksOver',
    messages: 'single',
    missingRole: 'accepted',
    thinkingConfig: 'optional',
    proactiveAudio: 'optional',
    affectiveDialog: 'optional',
  },
} as const satisfies Record<string, ModelProfile>;

export const DEFAULT_PROFILE = '3.8';
const profileName = z.enum(['3.8', 'extended-thinking', '3.1', '2.5']);

/** What a dialogue says: a row's name, or a row and what is other than in it. */
export const profileChoiceSchema = z.union([
  profileName,
  profileSchema.partial().extend({ like: profileName.optional() }),
]);
export type ProfileChoice = z.infer<typeof profileChoiceSchema>;

export function modelProfile(choice: ProfileChoice = DEFAULT_PROFILE): ModelProfile {
  if (typeof choice === 'string') return MODEL_PROFILES[choice];
  const { like = DEFAULT_PROFILE, ...changes } = choice;
  const stated = Object.entries(changes).filter(([, value]) => value !== undefined);
  return { ...MODEL_PROFILES[like], ...Object.fromEntries(stated) };
}

/**
 * For a client that asks for the rehearsal by its own name: it sends one form of setup whatever the dialogue, and
 * cannot know which fields the dialogue's model wants. How the model behaves stays.
 */
export function withAnySetup(profile: ModelProfile): ModelProfile {
  return {
    ...profile,
    clientContentNeedsHistoryConfig: false,
    thinkingConfig: 'optional',
    proactiveAudio: 'optional',
    affectiveDialog: 'optional',
  };
}
