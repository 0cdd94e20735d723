import { createHash } from 'node:crypto';
import * as fc from 'fast-check';
import twilio from 'twilio';
import { describe, expect, it, vi } from 'vitest';
import {
  isSignedByTwilio,
  type SignedBody,
  type SignedRequest,
  type SigningKeys,
  type WebhookParams,
} from '../../src/telephony/request-signature.js';

const TOKEN = 'the-primary-auth-token';
const SHARED = 'the-shared-key-secret';
const FORM: WebhookParams = { CallSid: 'CA1', From: '+15550100', To: '+15550101' };

function keys(publicUrl: string, sharedKey?: string): SigningKeys {
  return { publicUrl, authToken: TOKEN, sharedKey };
}

function sign(url: string, params: WebhookParams = {}, secret = TOKEN, algorithm = twilio.HMAC_SHA1): string {
  return twilio.getExpectedTwilioSignature(secret, url, params, algorithm);
}

function request(
  originalUrl: string,
  signature: string | undefined,
  body: SignedBody,
  more: Partial<SignedRequest> = {},
): SignedRequest {
  return { originalUrl, signature, body, signatureSettings: undefined, hostHeader: undefined, ...more };
}

const form = (params: WebhookParams): SignedBody => ({ kind: 'form', params });
const UPGRADE: SignedBody = { kind: 'upgrade' };

describe('the signature of a webhook', () => {
  it.each([
    ['https://example.com', 'https://example.com/twilio/voice'],
    ['https://example.com', 'https://example.com:443/twilio/voice'],
    ['https://example.com:443', 'https://example.com/twilio/voice'],
    ['https://example.com/', 'https://example.com/twilio/voice'],
    ['https://Example.COM', 'https://Example.COM/twilio/voice'],
    ['https://Example.COM', 'https://example.com/twilio/voice'],
    ['HTTPS://Example.COM', 'https://example.com:443/twilio/voice'],
    ['https://example.com:8443', 'https://example.com:8443/twilio/voice'],
    ['https://example.com/phone', 'https://example.com/phone/twilio/voice'],
    ['https://example.com/phone/', 'https://example.com:443/phone/twilio/voice'],
    ['https://user:pass@example.com', 'https://user:pass@example.com/twilio/voice'],
    ['http://127.0.0.1:8080', 'http://127.0.0.1:8080/twilio/voice'],
    ['http://example.com', 'http://example.com:80/twilio/voice'],
    ['https://[2001:db8::1]', 'https://[2001:db8::1]:443/twilio/voice'],
  ])('holds for PUBLIC_URL %s when Twilio signed %s', (publicUrl, signedUrl) => {
    const signature = sign(signedUrl, FORM);
    expect(isSignedByTwilio(keys(publicUrl), request('/twilio/voice', signature, form(FORM)))).toBe(true);
  });

  it('holds when the proxy keeps the base path in the request', () => {
    const signature = sign('https://example.com/phone/twilio/voice', FORM);
    const seen = request('/phone/twilio/voice', signature, form(FORM));
    expect(isSignedByTwilio(keys('https://example.com/phone'), seen)).toBe(true);
  });

  it('holds when the number was given the host in another spelling, which Host repeats', () => {
    const signature = sign('https://Example.com/twilio/voice', FORM);
    const plain = request('/twilio/voice', signature, form(FORM));
    expect(isSignedByTwilio(keys('https://example.com'), plain)).toBe(false);
    const spelled = { ...plain, hostHeader: 'Example.com' };
    expect(isSignedByTwilio(keys('https://example.com'), spelled)).toBe(true);
  });

  it('never takes the host from the Host header', () => {
    const signature = sign('https://evil.example/twilio/voice', FORM);
    const seen = request('/twilio/voice', signature, form(FORM), { hostHeader: 'evil.example' });
    expect(isSignedByTwilio(keys('https://example.com'), seen)).toBe(false);
  });

  it('covers the query as it was sent, odd characters included', () => {
    const path = "/twilio/voice/support?a=1&b=it's%20%27quoted%27&c=%C3%A9&a=2&d";
    const signature = sign(`https://example.com${path}`, FORM);
    expect(isSignedByTwilio(keys('https://example.com'), request(path, signature, form(FORM)))).toBe(true);
    const changed = request(path.replace('a=1', 'a=3'), signature, form(FORM));
    expect(isSignedByTwilio(keys('https://example.com'), changed)).toBe(false);
  });

  it('covers any parameters, repeated ones too, and notices every change', () => {
    const name = fc.string({ minLength: 1, maxLength: 12, unit: 'binary' });
    const value = fc.string({ maxLength: 12, unit: 'binary' });
    const values = fc.oneof(value, fc.array(value, { minLength: 2, maxLength: 4 }));
    const params = fc
      .array(fc.tuple(name, values), { maxLength: 8 })
      .map((pairs) => Object.assign(Object.create(null), Object.fromEntries(pairs)) as WebhookParams);
    fc.assert(
      fc.property(params, name, (sent, extra) => {
        const signature = sign('https://example.com/twilio/voice', sent);
        const seen = request('/twilio/voice', signature, form(sent));
        expect(isSignedByTwilio(keys('https://example.com'), seen)).toBe(true);
        if (!(extra in sent)) {
          const more = form(
            Object.assign(Object.create(null), sent, { [`${extra}!`]: 'x' }) as WebhookParams,
          );
          expect(isSignedByTwilio(keys('https://example.com'), { ...seen, body: more })).toBe(false);
        }
      }),
    );
  });

  it.each([
    ['no signature', undefined],
    ['an empty one', ''],
    ['another key', sign('https://example.com/twilio/voice', FORM, 'another-token')],
    ['another path', sign('https://example.com/twilio/after', FORM)],
    ['another host', sign('https://example.org/twilio/voice', FORM)],
    ['another scheme', sign('http://example.com/twilio/voice', FORM)],
    ['two signatures in one header', `${sign('https://example.com/twilio/voice', FORM)}, x`],
    ['the right one cut short', sign('https://example.com/twilio/voice', FORM).slice(0, -2)],
  ])('fails with %s', (_name, signature) => {
    const seen = request('/twilio/voice', signature, form(FORM));
    expect(isSignedByTwilio(keys('https://example.com'), seen)).toBe(false);
  });

  it('is false, never an exception, for URLs that nobody could have signed', () => {
    const signature = sign('https://example.com/twilio/voice', FORM);
    for (const publicUrl of [
      '',
      'example.com',
      'ftp://example.com',
      'https://',
      'https://[',
      'https://a b',
      'x',
    ]) {
      expect(isSignedByTwilio(keys(publicUrl), request('/twilio/voice', signature, form(FORM)))).toBe(false);
    }
    for (const originalUrl of ['', 'http://example.com/twilio/voice', '*', '//', '/\u0000', '/%zz?%zz']) {
      expect(isSignedByTwilio(keys('https://example.com'), request(originalUrl, signature, form(FORM)))).toBe(
        false,
      );
    }
    const noToken = { ...keys('https://example.com'), authToken: '' };
    expect(isSignedByTwilio(noToken, request('/twilio/voice', signature, form(FORM)))).toBe(false);
  });
});

