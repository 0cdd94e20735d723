/**
 * Twilio's webhooks: between HTTP and the `VoiceDoor`. A request is let in by the gate before anything about the call
 * is looked up; what is refused learns nothing. The body is kept as bytes until then, because Twilio signs every
 * parameter it sent, in its own spelling. Which call is which, and what to answer, is the door's business.
 */
import express, { Router, type ErrorRequestHandler, type Request, type Response } from 'express';
import { errorText } from '../errors.js';
import { parseCallSid, type CallSid } from '../ids.js';
import { WEBHOOK_BODY_MAX_BYTES, WEBHOOK_PARAMETERS_MAX } from '../limits.js';
import type { Log } from '../observe/log.js';
import { CarrierGate, GATE_REFUSALS, type CarrierTrust } from './carrier-gate.js';
import type { SignedBody, WebhookParams } from './request-signature.js';
import {
  AFTER_PATH,
  EMPTY_TWIML,
  HANDOFF_PATH,
  renderVoiceAnswer,
  STATUS_PATH,
  STREAM_STATUS_PATH,
  VOICE_PATH,
} from './twiml.js';
import { CALL_STATUSES, type DialResult, type VoiceAnswer, type VoiceDoor } from './voice-door.js';

/** Why a webhook was refused: a closed list, fit for a metric label. */
export const WEBHOOK_REFUSALS = [
  ...GATE_REFUSALS,
  'method',
  'contentType',
  'tooLarge',
  'unreadable',
  'badParameter',
] as const;
export type WebhookRefusal = (typeof WEBHOOK_REFUSALS)[number];

export const STREAM_EVENTS = ['stream-started', 'stream-stopped', 'stream-error'] as const;
export type StreamEvent = (typeof STREAM_EVENTS)[number];

export interface WebhookObserver {
  onRefused(reason: WebhookRefusal): void;
  /** Twilio's own word on a media stream, from its `statusCallback`. */
  onStreamEvent(event: StreamEvent): void;
}

export interface WebhookOptions extends CarrierTrust {
  readonly door: VoiceDoor;
  readonly log: Log;
  readonly observe: WebhookObserver;
}

/** Twilio's `DialCallStatus` (https://www.twilio.com/docs/voice/twiml/dial#dialcallstatus); anything else is a failure. */
const DIAL_RESULT_OF: Readonly<Record<string, DialResult>> = {
  completed: 'completed',
  answered: 'completed',
  busy: 'busy',
  'no-answer': 'no_answer',
  failed: 'failed',
  canceled: 'canceled',
};

interface ReadBody {
  readonly signed: SignedBody;
  readonly params: WebhookParams;
}

/** Of Twilio's own words on a stream that failed. */
const STREAM_ERROR_MAX_CHARS = 200;
const FORM_TYPE = 'application/x-www-form-urlencoded';
const JSON_TYPE = 'application/json';
const AMPERSAND = 0x26;

/** Error codes have five digits; anything longer may be a telephone number. */
function withoutNumbers(text: string): string {
  return text.replace(/\+?\d[\d\s().-]{5,}\d/g, '…');
}

function bodyType(request: { headers: { 'content-type'?: string | undefined } }): string {
  return (request.headers['content-type'] ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? '';
}

function readForm(bytes: Buffer): WebhookParams | undefined {
  let names = 1;
  for (const byte of bytes) if (byte === AMPERSAND) names += 1;
  if (names > WEBHOOK_PARAMETERS_MAX) return undefined;
  // A form may name a parameter anything, `__proto__` too, and all of them are signed.
  const params = Object.create(null) as Record<string, string | string[]>;
  for (const [name, value] of new URLSearchParams(bytes.toString('utf8'))) {
    const known = params[name];
    if (known === undefined) params[name] = value;
    else if (typeof known === 'string') params[name] = [known, value];
    else known.push(value);
  }
  return params;
}

function readJson(bytes: Buffer): WebhookParams | undefined {
  let parsed: unknown;
  try {
    parsed = JSON.parse(bytes.toString('utf8'));
  } catch {
    return undefined;
  }
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) return undefined;
  const params = Object.create(null) as Record<string, string>;
  for (const [name, value] of Object.entries(parsed)) {
    if (typeof value === 'string') params[name] = value;
  }
  return params;
}

