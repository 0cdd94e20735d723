/**
 * Reads the TwiML that a webhook answered with into the verbs that the phone can follow. It is the carrier's view
 * of the document, written from Twilio's documentation and apart from the code that makes TwiML in the server, so
 * that the two cannot share a mistake. What Twilio would refuse is refused here, with Twilio's error code.
 */
import { errorText, TelephonyError } from '../errors.js';
import { TWIML_MAX_BYTES } from '../limits.js';
import { readXml, type XmlElement } from './xml-reader.js';

export type HttpMethod = 'GET' | 'POST';

export interface StreamNoun {
  /** As written; may be relative to the document. */
  readonly url: string;
  readonly name: string | undefined;
  readonly statusCallback: string | undefined;
  readonly statusCallbackMethod: HttpMethod;
  readonly parameters: Readonly<Record<string, string>>;
}

export type Verb =
  | {
      readonly kind: 'connect';
      readonly action: string | undefined;
      readonly method: HttpMethod;
      readonly stream: StreamNoun;
    }
  | { readonly kind: 'say'; readonly text: string; readonly loop: number }
  | { readonly kind: 'play'; readonly url: string; readonly loop: number }
  | { readonly kind: 'pause'; readonly lengthMs: number }
  | { readonly kind: 'redirect'; readonly url: string; readonly method: HttpMethod }
  | { readonly kind: 'hangup' }
  | { readonly kind: 'reject'; readonly reason: string };

/** Name and value of a `<Parameter>` together stay under this many characters. */
const PARAMETER_MAX_CHARS = 500;
/** `loop="0"` repeats until the call ends; so many repetitions outlast any call. */
const LOOP_FOREVER = 1_000;

/** Returns the verbs of `body`, in order. Throws TelephonyError `phone_failed` naming `where` and what is wrong. */
export function readTwiml(body: string, where: string): Verb[] {
  try {
    if (Buffer.byteLength(body) > TWIML_MAX_BYTES) throw new SyntaxError('is over 64 KB (11750)');
    const root = readXml(body);
    if (root.name !== 'Response')
      throw new SyntaxError(`has the root <${root.name}> instead of <Response> (12100)`);
    return root.children.map((element) => readVerb(element));
  } catch (error) {
    throw new TelephonyError('phone_failed', `TwiML from ${where}: ${errorText(error)}`, { cause: error });
  }
}

function readVerb(element: XmlElement): Verb {
  const { attributes } = element;
  switch (element.name) {
    case 'Connect':
      return readConnect(element);
    case 'Say':
      return { kind: 'say', text: element.text.trim(), loop: loopOf(attributes['loop']) };
    case 'Play':
      return { kind: 'play', url: requiredUrl(element.text, 'Play'), loop: loopOf(attributes['loop']) };
    case 'Pause':
      return { kind: 'pause', lengthMs: 1_000 * wholeNumber(attributes['length'], 1, 'length of <Pause>') };
    case 'Redirect':
      return {
        kind: 'redirect',
        url: requiredUrl(element.text, 'Redirect'),
        method: methodOf(attributes['method']),
      };
    case 'Hangup':
      return { kind: 'hangup' };
    case 'Reject':
      return { kind: 'reject', reason: attributes['reason'] ?? 'rejected' };
    default:
      throw new SyntaxError(`the phone cannot follow <${element.name}>`);
  }
}

function readConnect(element: XmlElement): Verb {
  const [noun] = element.children;
  if (noun?.name !== 'Stream' || element.children.length > 1) {
    throw new SyntaxError('the phone follows <Connect> only with one <Stream> in it');
  }
  const { attributes } = noun;
  const track = attributes['track'] ?? 'inbound_track';
  if (track !== 'inbound_track')
    throw new SyntaxError(`track "${track}" is not allowed under <Connect> (31941)`);
  const parameters: Record<string, string> = {};
  for (const child of noun.children) {
    const { name, value } = child.attributes;
    if (child.name !== 'Parameter' || name === undefined || value === undefined) {
      throw new SyntaxError('<Stream> may hold only <Parameter name="…" value="…"/>');
    }
    if (name.length + value.length >= PARAMETER_MAX_CHARS) {
      throw new SyntaxError(`<Parameter name="${name}"> has 500 characters or more`);
    }
    parameters[name] = value;
  }
  const stream: StreamNoun = {
    url: requiredUrl(attributes['url'] ?? '', 'Stream'),
    name: attributes['name'],
    statusCallback: attributes['statusCallback'],
    statusCallbackMethod: methodOf(attributes['statusCallbackMethod']),
    parameters,
  };
  const { action, method } = element.attributes;
  return { kind: 'connect', action, method: methodOf(method), stream };
}

function requiredUrl(text: string, verb: string): string {
  const url = text.trim();
  if (url === '') throw new SyntaxError(`<${verb}> names no URL`);
  return url;
}

function methodOf(method: string | undefined): HttpMethod {
  const upper = (method ?? 'POST').toUpperCase();
  if (upper !== 'GET' && upper !== 'POST')
    throw new SyntaxError(`the method "${upper}" is neither GET nor POST`);
  return upper;
}

function loopOf(loop: string | undefined): number {
  const times = wholeNumber(loop, 1, 'loop');
  return times === 0 ? LOOP_FOREVER : Math.min(times, LOOP_FOREVER);
}

function wholeNumber(text: string | undefined, unset: number, what: string): number {
  if (text === undefined) return unset;
  if (!/^\d{1,6}$/.test(text)) throw new SyntaxError(`${what} is "${text}", not a whole number`);
  return Number(text);
}
