/**
 * Who is on the line, as far as the carrier says: the names by which a call, its app and its caller are known.
 */
import type { AgentContext } from '../agent/agent.js';
import type { CallSid } from '../ids.js';
import type { VoiceWebhook } from '../telephony/voice-door.js';

export interface CallIdentity extends AgentContext {
  readonly callSid: CallSid;
  /** Who called whom, by Twilio's `Direction`; `web`: a web client, and no carrier. */
  readonly callDirection: 'inbound' | 'outbound' | 'web';
}

/** E.164, or the digits of a short or national number. */
const NUMBER = /^\+?\d{3,15}$/;
/** What carriers put in place of a withheld number: a word spelt on the keypad, which looks like a number. From public
 * projects that answer Twilio calls; no page of Twilio's lists them. */
const WITHHELD = new Set([
  '+266696687', // ANONYMOUS
  '+7378742833', // RESTRICTED
  '+2562533', // BLOCKED
  '+8656696', // UNKNOWN
  '+86282452253', // UNAVAILABLE
]);
/** STIR/SHAKEN level A: the carrier knows the caller and the caller's right to the number. */
const FULLY_ATTESTED = /^TN-Validation-Passed-A\b/;

/** A caller with no number is a stranger each time: two of them never share a memory. */
export function identify(webhook: VoiceWebhook, appName: string, invocationId: string): CallIdentity {
  const { callSid, from } = webhook;
  const isNumber = from !== undefined && NUMBER.test(from) && !WITHHELD.has(`+${from.replace(/^\+/, '')}`);
  return {
    invocationId,
    callSid,
    appName,
    userId: isNumber ? from : `anonymous:${callSid}`,
    sessionId: callSid,
    callerVerified: isNumber && FULLY_ATTESTED.test(webhook.stirVerstat ?? ''),
    callDirection: callDirectionOf(webhook),
  };
}

/** Who called whom: Twilio's `outbound-api` and `outbound-dial` are calls that we placed. */
export function callDirectionOf(webhook: VoiceWebhook): 'inbound' | 'outbound' {
  return webhook.direction?.startsWith('outbound') === true ? 'outbound' : 'inbound';
}
