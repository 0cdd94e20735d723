/**
 * The one-time token that a call's next media stream must bring. The media socket itself carries nothing else that
 * only the carrier knows.
 */
import { timingSafeEqual } from 'node:crypto';
import { newStreamToken } from '../ids.js';

export class StreamTicket {
  #token: string | undefined;

  /** The token for the next stream; another one after it was used. */
  get token(): string {
    this.#token ??= newStreamToken();
    return this.#token;
  }

  /** Whether `given` is the token; then it is used up. */
  redeem(given: string | undefined): boolean {
    if (this.#token === undefined) return false;
    const wanted = Buffer.from(this.#token);
    const shown = Buffer.from(given ?? '');
    if (wanted.length !== shown.length || !timingSafeEqual(wanted, shown)) return false;
    this.#token = undefined;
    return true;
  }
}
