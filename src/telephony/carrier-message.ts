/**
 * A carrier message as untrusted JSON, checked field by field. Numbers may come as strings or as numbers, and a
 * missing top-level `streamSid` is normal with Twilio-compatible hosts; fields that nothing here uses may be
 * anything. Field names: https://www.twilio.com/docs/voice/media-streams/websocket-messages
 */
import { isUtf8 } from 'node:buffer';
import { parseCallSid, parseStreamSid, type StreamSid } from '../ids.js';
import type { CarrierAnomaly } from './carrier-anomaly.js';
import { TIMESTAMP_DIGITS_MAX } from './media-frame-reader.js';
import type { MediaStreamStart } from './media-stream.js';

export type CarrierMessage =
  | { readonly event: 'connected' }
  | { readonly event: 'start'; readonly start: MediaStreamStart }
  /** `payload` is not yet decoded. */
  | { readonly event: 'media'; readonly timestampMs: number; readonly payload: string }
  | { readonly event: 'dtmf'; readonly digit: string }
  | { readonly event: 'mark'; readonly name: string }
  | { readonly event: 'stop' }
  | { readonly event: 'anomaly'; readonly kind: CarrierAnomaly };

type Fields = Readonly<Record<string, unknown>>;

const TIMESTAMP_PATTERN = new RegExp(`^\\d{1,${TIMESTAMP_DIGITS_MAX}}$`);
const TIMESTAMP_MAX = 10 ** TIMESTAMP_DIGITS_MAX;
const DIGIT_PATTERN = /^[0-9A-Da-d*#]$/;

function anomaly(kind: CarrierAnomaly): CarrierMessage {
  return { event: 'anomaly', kind };
}

function asFields(value: unknown): Fields | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : undefined;
}

function parseFields(data: Buffer): Fields | undefined {
  if (!isUtf8(data)) return undefined;
  try {
    return asFields(JSON.parse(data.toString('utf8')));
  } catch {
    return undefined;
  }
}

function asTimestamp(value: unknown): number | undefined {
  if (typeof value === 'string') return TIMESTAMP_PATTERN.test(value) ? Number(value) : undefined;
  return typeof value === 'number' && value >= 0 && value < TIMESTAMP_MAX ? value : undefined;
}

/** Absent, or that number, perhaps as text. Nothing else is converted: a conversion can throw, or overflow the stack. */
function isCount(value: unknown, wanted: number): boolean {
  return value === undefined || value === wanted || value === String(wanted);
}

/** Absent, or mu-law at 8000 Hz, mono: the only format that the call can play. */
function isPlayable(mediaFormat: unknown): boolean {
  if (mediaFormat === undefined || mediaFormat === null) return true;
  const format = asFields(mediaFormat);
  if (format === undefined) return false;
  const { encoding, sampleRate, channels } = format;
  return (
    (encoding === undefined || encoding === 'audio/x-mulaw') &&
    isCount(sampleRate, 8000) &&
    isCount(channels, 1)
  );
}

function readCustomParameters(value: unknown): Record<string, string> | undefined {
  const parameters = Object.create(null) as Record<string, string>;
  if (value === undefined || value === null) return parameters;
  const fields = asFields(value);
  if (fields === undefined) return undefined;
  for (const [name, text] of Object.entries(fields)) {
    if (typeof text !== 'string') return undefined;
    parameters[name] = text;
  }
  return parameters;
}

function readStart(message: Fields): CarrierMessage {
  const start = asFields(message['start']);
  if (start === undefined) return anomaly('badStart');
  const inner = start['streamSid'];
  const outer = message['streamSid'];
  const streamSid = parseStreamSid(inner ?? outer);
  const callSid = parseCallSid(start['callSid']);
  const customParameters = readCustomParameters(start['customParameters']);
  if (streamSid === undefined || callSid === undefined || customParameters === undefined) {
    return anomaly('badStart');
  }
  if (outer !== undefined && outer !== streamSid) return anomaly('badStart');
  if (!isPlayable(start['mediaFormat'])) return anomaly('badStart');
  const said = start['accountSid'];
  const accountSid = typeof said === 'string' ? said : undefined;
  return { event: 'start', start: { streamSid, callSid, accountSid, customParameters } };
}

function readMedia(message: Fields): CarrierMessage {
  const media = asFields(message['media']);
  if (media === undefined) return anomaly('badMedia');
  const { track, payload } = media;
  if (track !== undefined && track !== 'inbound') return anomaly('wrongTrack');
  const timestampMs = asTimestamp(media['timestamp']);
  if (timestampMs === undefined || typeof payload !== 'string') return anomaly('badMedia');
  return { event: 'media', timestampMs, payload };
}

function readDtmf(message: Fields): CarrierMessage {
  const digit = asFields(message['dtmf'])?.['digit'];
  if (typeof digit !== 'string' || !DIGIT_PATTERN.test(digit)) return anomaly('badDtmf');
  return { event: 'dtmf', digit: digit.toUpperCase() };
}

function readMark(message: Fields): CarrierMessage {
  const name = asFields(message['mark'])?.['name'];
  return typeof name === 'string' ? { event: 'mark', name } : anomaly('badMark');
}

/** A returned mark as Twilio writes it: no escape, nothing above ASCII, and no key twice. */
const PLAIN_MARK =
  /^\{"event":"mark","sequenceNumber":"\d{1,15}","streamSid":"([A-Za-z0-9]{1,64})","mark":\{"name":"([A-Za-z0-9:_-]{1,64})"\}\}$/;
const PLAIN_MARK_MAX_BYTES = 256;

/** The name in a mark of this stream that is written as Twilio writes them, six times a second a call; undefined for
 * whatever `parseCarrierMessage` has to look at. Where this gives a name, that gives the same. */
export function plainMarkName(data: Buffer, streamSid: StreamSid): string | undefined {
  if (data.length > PLAIN_MARK_MAX_BYTES) return undefined;
  const found = PLAIN_MARK.exec(data.toString('latin1'));
  return found?.[1] === streamSid ? found[2] : undefined;
}

/**
 * Reads one text frame. `streamSid` is that of the stream once `start` was accepted, undefined before: then only
 * `connected` and `start` are in order, afterwards a `start` is a duplicate. Never throws.
 */
export function parseCarrierMessage(data: Buffer, streamSid: StreamSid | undefined): CarrierMessage {
  const message = parseFields(data);
  if (message === undefined) return anomaly('malformedJson');
  const { event } = message;
  if (event === 'connected') return { event };
  if (event === 'start') return streamSid === undefined ? readStart(message) : anomaly('duplicateStart');
  if (event !== 'media' && event !== 'dtmf' && event !== 'mark' && event !== 'stop') {
    return anomaly('unknownEvent');
  }
  if (streamSid === undefined) return anomaly('beforeStart');
  const said = message['streamSid'];
  if (said !== undefined && said !== streamSid) return anomaly('wrongStream');
  if (event === 'media') return readMedia(message);
  if (event === 'dtmf') return readDtmf(message);
  if (event === 'mark') return readMark(message);
  return { event };
}
