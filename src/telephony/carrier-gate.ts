/**
 * Who may come in through the carrier's doors, the same for webhooks and for the media socket. With an auth token:
 * whoever Twilio's signature vouches for, and nobody else. Without one the server is for this machine only: the
 * request must name a loopback host, must not have come through a proxy or tunnel, and no foreign web page may have
 * sent it.
 */
import type { IncomingMessage } from 'node:http';
import { cameThroughProxy, isLoopbackHostHeader } from '../loopback.js';
import { isSignedByTwilio, type SignedBody } from './request-signature.js';

export interface CarrierTrust {
  readonly publicUrl: string | undefined;
  readonly authToken: string | undefined;
  readonly sharedKey: string | undefined;
}

export const GATE_REFUSALS = ['signature', 'hostNotLoopback', 'forwarded', 'foreignOrigin'] as const;
export type GateRefusal = (typeof GATE_REFUSALS)[number];

function isForeignOrigin(origin: string | undefined, host: string): boolean {
  if (origin === undefined) return false;
  const spelled = origin.toLowerCase();
  const own = host.toLowerCase();
  return spelled !== `http://${own}` && spelled !== `https://${own}`;
}

function singleHeader(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value.join(', ') : value;
}

export class CarrierGate {
  readonly #trust: CarrierTrust;

  constructor(trust: CarrierTrust) {
    this.#trust = trust;
  }

  /** Why the request is not let in, or undefined. `originalUrl` is path and query as received. */
  refusal(request: IncomingMessage, originalUrl: string, body: SignedBody): GateRefusal | undefined {
    const { publicUrl, authToken, sharedKey } = this.#trust;
    const { headers } = request;
    if (authToken !== undefined) {
      if (publicUrl === undefined) return 'signature';
      const signed = isSignedByTwilio(
        { publicUrl, authToken, sharedKey },
        {
          originalUrl,
          signature: singleHeader(headers['x-twilio-signature']),
          signatureSettings: singleHeader(headers['x-twilio-webhooks-signature-settings']),
          hostHeader: headers.host,
          body,
        },
      );
      return signed ? undefined : 'signature';
    }
    if (headers.host === undefined || !isLoopbackHostHeader(headers.host)) return 'hostNotLoopback';
    if (cameThroughProxy(headers)) return 'forwarded';
    if (isForeignOrigin(headers.origin, headers.host)) return 'foreignOrigin';
    return undefined;
  }

  /**
   * The origin (and base path) for URLs in answers, without a trailing slash: the configured one, else that of a
   * request which `refusal` let in, whose `Host` is then a loopback name.
   */
  publicOrigin(request: IncomingMessage): string {
    const origin = this.#trust.publicUrl ?? `http://${request.headers.host ?? 'localhost'}`;
    return origin.replace(/\/+$/, '');
  }
}
