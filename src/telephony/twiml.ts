/**
 * The answers to a voice webhook as TwiML, written by the twilio library. Every URL is absolute and under the public
 * origin. `<Connect>` has no `action`, so that the verb behind it always runs when the stream is over: it asks
 * `/twilio/after` what comes next, and a caller whose stream broke is never left on a dead line.
 */
import twilio from 'twilio';
import { HOLD_PAUSE_SECONDS } from '../handover-limits.js';
import { HANDOFF_RING_SECONDS } from '../tool-limits.js';
import type { VoiceAnswer } from './voice-door.js';

export const MEDIA_PATH = '/twilio/media';
export const AFTER_PATH = '/twilio/after';
export const STATUS_PATH = '/twilio/status';
export const STREAM_STATUS_PATH = '/twilio/stream';
export const VOICE_PATH = '/twilio/voice';
export const HANDOFF_PATH = '/twilio/handoff';

const BUSY_SENTENCE = 'All our lines are busy at the moment. Please call again in a few minutes.';
const NOBODY_SENTENCE = 'We are sorry. Nobody could take your call at the moment. Please try again later.';
const HOLD_SENTENCE = 'One moment please.';
const APOLOGY_SENTENCE = 'We are sorry. We cannot take your call right now. Please try again later.';

export interface TwimlReply {
  readonly status: 200 | 404;
  /** The document; empty when there is nothing to run. */
  readonly xml: string;
}

/** Nothing to say and nothing to do: the answer to a status callback. */
export const EMPTY_TWIML = new twilio.twiml.VoiceResponse().toString();

function streamTwiml(token: string, publicOrigin: string): string {
  const response = new twilio.twiml.VoiceResponse();
  const stream = response.connect().stream({
    // http:// becomes ws://, https:// becomes wss://.
    url: publicOrigin.replace(/^http/i, 'ws') + MEDIA_PATH,
    statusCallback: publicOrigin + STREAM_STATUS_PATH,
    statusCallbackMethod: 'POST',
  });
  stream.parameter({ name: 'token', value: token });
  response.redirect({ method: 'POST' }, publicOrigin + AFTER_PATH);
  return response.toString();
}

/** Rings a human in the stream's place. The caller's own number is shown, as Twilio does without `callerId`. What came of it is
 * told at HANDOFF_PATH, so that a caller whom nobody answered hears something. */
export function dialTwiml(number: string, publicOrigin: string): string {
  const response = new twilio.twiml.VoiceResponse();
  response
    .dial({
      action: publicOrigin + HANDOFF_PATH,
      method: 'POST',
      timeout: HANDOFF_RING_SECONDS,
      answerOnBridge: true,
    })
    .number(number);
  return response.toString();
}

function holdTwiml(publicOrigin: string): string {
  const response = new twilio.twiml.VoiceResponse();
  response.say(HOLD_SENTENCE);
  response.pause({ length: HOLD_PAUSE_SECONDS });
  response.redirect({ method: 'POST' }, publicOrigin + AFTER_PATH);
  return response.toString();
}

function sayAndHangUp(sentence: string): string {
  const response = new twilio.twiml.VoiceResponse();
  response.say(sentence);
  response.hangup();
  return response.toString();
}

function hangUpTwiml(): string {
  const response = new twilio.twiml.VoiceResponse();
  response.hangup();
  return response.toString();
}

/** `publicOrigin` may have a base path; it has no trailing slash. */
export function renderVoiceAnswer(answer: VoiceAnswer, publicOrigin: string): TwimlReply {
  switch (answer.kind) {
    case 'stream':
      return { status: 200, xml: streamTwiml(answer.token, publicOrigin) };
    case 'busy':
      return { status: 200, xml: sayAndHangUp(BUSY_SENTENCE) };
    case 'apology':
      return { status: 200, xml: sayAndHangUp(APOLOGY_SENTENCE) };
    case 'hold':
      return { status: 200, xml: holdTwiml(publicOrigin) };
    case 'nobodyAnswered':
      return { status: 200, xml: sayAndHangUp(NOBODY_SENTENCE) };
    case 'hangup':
      return { status: 200, xml: hangUpTwiml() };
    case 'unknownAgent':
      break;
  }
  return { status: 404, xml: '' };
}
