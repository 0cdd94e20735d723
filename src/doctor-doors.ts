/**
 * The doctor's look at the running server from outside, through PUBLIC_URL: is it reachable, do signed requests get in
 * through whatever stands in front, and do unsigned ones stay out. Redirects are not followed, as Twilio's socket does
 * not follow them.
 */
import twilio from 'twilio';
import { WebSocket } from 'ws';
import type { Config } from './config.js';
import { type Finding, finding } from './doctor-finding.js';
import { errorText } from './errors.js';
import { MEDIA_PATH, STATUS_PATH } from './telephony/twiml.js';

const TIMEOUT_MS = 10_000;
const { getExpectedTwilioSignature } = twilio;
/** The form of a signature, and of no use as one. */
const FORGED_SIGNATURE = `${'A'.repeat(27)}=`;

/** Every check answers; none throws. */
export async function checkPublicDoors(config: Config): Promise<Finding[]> {
  const { PUBLIC_URL: publicUrl, TWILIO_AUTH_TOKEN: token } = config;
  if (publicUrl === undefined || token === undefined) {
    const mend = 'set PUBLIC_URL and TWILIO_AUTH_TOKEN to take calls from Twilio';
    return [{ about: 'public doors', state: 'mend', text: 'closed: only this machine can call', mend }];
  }
  const reachable = await checkHealth(publicUrl);
  if (reachable.state !== 'ok') {
    const text = 'not looked at, since the server is not there';
    return [reachable, { about: 'public doors', state: 'unchecked', text }];
  }
  return [
    reachable,
    await checkWebhook({ publicUrl, token, signed: true }),
    await checkWebhook({ publicUrl, token, signed: false }),
    await checkMediaSocket({ publicUrl, token, signed: true }),
    await checkMediaSocket({ publicUrl, token, signed: false }),
  ];
}

async function checkHealth(publicUrl: string): Promise<Finding> {
  const about = 'PUBLIC_URL';
  const mend = 'start the server, and point the tunnel or proxy at HOST and PORT';
  try {
    const response = await fetch(`${publicUrl}/healthz`, {
      signal: AbortSignal.timeout(TIMEOUT_MS),
      redirect: 'manual',
    });
    return finding(about, response.status === 200, { text: `/healthz answers ${response.status}`, mend });
  } catch (error) {
    return { about, state: 'mend', text: `cannot be reached: ${networkText(error)}`, mend };
  }
}

interface DoorCheck {
  readonly publicUrl: string;
  readonly token: string;
  readonly signed: boolean;
}

/** Asks about a call that does not exist: harmless, and behind the same door as a call. */
async function checkWebhook({ publicUrl, token, signed }: DoorCheck): Promise<Finding> {
  const url = publicUrl + STATUS_PATH;
  const params = { CallSid: `CA${'0'.repeat(32)}`, CallStatus: 'completed' };
  const about = signed ? 'signed webhook' : 'unsigned webhook';
  const mend = signed
    ? 'the server must run with this PUBLIC_URL and TWILIO_AUTH_TOKEN, and the proxy must pass path and body on unchanged'
    : 'something in front of the server lets unsigned requests pass: take it away';
  try {
    const response = await fetch(url, {
      method: 'POST',
      headers: {
        'X-Twilio-Signature': signed ? getExpectedTwilioSignature(token, url, params) : FORGED_SIGNATURE,
      },
      body: new URLSearchParams(params),
      signal: AbortSignal.timeout(TIMEOUT_MS),
      redirect: 'manual',
    });
    const text = `answered ${response.status}`;
    return finding(about, response.status === (signed ? 200 : 403), { text, mend });
  } catch (error) {
    return { about, state: 'mend', text: networkText(error), mend };
  }
}

function checkMediaSocket({ publicUrl, token, signed }: DoorCheck): Promise<Finding> {
  const about = signed ? 'signed media socket' : 'unsigned media socket';
  const url = publicUrl.replace(/^http/i, 'ws') + MEDIA_PATH;
  const mend = signed
    ? 'the proxy must pass WebSocket upgrades (Connection and Upgrade headers) through, and the path unchanged'
    : 'something in front of the server lets unsigned sockets pass: take it away';
  return new Promise((resolve) => {
    const socket = new WebSocket(url, {
      headers: {
        'X-Twilio-Signature': signed ? getExpectedTwilioSignature(token, url, {}) : FORGED_SIGNATURE,
      },
      handshakeTimeout: TIMEOUT_MS,
    });
    socket.on('open', () => {
      resolve(finding(about, signed, { text: 'opens', mend }));
      socket.terminate();
    });
    socket.on('unexpected-response', (request, response) => {
      const text = `answered ${response.statusCode}`;
      resolve(finding(about, !signed && response.statusCode === 403, { text, mend }));
      request.destroy();
    });
    socket.on('error', (error) => resolve({ about, state: 'mend', text: networkText(error), mend }));
  });
}

/** `fetch` hides the system's own word on a failure in the cause of its error. */
function networkText(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  const code: unknown = cause instanceof Error && 'code' in cause ? cause.code : undefined;
  const text = errorText(cause);
  return typeof code === 'string' && !text.includes(code) ? `${code} ${text}`.trim() : text;
}
