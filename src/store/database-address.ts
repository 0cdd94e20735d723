/**
 * A `postgres://` address as it may be shown: without its password, wherever in it that stands.
 */
import { StoreError } from '../errors.js';

/** What may be shown, and what takes every form of the secret out of a text. @throws StoreError `store_unusable`. */
export function maskOf(url: string): { readonly address: string; readonly mask: (text: string) => string } {
  const { address, secrets } = addressOf(url);
  return {
    address,
    mask: (text) => secrets.reduce((masked, secret) => masked.replaceAll(secret, '***'), text),
  };
}

/** The address without its query, in which a password may stand as well, and every form of what is secret in it. */
function addressOf(url: string): { readonly address: string; readonly secrets: readonly string[] } {
  if (!URL.canParse(url))
    throw new StoreError('store_unusable', 'DATABASE_URL is not a valid postgres:// address');
  const parsed = new URL(url);
  const asked = [...parsed.searchParams].filter(([name]) => /pass|key|secret|token/i.test(name));
  const written = [parsed.password, ...asked.map(([, value]) => value)];
  const secrets = written.flatMap((secret) => [secret, decoded(secret), encodeURIComponent(secret)]);
  const login = parsed.username === '' ? '' : `${parsed.username}${parsed.password === '' ? '' : ':***'}@`;
  return {
    address: `${parsed.protocol}//${login}${parsed.host}${parsed.pathname}`,
    secrets: [...new Set([url, ...secrets])]
      .filter((secret) => secret !== '')
      .sort((a, b) => b.length - a.length),
  };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
