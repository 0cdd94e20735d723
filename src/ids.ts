/**
 * Identifiers. Twilio's ids are branded types made only by the parsers here, so that an unchecked string from
 * outside never passes for one. This is the only file that may draw random ids.
 */
import { randomBytes, randomFillSync, randomInt, randomUUID } from 'node:crypto';

export type CallSid = string & { readonly __brand: 'CallSid' };
export type StreamSid = string & { readonly __brand: 'StreamSid' };

/** Twilio-compatible hosts use UUIDs where Twilio uses `CA…`, so the shape is: 1 to 128 safe characters. */
const SID_PATTERN = /^[A-Za-z0-9._:-]{1,128}$/;

/** Returns the id, or undefined for anything that is not a plausible id. */
export function parseCallSid(value: unknown): CallSid | undefined {
  return typeof value === 'string' && SID_PATTERN.test(value) ? (value as CallSid) : undefined;
}

/** Returns the id, or undefined for anything that is not a plausible id. */
export function parseStreamSid(value: unknown): StreamSid | undefined {
  return typeof value === 'string' && SID_PATTERN.test(value) ? (value as StreamSid) : undefined;
}

/** A one-time token of 256 random bits, base64url, 43 characters. */
export function newStreamToken(): string {
  return randomBytes(32).toString('base64url');
}

/** A random UUID. */
export function newId(): string {
  return randomUUID();
}

/** Uniform in [0, 1), for spreading retries; nothing secret comes from it. */
export function uniformRandom(): number {
  return randomInt(2 ** 32) / 2 ** 32;
}

/** Fills `words` with random bits that cannot be foreseen. */
export function fillRandom(words: Uint32Array): void {
  randomFillSync(words);
}
