/**
 * What a phone knows about its call when it is over (or so far): both sides of the sound on one timeline, and what
 * happened when. Plain values; `call-statistics.ts` reads them.
 */
import type { ClearRecord, PlayedStretch } from './carrier-player.js';

/** How well the phone kept its own time. */
export interface Pacing {
  framesSent: number;
  /** Frames left out because the phone was over PHONE_CATCH_UP_MAX_MS late. */
  framesSkipped: number;
  latenessMaxMs: number;
}

/** Who ended the call: the caller, the server's TwiML, the carrier from outside (REST), or something went wrong. */
export type EndedBy = 'caller' | 'server' | 'carrier' | 'failure';

export interface StreamRecord {
  readonly streamSid: string;
  readonly openedAtMs: number;
  closedAtMs: number | undefined;
  closeCode: number | undefined;
}

/** Something the carrier said or played by itself, outside a stream. */
export interface CarrierSpeech {
  readonly atMs: number;
  readonly verb: 'Say' | 'Play';
  readonly text: string;
}

/** Everything the phone knows about its call. Times are milliseconds since the call was answered. */
export interface PhoneRecord {
  readonly callSid: string;
  readonly endedBy: EndedBy | undefined;
  readonly durationMs: number;
  /** Both sides, mu-law at 8 kHz, `durationMs` long each: what the caller heard, and what the caller said. */
  readonly heard: Uint8Array;
  readonly said: Uint8Array;
  readonly streams: readonly StreamRecord[];
  readonly stretches: readonly PlayedStretch[];
  readonly clears: readonly ClearRecord[];
  readonly marksPlayed: number;
  readonly overflowMs: number;
  readonly cutMs: number;
  readonly carrierSpeech: readonly CarrierSpeech[];
  readonly pacing: Readonly<Pacing>;
  /** What Twilio would have logged as a warning, oldest first; `warningsMore` counts those not kept. */
  readonly warnings: readonly string[];
  readonly warningsMore: number;
}
