/** Scopes of a call for tests that have only a part of one. */
import type { RestScope, SocketScope } from '../../src/call-tap.js';
import { CallClock } from '../../src/call/call-clock.js';
import type { CallTime, Clock } from '../../src/clock.js';

/** A call's time on `clock`, and nobody who records. */
export function scopeOn(clock: Clock): SocketScope & RestScope {
  return { clock: new CallClock(clock), tap: undefined };
}

/** The listener as a socket calls it: the call's time moves on before each call. */
export function entering<T extends object>(listener: T, time: CallTime): T {
  return new Proxy(listener, {
    get(target, key) {
      const method: unknown = Reflect.get(target, key);
      if (typeof method !== 'function') return method;
      return (...args: unknown[]): unknown => {
        time.enter();
        return Reflect.apply(method, target, args);
      };
    },
  });
}

/** A webhook's request where its content does not matter. */
export const SOME_REQUEST = { path: '/twilio/voice', params: {} } as const;
