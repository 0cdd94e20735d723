/**
 * Messages that a dialogue sends along with an answer, as they stand: for what the real service sends on occasions that
 * the rehearsal has no rule for, such as `groundingMetadata`. Their form is checked as far as the top-level keys.
 */
import { z } from 'zod';
import { turnPointSchema } from './misbehaviour.js';

const inside = z.looseObject({}).optional();

/** The keys of a server message: ai.google.dev/api/live, and `LiveServerMessage` of `@google/genai` 3.3.0. */
const serverMessageSchema = z
  .strictObject({
    setupComplete: inside,
    serverContent: inside,
    toolCall: inside,
    toolCallCancellation: inside,
    goAway: inside,
    sessionResumptionUpdate: inside,
    usageMetadata: inside,
    voiceActivity: inside,
    voiceActivityDetectionSignal: inside,
  })
  .refine((message) => Object.keys(message).length > 0, { message: 'needs a key of a server message' });

const extraMessageSchema = z.strictObject({
  at: turnPointSchema.default('start'),
  message: serverMessageSchema,
});
export type ExtraMessage = z.infer<typeof extraMessageSchema>;

export const extraMessagesSchema = z.array(extraMessageSchema).min(1).max(16);