function readBody(request: Request): ReadBody | undefined {
  const body: unknown = request.body;
  const bytes = Buffer.isBuffer(body) ? body : Buffer.alloc(0);
  if (bodyType(request) === JSON_TYPE) {
    const params = readJson(bytes);
    return params && { signed: { kind: 'raw', bytes }, params };
  }
  const params = readForm(bytes);
  return params && { signed: { kind: 'form', params }, params };
}

/** The value of a parameter that was sent exactly once. */
function single(params: WebhookParams, name: string): string | undefined {
  const value = params[name];
  return typeof value === 'string' ? value : undefined;
}

function isStreamEvent(value: string | undefined): value is StreamEvent {
  return (STREAM_EVENTS as readonly (string | undefined)[]).includes(value);
}

function sendXml(response: Response, status: number, xml: string): void {
  response.writeHead(status, {
    'Content-Type': 'text/xml; charset=utf-8',
    'Content-Length': Buffer.byteLength(xml),
    'Cache-Control': 'no-store',
  });
  response.end(xml);
}

function sendPlain(response: Response, status: number, text: string): void {
  response.writeHead(status, {
    'Content-Type': 'text/plain; charset=utf-8',
    'Content-Length': Buffer.byteLength(text),
    'Cache-Control': 'no-store',
  });
  response.end(text);
}

class Webhooks {
  readonly #options: WebhookOptions;
  readonly #gate: CarrierGate;

  constructor(options: WebhookOptions) {
    this.#options = options;
    this.#gate = new CarrierGate(options);
  }

  /** The steps before `answer`: POST only, a known type, a bounded body, the gate, a plausible CallSid. */
  route(router: Router, path: string, answer: (call: AdmittedWebhook) => void | Promise<void>): void {
    router.post(
      path,
      (request, response, next) => {
        const type = bodyType(request);
        if (type === FORM_TYPE || type === JSON_TYPE) next();
        else this.#refuse(response, 415, 'contentType', '');
      },
      express.raw({ type: () => true, limit: WEBHOOK_BODY_MAX_BYTES }),
      (request, response) => {
        const body = readBody(request);
        if (body === undefined) return this.#refuse(response, 400, 'unreadable', '');
        const reason = this.#gate.refusal(request, request.originalUrl, body.signed);
        if (reason !== undefined) return this.#refuse(response, 403, reason, '');
        const callSid = parseCallSid(single(body.params, 'CallSid'));
        if (callSid === undefined) return this.#refuseParameter(response, 'CallSid');
        return answer({ request, response, callSid, params: body.params });
      },
    );
    router.all(path, (_request, response) => {
      response.setHeader('Allow', 'POST');
      this.#refuse(response, 405, 'method', '');
    });
  }

