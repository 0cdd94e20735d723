/**
 * What the webhooks ask of the calls: the one seam between Twilio's HTTP side and the call registry.
 */
import type { WebhookRequest } from '../call-tap.js';
import type { CallSid } from '../ids.js';

/** Twilio's `CallStatus` values. */
export const CALL_STATUSES = [
  'queued',
  'initiated',
  'ringing',
  'in-progress',
  'completed',
  'busy',
  'failed',
  'no-answer',
  'canceled',
] as const;
export type CallStatus = (typeof CALL_STATUSES)[number];

/** A checked voice webhook. Numbers are personal: log them only as `pii.*`. */
export interface VoiceWebhook {
  readonly callSid: CallSid;
  readonly accountSid: string | undefined;
  readonly from: string | undefined;
  readonly to: string | undefined;
  /** Twilio's `Direction`: inbound, outbound-api, outbound-dial. */
  readonly direction: string | undefined;
  readonly stirVerstat: string | undefined;
  /** From `/twilio/voice/:agent`; undefined picks the default. */
  readonly agentName: string | undefined;
  /** All of it as it came. */
  readonly request: WebhookRequest;
}

/** What came of dialling a human, after Twilio's `DialCallStatus`. */
export const DIAL_RESULTS = ['completed', 'busy', 'no_answer', 'failed', 'canceled'] as const;
export type DialResult = (typeof DIAL_RESULTS)[number];

export type VoiceAnswer =
  /** Connect the caller to a media stream that carries this one-time token. */
  | { readonly kind: 'stream'; readonly token: string }
  /** Say that all lines are busy, then hang up. */
  | { readonly kind: 'busy' }
  /** Say sorry (nothing was heard yet), then hang up. */
  | { readonly kind: 'apology' }
  /** Ask for a moment's patience, then ask again what follows. */
  | { readonly kind: 'hold' }
  /** Say that no human could be reached, then hang up. */
  | { readonly kind: 'nobodyAnswered' }
  | { readonly kind: 'hangup' }
  /** No such agent: 404, with the names there are in the log only. */
  | { readonly kind: 'unknownAgent' };

export interface VoiceDoor {
  /** `POST /twilio/voice[/:agent]`: announces the call and starts connecting the model. Idempotent by CallSid. */
  onVoice(webhook: VoiceWebhook): VoiceAnswer;
  /** `POST /twilio/after`: the verb behind `<Connect>`; decides what follows the stream. At once, but for a call that another server had. */
  onAfter(callSid: CallSid, request: WebhookRequest): VoiceAnswer | Promise<VoiceAnswer>;
  /** `POST /twilio/handoff`: what came of dialling a human; `completed`: they have spoken, and it is over. */
  onHandoff(callSid: CallSid, result: DialResult, request: WebhookRequest): VoiceAnswer;
  /** `POST /twilio/status`: late, repeated and out-of-order statuses are normal. */
  onStatus(callSid: CallSid, status: CallStatus, request: WebhookRequest): void;
  /** What one of these was answered with. */
  onAnswered(callSid: CallSid, status: number, xml: string): void;
}