describe('the signature of an upgrade', () => {
  it.each([
    ['https://example.com', 'wss://example.com/twilio/media'],
    ['https://example.com', 'wss://example.com:443/twilio/media'],
    ['https://example.com:443', 'wss://example.com/twilio/media'],
    ['https://Example.COM', 'wss://Example.COM/twilio/media'],
    ['https://Example.COM', 'wss://example.com:443/twilio/media'],
    ['https://example.com', 'https://example.com/twilio/media'],
    ['https://example.com', 'https://example.com:443/twilio/media'],
    ['https://example.com:8443/phone', 'wss://example.com:8443/phone/twilio/media'],
    ['http://127.0.0.1:8080', 'ws://127.0.0.1:8080/twilio/media'],
  ])('holds for PUBLIC_URL %s when Twilio signed %s', (publicUrl, signedUrl) => {
    const seen = request('/twilio/media', sign(signedUrl), UPGRADE);
    expect(isSignedByTwilio(keys(publicUrl), seen)).toBe(true);
  });

  it('fails for another path, host or an added slash', () => {
    for (const url of [
      'wss://example.com/twilio/media/',
      'wss://example.org/twilio/media',
      'ws://example.com/twilio/media',
    ]) {
      const seen = request('/twilio/media', sign(url), UPGRADE);
      expect(isSignedByTwilio(keys('https://example.com'), seen)).toBe(false);
    }
  });
});

describe('the signature of a JSON body', () => {
  const raw = Buffer.from('{"CallSid":"CA1","text":"caf\u00e9"}');
  const path = `/twilio/status?bodySHA256=${createHash('sha256').update(raw).digest('hex')}`;
  const signature = sign(`https://example.com${path}`);

  it('holds through its hash in the signed query', () => {
    const seen = request(path, signature, { kind: 'raw', bytes: raw });
    expect(isSignedByTwilio(keys('https://example.com'), seen)).toBe(true);
  });

  it('fails for another body, and for a body without a hash', () => {
    const other = Buffer.from(raw.toString().replace('CA1', 'CA2'));
    expect(
      isSignedByTwilio(keys('https://example.com'), request(path, signature, { kind: 'raw', bytes: other })),
    ).toBe(false);
    const bare = request('/twilio/status', sign('https://example.com/twilio/status'), {
      kind: 'raw',
      bytes: raw,
    });
    expect(isSignedByTwilio(keys('https://example.com'), bare)).toBe(false);
  });
});

describe('a signature by SharedKey', () => {
  const url = 'https://example.com/twilio/voice';
  const settings = 'key=webhooks_sharedkey_1,algorithm=HMAC_SHA256';

  it('is checked with the shared secret and the algorithm named in the header', () => {
    for (const algorithm of [twilio.HMAC_SHA1, twilio.HMAC_SHA256]) {
      const signature = sign(url, FORM, SHARED, algorithm);
      const seen = request('/twilio/voice', signature, form(FORM), {
        signatureSettings: `key=webhooks_sharedkey_1,algorithm=${algorithm}`,
      });
      expect(isSignedByTwilio(keys('https://example.com', SHARED), seen)).toBe(true);
      expect(isSignedByTwilio(keys('https://example.com', 'wrong'), seen)).toBe(false);
      expect(isSignedByTwilio(keys('https://example.com'), seen)).toBe(false);
    }
  });

  it('is not replaced by the auth token', () => {
    const seen = request('/twilio/voice', sign(url, FORM), form(FORM), { signatureSettings: settings });
    expect(isSignedByTwilio(keys('https://example.com'), seen)).toBe(false);
    expect(isSignedByTwilio(keys('https://example.com', SHARED), seen)).toBe(false);
  });

  it('fails quietly for an algorithm that the library does not know', () => {
    const warn = vi.spyOn(console, 'warn').mockImplementation(() => {});
    const seen = request('/twilio/voice', sign(url, FORM, SHARED), form(FORM), {
      signatureSettings: 'key=k,algorithm=HMAC_MD5',
    });
    expect(isSignedByTwilio(keys('https://example.com', SHARED), seen)).toBe(false);
    expect(warn).not.toHaveBeenCalled();
    warn.mockRestore();
  });
});
