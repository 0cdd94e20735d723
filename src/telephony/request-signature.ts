/**
 * Twilio's signature on a webhook or on a media socket's upgrade. The hashing and the constant-time comparison are
 * the twilio library's; this file gives it the right URLs to try and keeps it from throwing. Only the configured
 * public URL counts: no header can change the host that was signed, it can only spell the same host otherwise.
 */
import twilio from 'twilio';

export interface SigningKeys {
  /** The public origin, maybe with a port and a base path, spelled as Twilio was given it. */
  readonly publicUrl: string;
  /** The account's primary auth token. */
  readonly authToken: string;
  /** The secret of a SharedKey, where a webhook rule of the account signs with one. */
  readonly sharedKey: string | undefined;
}

/** Parameters of a form, over all of which Twilio signs. A repeated name has an array. */
export type WebhookParams = Readonly<Record<string, string | readonly string[]>>;

/** What the signature covers besides the URL. */
export type SignedBody =
  | { readonly kind: 'form'; readonly params: WebhookParams }
  /** Covered through `bodySHA256` in the query; without it the body is unsigned and the check fails. */
  | { readonly kind: 'raw'; readonly bytes: Buffer }
  /** The upgrade of a media socket: `wss://` and no parameters. */
  | { readonly kind: 'upgrade' };

export interface SignedRequest {
  /** Path and query as they came in on the request line. */
  readonly originalUrl: string;
  /** `X-Twilio-Signature`. */
  readonly signature: string | undefined;
  /** `X-Twilio-Webhooks-Signature-Settings`: present when a SharedKey signed. */
  readonly signatureSettings: string | undefined;
  /** `Host`, used only as another spelling of the public host. */
  readonly hostHeader: string | undefined;
  readonly body: SignedBody;
}

const SIGNATURE_PATTERN = /^[A-Za-z0-9+/]{27}=$|^[A-Za-z0-9+/]{43}=$/;
const PUBLIC_URL_PATTERN = /^(https?):\/\/([^/?#]+)([^?#]*)/i;

interface PublicUrlParts {
  readonly secure: boolean;
  readonly userInfo: string;
  /** Host without a port, as configured. */
  readonly host: string;
  /** `:port`, the scheme's own if none was configured. */
  readonly port: string;
  /** Without a trailing slash. */
  readonly basePath: string;
}

function splitHostPort(authority: string): { host: string; port: string } {
  const colon = authority.indexOf(':', authority.lastIndexOf(']') + 1);
  if (colon === -1) return { host: authority, port: '' };
  return { host: authority.slice(0, colon), port: authority.slice(colon) };
}

function splitPublicUrl(publicUrl: string): PublicUrlParts | undefined {
  const [, scheme = '', authority = '', path = ''] = PUBLIC_URL_PATTERN.exec(publicUrl) ?? [];
  if (authority === '') return undefined;
  const secure = scheme.toLowerCase() === 'https';
  const userInfoEnd = authority.lastIndexOf('@') + 1;
  const { host, port } = splitHostPort(authority.slice(userInfoEnd));
  return {
    secure,
    userInfo: authority.slice(0, userInfoEnd),
    host,
    port: port === '' ? (secure ? ':443' : ':80') : port,
    basePath: path.replace(/\/+$/, ''),
  };
}

/**
 * Every URL that Twilio may have signed for this request, each with an explicit port: the library tries it without
 * one by itself, but would add `:80` to a bare `wss://` URL (twilio 6.3.1, `addPort`).
 */
function candidateUrls(parts: PublicUrlParts, request: SignedRequest): Set<string> {
  const web = parts.secure ? 'https' : 'http';
  const schemes = request.body.kind === 'upgrade' ? [parts.secure ? 'wss' : 'ws', web] : [web];

  const hosts = [parts.host, parts.host.toLowerCase()];
  const requested = splitHostPort(request.hostHeader ?? '').host;
  if (requested.toLowerCase() === parts.host.toLowerCase()) hosts.push(requested);

  // A proxy may or may not strip the base path before it hands the request on.
  const paths = [parts.basePath + request.originalUrl];
  if (parts.basePath !== '' && request.originalUrl.startsWith(`${parts.basePath}/`)) {
    paths.push(request.originalUrl);
  }

  const urls = new Set<string>();
  for (const scheme of schemes) {
    for (const host of hosts) {
      for (const path of paths) urls.add(`${scheme}://${parts.userInfo}${host}${parts.port}${path}`);
    }
  }
  return urls;
}

/** The secret and algorithm to check with; undefined when the request cannot be checked at all. */
function signingSecret(
  keys: SigningKeys,
  settings: string | undefined,
): { secret: string; algorithm: string } | undefined {
  if (settings === undefined) return { secret: keys.authToken, algorithm: twilio.HMAC_SHA1 };
  const algorithm = twilio.getSignatureAlgorithm(settings).toUpperCase();
  // The library prints a warning for an algorithm that it does not know, so it never gets one.
  const known = algorithm === twilio.HMAC_SHA1 || algorithm === twilio.HMAC_SHA256;
  if (!known || keys.sharedKey === undefined || keys.sharedKey === '') return undefined;
  return { secret: keys.sharedKey, algorithm };
}

function checksBody(body: SignedBody, originalUrl: string): boolean {
  if (body.kind !== 'raw') return true;
  const query = new URLSearchParams(originalUrl.split('?').slice(1).join('?'));
  return twilio.validateBody(body.bytes.toString('utf8'), query.get('bodySHA256') ?? '');
}

/**
 * Tells whether Twilio signed this request with our key. Never throws: whatever cannot be checked is not signed.
 * A `X-Twilio-Webhooks-Signature-Settings` header asks for the SharedKey; without one configured it fails.
 */
export function isSignedByTwilio(keys: SigningKeys, request: SignedRequest): boolean {
  const { signature, originalUrl, body } = request;
  if (signature === undefined || !SIGNATURE_PATTERN.test(signature)) return false;
  if (keys.authToken === '' || !originalUrl.startsWith('/')) return false;
  const parts = splitPublicUrl(keys.publicUrl);
  const key = signingSecret(keys, request.signatureSettings);
  if (parts === undefined || key === undefined) return false;
  const params = body.kind === 'form' ? body.params : {};
  try {
    for (const url of candidateUrls(parts, request)) {
      if (twilio.validateRequest(key.secret, signature, url, params, key.algorithm)) {
        return checksBody(body, originalUrl);
      }
    }
  } catch {
    // The library throws on a URL that cannot be parsed.
  }
  return false;
}
