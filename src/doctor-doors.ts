/**
 * The doctor's look at the running server from outside, through PUBLIC_URL: is it reachable, do signed requests get in
 * through whatever stands in front, and do unsigned ones stay out.
 */
import twilio from 'twilio';
import { WebSocket } from 'ws';
import type { Config } from './config.js';
import { errorText } from './errors.js';

export interface Finding {
  readonly about: string;
  readonly ok: boolean;
  readonly text: string;
  readonly mend?: string;
}

const TIMEOUT_MS = 10_000;
const { getExpectedTwilioSignature } = twilio;

/** Every check answers; none throws. */
export async function checkPublicDoors(config: Config): Promise<Finding[]> {
  const { PUBLIC_URL: publicUrl, TWILIO_AUTH_TOKEN: token } = config;
  if (publicUrl === undefined || token === undefined) {
    const mend = 'set PUBLIC_URL and TWILIO_AUTH_TOKEN to take calls from Twilio';
    return [{ about: 'public doors', ok: false, text: 'closed: only this machine can call', mend }];
  }
  const reachable = await checkHealth(publicUrl);
  if (!reachable.ok) return [reachable];
  return [
    reachable,
    await checkWebhook({ publicUrl, token, signed: true }),
    await checkWebhook({ publicUrl, token, signed: false }),
    await checkMediaSocket(publicUrl, token),
  ];
}

async function checkHealth(publicUrl: string): Promise<Finding> {
  const about = 'PUBLIC_URL';
  const mend = 'start the server, and point the tunnel or proxy at HOST and PORT';
  try {
    const response = await fetch(`${publicUrl}/healthz`, { signal: AbortSignal.timeout(TIMEOUT_MS) });
    return { about, ok: response.status === 200, text: `/healthz answers ${response.status}`, mend };
  } catch (error) {
    return { about, ok: false, text: `cannot be reached: ${errorText(error)}`, mend };
  }
}

/** Asks `/twilio/status` about a call that does not exist: harmless, and behind the same door as a call. */
async function checkWebhook(options: {
  publicUrl: string;
  token: string;
  signed: boolean;
}): Promise<Finding> {
  const url = `${options.publicUrl}/twilio/status`;
  const params = { CallSid: 'CA00000000000000000000000000000000', CallStatus: 'completed' };
  const signature = options.signed ? getExpectedTwilioSignature(options.token, url, params) : 'unsigned';
  const about = options.signed ? 'signed webhook' : 'unsigned webhook';
  const mend = options.signed
    ? 'PUBLIC_URL must be exactly the origin that Twilio calls, and the proxy must pass the body on unchanged'
    : 'something in front of the server lets unsigned requests pass: take it away';
  try {
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'X-Twilio-Signature': signature },
      body: new URLSearchParams(params),
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    const ok = options.signed ? response.ok : response.status === 403;
    return { about, ok, text: `answered ${response.status}`, mend };
  } catch (error) {
    return { about, ok: false, text: errorText(error), mend };
  }
}

function checkMediaSocket(publicUrl: string, token: string): Promise<Finding> {
  const about = 'media socket';
  const url = `${publicUrl.replace(/^http/, 'ws')}/twilio/media`;
  const mend = 'the proxy must pass WebSocket upgrades (Connection and Upgrade headers) through';
  return new Promise((resolve) => {
    const socket = new WebSocket(url, {
      headers: { 'X-Twilio-Signature': getExpectedTwilioSignature(token, url, {}) },
      handshakeTimeout: TIMEOUT_MS,
    });
    socket.on('open', () => {
      resolve({ about, ok: true, text: 'opens' });
      socket.close();
    });
    socket.on('error', (error) => resolve({ about, ok: false, text: errorText(error), mend }));
  });
}
