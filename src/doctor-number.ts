/**
 * The doctor's look at Twilio: are the credentials good, and does the number lead to this server and nowhere else.
 * Reads only.
 */
import type { Config } from './config.js';
import { type Finding, finding } from './doctor-finding.js';
import type { NumberSettings, TwilioAccount } from './telephony/twilio-account.js';
import { STATUS_PATH, VOICE_PATH } from './telephony/twiml.js';

export interface AccountCheck {
  /** Which credentials: they are tried one by one. */
  readonly about: string;
  readonly account: TwilioAccount;
  /** An API key of the kind Standard may do all that the server does, but not read the account itself. */
  readonly byApiKey: boolean;
}

/** Asks for the account with one kind of credentials. */
export async function checkAccount({ about, account, byApiKey }: AccountCheck): Promise<Finding> {
  const answer = await account.fetchAccount();
  switch (answer.kind) {
    case 'found': {
      const text = `the account is ${answer.status} (${answer.type})`;
      return finding(about, answer.status === 'active', { text, mend: 'activate it in the Twilio console' });
    }
    case 'noCredentials': {
      const text = 'no REST credentials: goodbyes end the line only through the TwiML behind the stream';
      const mend =
        'set TWILIO_ACCOUNT_SID with TWILIO_AUTH_TOKEN, or with TWILIO_API_KEY and TWILIO_API_SECRET';
      return { about, state: 'mend', text, mend };
    }
    case 'failed': {
      const { cause, status } = answer.failure;
      if (byApiKey && (status === 401 || status === 403) && (await account.canListNumbers())) {
        return { about, state: 'ok', text: 'the key is good, though it may not read the account itself' };
      }
      const mend = byApiKey
        ? 'check TWILIO_ACCOUNT_SID, TWILIO_API_KEY, TWILIO_API_SECRET and the region'
        : 'check TWILIO_ACCOUNT_SID, TWILIO_AUTH_TOKEN and the region';
      return { about, state: 'mend', text: cause, mend };
    }
  }
}

/** Where the number leads. `hasAgent` tells which names `/twilio/voice/NAME` may end in. */
export async function checkNumber(
  account: TwilioAccount,
  config: Config,
  hasAgent: (name: string) => boolean,
): Promise<Finding[]> {
  const about = 'number';
  const { TWILIO_NUMBER: number, PUBLIC_URL: publicUrl } = config;
  if (publicUrl === undefined) {
    return [{ about, state: 'unchecked', text: 'PUBLIC_URL is unset, so that it can lead nowhere yet' }];
  }
  if (number === undefined) {
    const mend = 'set it so that the number can be checked';
    return [{ about, state: 'mend', text: 'TWILIO_NUMBER is unset', mend }];
  }
  const answer = await account.findNumber(number);
  switch (answer.kind) {
    case 'found':
      return checkSettings(answer.settings, publicUrl, hasAgent);
    case 'noCredentials':
      return [{ about, state: 'unchecked', text: 'cannot be looked up without REST credentials' }];
    case 'notOwned': {
      const mend = 'check TWILIO_NUMBER and the account';
      return [{ about, state: 'mend', text: 'the account does not own TWILIO_NUMBER', mend }];
    }
    case 'failed':
      return [{ about, state: 'unchecked', text: `cannot be looked up: ${answer.failure.cause}` }];
  }
}

function checkSettings(
  settings: NumberSettings,
  publicUrl: string,
  hasAgent: (name: string) => boolean,
): Finding[] {
  const fallback = settings.voiceFallbackUrl;
  return [
    finding('number', settings.redirectedTo === undefined, {
      text:
        settings.redirectedTo === undefined
          ? 'the account owns it'
          : `its calls go to ${settings.redirectedTo}, and Twilio ignores the URLs below`,
      mend: 'set the number’s voice configuration to Webhook',
    }),
    checkVoiceUrl(settings.voiceUrl, publicUrl, hasAgent),
    checkMethod('voice method', settings.voiceMethod),
    finding('fallback URL', fallback !== undefined && isElsewhere(fallback, publicUrl), {
      text: fallback ?? 'unset',
      mend: 'set one on other infrastructure (a TwiML Bin that says sorry), for the day this server does not answer',
    }),
    finding('status callback', pathBelow(publicUrl, settings.statusCallback) === STATUS_PATH, {
      text: settings.statusCallback ?? 'unset',
      mend: `set it to ${publicUrl}${STATUS_PATH}`,
    }),
    checkMethod('status callback method', settings.statusCallbackMethod),
  ];
}

function checkVoiceUrl(
  voiceUrl: string | undefined,
  publicUrl: string,
  hasAgent: (name: string) => boolean,
): Finding {
  const path = pathBelow(publicUrl, voiceUrl);
  const name = path?.startsWith(`${VOICE_PATH}/`) === true ? path.slice(VOICE_PATH.length + 1) : undefined;
  const isRight = path === VOICE_PATH || (name !== undefined && hasAgent(name));
  const mend = `set it to ${publicUrl}${VOICE_PATH}, or to that with / and the name of an agent that exists`;
  return finding('voice URL', isRight, { text: voiceUrl ?? 'unset', mend });
}

function checkMethod(about: string, method: string | undefined): Finding {
  return finding(about, method === 'POST', { text: method ?? 'unset', mend: 'set it to POST' });
}

/** What follows the public origin in a URL, to the letter; the case of the host and a default port do not matter. */
function pathBelow(publicUrl: string, url: string | undefined): string | undefined {
  const [, origin = '', rest] = /^(https?:\/\/[^/?#\\\s]+)(.*)$/is.exec(url ?? '') ?? [];
  if (!URL.canParse(origin)) return undefined;
  const parsed = new URL(origin);
  return parsed.username === '' && parsed.origin === new URL(publicUrl).origin ? rest : undefined;
}

function isElsewhere(url: string, publicUrl: string): boolean {
  if (!URL.canParse(url)) return false;
  const { hostname, protocol } = new URL(url);
  return /^https?:$/.test(protocol) && hostname !== new URL(publicUrl).hostname;
}
