/**
 * The form parameters of Twilio's requests, with made-up but plausible values: numbers reserved for fiction and the
 * places that belong to them. Sources: Twilio's "TwiML Voice: request parameters", "Call resource: status callback"
 * and "<Stream>: statusCallback".
 */

export interface CallIdentity {
  readonly callSid: string;
  readonly accountSid: string;
  readonly from: string;
  readonly to: string;
}

const API_VERSION = '2010-04-01';
export const DEFAULT_FROM = '+12025550123';
export const DEFAULT_TO = '+12025550199';

function place(role: string): Record<string, string> {
  return {
    [`${role}City`]: 'WASHINGTON',
    [`${role}State`]: 'DC',
    [`${role}Zip`]: '20001',
    [`${role}Country`]: 'US',
  };
}

/** What every request about a call carries. */
function callParams(call: CallIdentity, callStatus: string): Record<string, string> {
  return {
    CallSid: call.callSid,
    AccountSid: call.accountSid,
    From: call.from,
    To: call.to,
    Caller: call.from,
    Called: call.to,
    CallStatus: callStatus,
    ApiVersion: API_VERSION,
    Direction: 'inbound',
    ...place('From'),
    ...place('To'),
    ...place('Caller'),
    ...place('Called'),
  };
}

/** Parameters of a request for TwiML. `overrides` adds and replaces; an empty string removes. */
export function voiceParams(
  call: CallIdentity,
  callStatus: string,
  overrides: Readonly<Record<string, string>>,
): Record<string, string> {
  const params: Record<string, string> = {
    ...callParams(call, callStatus),
    CallToken: `{"parentCallInfoToken":"${call.callSid}","identityHeaderTokens":[]}`,
    StirVerstat: 'TN-Validation-Passed-A',
    ...overrides,
  };
  return Object.fromEntries(Object.entries(params).filter(([, value]) => value !== ''));
}

/** Parameters of a call's status callback. Twilio counts `Duration` in begun minutes and `CallDuration` in seconds. */
export function statusParams(
  call: CallIdentity,
  callStatus: string,
  times: { readonly durationMs: number; readonly wallMs: number; readonly sequence: number },
): Record<string, string> {
  return {
    ...callParams(call, callStatus),
    Duration: String(Math.ceil(times.durationMs / 60_000)),
    CallDuration: String(Math.round(times.durationMs / 1_000)),
    Timestamp: new Date(times.wallMs).toUTCString().replace('GMT', '+0000'),
    CallbackSource: 'call-progress-events',
    SequenceNumber: String(times.sequence),
  };
}

/** Parameters of a stream's status callback; `error` is Twilio's code, with `stream-error` only. */
export function streamStatusParams(
  call: CallIdentity,
  stream: {
    readonly streamSid: string;
    readonly name: string | undefined;
    readonly event: string;
    readonly error: string | undefined;
    readonly wallMs: number;
  },
): Record<string, string> {
  return {
    AccountSid: call.accountSid,
    CallSid: call.callSid,
    StreamSid: stream.streamSid,
    StreamName: stream.name ?? stream.streamSid,
    StreamEvent: stream.event,
    ...(stream.error !== undefined && { StreamError: stream.error }),
    Timestamp: new Date(stream.wallMs).toISOString(),
  };
}
