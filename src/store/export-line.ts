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
const user = { appName: z.string(), userId: z.string() };
const minorUnits = z.int().min(1);
const amount = z.object({
  account: z.string(),
  amountMinor: minorUnits,
  currency: z.string(),
  limitMinor: minorUnits,
});

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
  z.object({
    type: z.literal('call'),
    /** The call's session has its CallSid as its id. */
    ...sessionOwner,
    direction: z.enum(['inbound', 'outbound']),
    callerVerified: z.boolean(),
    startedAtMs: z.int(),
    ended: z.object({ atMs: z.int(), reason: z.string() }),
  }),
  z.object({ type: z.literal('fact'), ...user, entity: z.string(), fact: z.string(), atMs: z.int() }),
  z.object({
    type: z.literal('relation'),
    ...user,
    source: z.string(),
    relation: z.string(),
    target: z.string(),
    atMs: z.int(),
  }),
  z.object({
    type: z.literal('ledger'),
    appName: z.string(),
    /** These two are absent where the user's data was deleted. It is not the session's, as `sessionId` would say. */
    userId: z.string().exactOptional(),
    session: z.string().exactOptional(),
    key: z.string(),
    tool: z.string(),
    callId: z.string(),
    amount: amount.exactOptional(),
    guards: z.array(z.string()),
    approvedBy: z.string().exactOptional(),
    claimedAtMs: z.int(),
    /** Absent: it is open. */
    settled: z.object({ atMs: z.int(), response: z.record(z.string(), z.unknown()) }).exactOptional(),
  }),
]);

export type ExportLine = z.infer<typeof lineSchema>;

/** The session that a line belongs to, if to one. */
export function sessionOfLine(line: ExportLine): string | undefined {
  return 'sessionId' in line ? line.sessionId : undefined;
}

/** @throws StoreError `store_refused`; the message does not hold the line. */
export function readLine(text: string, number: number): ExportLine {
  try {
    return lineSchema.parse(JSON.parse(text));
  } catch {
    throw new StoreError('store_refused', `line ${number} is not a line of an export`);
  }
}
