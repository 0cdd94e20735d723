/**
 * What the doctor asks Twilio about the account: are the credentials good, and where does the number lead. Reads
 * only. Never throws: what went wrong is part of the answer.
 */
import {
  createRestClient,
  readRestFailure,
  type RestFailure,
  type TwilioRestOptions,
} from './twilio-rest.js';

const TIMEOUT_MS = 10_000;
/** Twilio matches parts of numbers; the wanted one is among the first few. */
const MATCHES_MAX = 20;

export type AccountAnswer =
  /** Twilio's word: active, suspended or closed; trial or full. */
  | { readonly kind: 'found'; readonly status: string; readonly type: string }
  | { readonly kind: 'noCredentials' }
  | { readonly kind: 'failed'; readonly failure: RestFailure };

/** Where a number leads. An address that is not set is undefined. */
export interface NumberSettings {
  readonly voiceUrl: string | undefined;
  readonly voiceMethod: string | undefined;
  readonly voiceFallbackUrl: string | undefined;
  readonly statusCallback: string | undefined;
  readonly statusCallbackMethod: string | undefined;
  /** The TwiML App or the SIP trunk that calls go to; with either, Twilio ignores the number's own URLs. */
  readonly redirectedTo: string | undefined;
}

export type NumberAnswer =
  | { readonly kind: 'found'; readonly settings: NumberSettings }
  /** The account does not own this number. */
  | { readonly kind: 'notOwned' }
  | { readonly kind: 'noCredentials' }
  | { readonly kind: 'failed'; readonly failure: RestFailure };

function nonEmpty(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

export class TwilioAccount {
  readonly #options: TwilioRestOptions;

  constructor(options: TwilioRestOptions) {
    this.#options = options;
  }

  /** Checks the credentials by fetching the account itself. */
  async fetchAccount(): Promise<AccountAnswer> {
    const { accountSid } = this.#options;
    try {
      const client = createRestClient(this.#options, TIMEOUT_MS);
      if (client === undefined || accountSid === undefined) return { kind: 'noCredentials' };
      const account = await client.api.v2010.accounts(accountSid).fetch();
      const status = nonEmpty(account.status);
      if (status === undefined) throw new Error('no account in the answer');
      return { kind: 'found', status, type: nonEmpty(account.type) ?? 'unknown' };
    } catch (error) {
      return { kind: 'failed', failure: readRestFailure(error) };
    }
  }

  /** Whether the credentials may list the account's numbers; false too when nothing answers. */
  async canListNumbers(): Promise<boolean> {
    try {
      const client = createRestClient(this.#options, TIMEOUT_MS);
      await client?.incomingPhoneNumbers.list({ limit: 1 });
      return client !== undefined;
    } catch {
      return false;
    }
  }

  /** Looks a number (E.164) up among those that the account owns. */
  async findNumber(phoneNumber: string): Promise<NumberAnswer> {
    try {
      const client = createRestClient(this.#options, TIMEOUT_MS);
      if (client === undefined) return { kind: 'noCredentials' };
      const owned = await client.incomingPhoneNumbers.list({ phoneNumber, limit: MATCHES_MAX });
      const found = owned.find((candidate) => candidate.phoneNumber === phoneNumber);
      if (found === undefined) return { kind: 'notOwned' };
      return {
        kind: 'found',
        settings: {
          voiceUrl: nonEmpty(found.voiceUrl),
          voiceMethod: nonEmpty(found.voiceMethod),
          voiceFallbackUrl: nonEmpty(found.voiceFallbackUrl),
          statusCallback: nonEmpty(found.statusCallback),
          statusCallbackMethod: nonEmpty(found.statusCallbackMethod),
          redirectedTo: nonEmpty(found.voiceApplicationSid) ?? nonEmpty(found.trunkSid),
        },
      };
    } catch (error) {
      return { kind: 'failed', failure: readRestFailure(error) };
    }
  }
}