  voice({ request, response, callSid, params }: AdmittedWebhook): void {
    const agent: unknown = request.params['agent'];
    const agentName = typeof agent === 'string' ? agent : undefined;
    const answer = this.#options.door.onVoice({
      callSid,
      accountSid: single(params, 'AccountSid'),
      from: single(params, 'From'),
      to: single(params, 'To'),
      direction: single(params, 'Direction'),
      stirVerstat: single(params, 'StirVerstat'),
      agentName,
      request: { path: request.originalUrl, params },
    });
    this.#answer(request, response, callSid, answer);
  }

  after({ request, response, callSid, params }: AdmittedWebhook): void | Promise<void> {
    const answer = this.#options.door.onAfter(callSid, { path: request.originalUrl, params });
    if (!(answer instanceof Promise)) return this.#answer(request, response, callSid, answer);
    return answer.then((given) => this.#answer(request, response, callSid, given));
  }

  handoff({ request, response, callSid, params }: AdmittedWebhook): void {
    const said = single(params, 'DialCallStatus');
    if (said === undefined) return this.#refuseParameter(response, 'DialCallStatus');
    const result = DIAL_RESULT_OF[said] ?? 'failed';
    this.#options.log.info({ callSid, result }, 'what came of dialling a human');
    const heard = { path: request.originalUrl, params };
    this.#answer(request, response, callSid, this.#options.door.onHandoff(callSid, result, heard));
  }

  status({ request, response, callSid, params }: AdmittedWebhook): void {
    const said = single(params, 'CallStatus');
    if (said === undefined) return this.#refuseParameter(response, 'CallStatus');
    const status = CALL_STATUSES.find((known) => known === said);
    if (status === undefined) this.#options.log.info({ callSid }, 'Twilio sent a call status unknown here');
    else this.#options.door.onStatus(callSid, status, { path: request.originalUrl, params });
    this.#options.door.onAnswered(callSid, 200, EMPTY_TWIML);
    return sendXml(response, 200, EMPTY_TWIML);
  }

  streamStatus({ response, callSid, params }: AdmittedWebhook): void {
    const { log, observe } = this.#options;
    const event = single(params, 'StreamEvent');
    if (!isStreamEvent(event)) return this.#refuseParameter(response, 'StreamEvent');
    observe.onStreamEvent(event);
    const fields = { callSid, streamEvent: event };
    if (event === 'stream-error') {
      const text = single(params, 'StreamError') ?? '';
      // The exact form of StreamError is not documented; the code is a five-digit number beginning with 3.
      const streamErrorCode = /\b3\d{4}\b/.exec(`${single(params, 'StreamErrorCode') ?? ''} ${text}`)?.[0];
      log.warn(
        { ...fields, streamErrorCode, streamError: withoutNumbers(text).slice(0, STREAM_ERROR_MAX_CHARS) },
        `Twilio reports a stream error, code ${streamErrorCode ?? 'unknown'}`,
      );
    } else log.info(fields, 'Twilio reports a stream event');
    return sendXml(response, 200, EMPTY_TWIML);
  }

  /** What went wrong before or while answering; Twilio then asks the number's fallback URL. */
  readonly onError: ErrorRequestHandler = (error: unknown, _request, response, next) => {
    if (response.headersSent) return next(error);
    const status = clientErrorStatus(error);
    if (status === 413) return this.#refuse(response, 413, 'tooLarge', '');
    if (status === 415) return this.#refuse(response, 415, 'contentType', '');
    if (status !== undefined) return this.#refuse(response, 400, 'unreadable', '');
    this.#options.log.error({ cause: errorText(error) }, 'a webhook could not be answered');
    return sendPlain(response, 500, '');
  };

  #answer(request: Request, response: Response, callSid: CallSid, answer: VoiceAnswer): void {
    const reply = renderVoiceAnswer(answer, this.#gate.publicOrigin(request));
    this.#options.log.info({ callSid, answer: answer.kind }, 'a voice webhook was answered');
    this.#options.door.onAnswered(callSid, reply.status, reply.xml);
    sendXml(response, reply.status, reply.xml);
  }

  #refuseParameter(response: Response, name: string): void {
    this.#refuse(response, 400, 'badParameter', `${name} is missing or malformed\n`);
  }

  #refuse(response: Response, status: number, reason: WebhookRefusal, text: string): void {
    this.#options.observe.onRefused(reason);
    this.#options.log.warn({ reason, status }, 'a webhook was refused');
    sendPlain(response, status, text);
  }
}

interface AdmittedWebhook {
  readonly request: Request;
  readonly response: Response;
  readonly callSid: CallSid;
  readonly params: WebhookParams;
}

/** The 4xx status that Express or its body reader gave an error, if the client is to blame. */
function clientErrorStatus(error: unknown): number | undefined {
  if (typeof error !== 'object' || error === null || !('status' in error)) return undefined;
  const { status } = error;
  return typeof status === 'number' && status >= 400 && status < 500 ? status : undefined;
}

/**
 * The router for `POST /twilio/voice[/:agent]`, `/twilio/after`, `/twilio/status` and `/twilio/stream`. It answers
 * its own errors and leaves every other path alone. Mount it at the root, before any other body reader.
 */
export function createWebhooks(options: WebhookOptions): Router {
  const webhooks = new Webhooks(options);
  const router = Router();
  webhooks.route(router, `${VOICE_PATH}{/:agent}`, (call) => webhooks.voice(call));
  webhooks.route(router, AFTER_PATH, (call) => webhooks.after(call));
  webhooks.route(router, HANDOFF_PATH, (call) => webhooks.handoff(call));
  webhooks.route(router, STATUS_PATH, (call) => webhooks.status(call));
  webhooks.route(router, STREAM_STATUS_PATH, (call) => webhooks.streamStatus(call));
  router.use(webhooks.onError);
  return router;
}
