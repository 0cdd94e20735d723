/**
 * Which addresses never leave this machine. Secure-by-default rules hang on it: without tokens, only loopback.
 */
import type { IncomingHttpHeaders } from 'node:http';
import { BlockList, isIP } from 'node:net';

const loopbackAddresses = new BlockList();
loopbackAddresses.addSubnet('127.0.0.0', 8, 'ipv4');
loopbackAddresses.addAddress('::1', 'ipv6');

/** Whether a host name, with no port, brackets allowed (`[::1]`), is this machine's loopback. */
export function isLoopbackHost(hostname: string): boolean {
  const name = hostname.toLowerCase().replace(/^\[(.*)\]$/, '$1');
  if (name === 'localhost') return true;
  const family = isIP(name);
  if (family === 0) return false;
  return loopbackAddresses.check(name, family === 4 ? 'ipv4' : 'ipv6');
}

/** Whether a `Host` header (`name[:port]`) names loopback. */
export function isLoopbackHostHeader(header: string | undefined): boolean {
  if (header === undefined) return false;
  const match = /^(\[[0-9a-fA-F:.]+\]|[^:[\]\s/@]+)(?::\d{1,5})?$/.exec(header);
  return match?.[1] !== undefined && isLoopbackHost(match[1]);
}

/** Set by proxies and tunnels besides `X-Forwarded-*`. */
const PROXY_HEADERS = new Set([
  'forwarded',
  'via',
  'x-real-ip',
  'x-client-ip',
  'cf-connecting-ip',
  'true-client-ip',
  'fly-client-ip',
  'ngrok-trace-id',
  'x-amzn-trace-id',
  'x-envoy-external-address',
]);

/** Whether a request shows that it came through a proxy or a tunnel, from somebody who is not on this machine. */
export function cameThroughProxy(headers: IncomingHttpHeaders): boolean {
  return Object.keys(headers).some(
    (name) => name.startsWith('x-forwarded') || name.startsWith('tailscale-') || PROXY_HEADERS.has(name),
  );
}
