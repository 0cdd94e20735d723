/**
 * One line of an export: a JSON object that stands for itself, with its owner's names. `sessionId` is absent for what is the
 * user's, `userId` as well for what is the app's. Sessions come before what is theirs.
 */
import { z } from 'zod';
import { StoreError } from '../errors.js';
import { eventSchema } from '../event/event.js';

const owner = {
  appName: z.string(),
  userId: z.string().exactOptional(),
  sessionId: z.string().exactOptional(),
};
const sessionOwner = { appName: z.string(), userId: z.string(), sessionId: z.string() };

const lineSchema = z.discriminatedUnion('type', [
  z.object({ type: z.literal('session'), ...sessionOwner, createdAtMs: z.number(), updatedAtMs: z.number() }),
  z.object({
    type: z.literal('event'),
    ...sessionOwner,
    seq: z.number(),
    storedAtMs: z.number(),
    event: eventSchema,
  }),
  z.object({
    type: z.literal('state'),
    ...owner,
    key: z.string(),
    value: z.unknown(),
    updatedAtMs: z.number(),
  }),
  z.object({
    type: z.literal('artifact'),
    appName: z.string(),
    userId: z.string(),
    sessionId: z.string().exactOptional(),
    name: z.string(),
    /** The column holds 32 bits. */
    version: z
      .int()
      .min(0)
      .max(2 ** 31 - 1),
    mimeType: z.string(),
    createdAtMs: z.number(),
    /** Base64. */
    data: z.base64(),
  }),
]);

export type ExportLine = z.infer<typeof lineSchema>;

/** @throws StoreError `store_refused`; the message does not hold the line. */
export function readLine(text: string, number: number): ExportLine {
  try {
    return lineSchema.parse(JSON.parse(text));
  } catch {
    throw new StoreError('store_refused', `line ${number} is not a line of an export`);
  }
}
