/**
 * An event as it will be stored, made and checked at the moment when it is handed over: what is done to the object later,
 * while it waits for the database, changes nothing, and its size is known.
 */
import { errorText, StoreError } from '../errors.js';
import { eventSchema, type Event, functionResponses, type JsonObject, NO_ACTIONS } from '../event/event.js';
import { EVENT_MAX_BYTES } from '../limits.js';
import { withoutTemp } from './state-scopes.js';
import { checkName, checkSession } from './stored-name.js';
import type { SessionKey } from './store.js';

export interface StateChange {
  readonly key: string;
  /** JSON. */
  readonly value: string;
}

export interface PreparedEvent {
  readonly session: SessionKey;
  readonly id: string;
  /** The event as JSON, in which NUL and lone surrogates are escapes; without `temp:` state. */
  readonly body: string;
  /** UTF-8 bytes of `body`. */
  readonly bytes: number;
  readonly changes: readonly StateChange[];
  /** It may tell what a pending call has come to, which is settled with it: such an event has the call's id. */
  readonly maySettle: boolean;
}

/** @throws StoreError `store_refused` */
export function stateChanges(delta: JsonObject): StateChange[] {
  return Object.entries(withoutTemp(delta)).flatMap(([key, value]) => {
    checkName('a state key', key);
    const json: string | undefined = JSON.stringify(value);
    return json === undefined ? [] : [{ key, value: json }];
  });
}

/** @throws StoreError `store_refused` for a partial event and for what cannot be stored. */
export function prepareEvent(session: SessionKey, event: Event): PreparedEvent {
  checkSession(session);
  checkName('the event id', event.id);
  if (event.partial === true) throw new StoreError('store_refused', 'a partial event is never stored');
  const { id, appName, userId } = session;
  const actions = { ...event.actions, stateDelta: withoutTemp(event.actions.stateDelta) };
  try {
    const body = JSON.stringify({ ...event, actions });
    // What could not be read again must not be stored.
    eventSchema.parse(JSON.parse(body));
    const bytes = Buffer.byteLength(body);
    if (bytes > EVENT_MAX_BYTES)
      throw new StoreError(
        'store_refused',
        `an event of ${bytes} bytes is above the bound of ${EVENT_MAX_BYTES}`,
      );
    const changes = stateChanges(event.actions.stateDelta);
    const maySettle = functionResponses(event).length > 0;
    return { session: { appName, userId, id }, id: event.id, body, bytes, changes, maySettle };
  } catch (error) {
    if (error instanceof StoreError) throw error;
    throw new StoreError('store_refused', `an event is not one that can be stored: ${shapeFault(error)}`);
  }
}

/**
 * As much of an event as can be stored: what was said and what a function answered are not lost for a change that the store
 * refuses. `refused` is why its changes were left out. @throws StoreError `store_refused` where no more can be left out.
 */
export function prepareWhatCanBe(
  session: SessionKey,
  event: Event,
): { readonly prepared: PreparedEvent; readonly refused?: StoreError } {
  try {
    return { prepared: prepareEvent(session, event) };
  } catch (error) {
    const { stateDelta, artifactDelta } = event.actions;
    const isMore = Object.keys({ ...stateDelta, ...artifactDelta }).length > 0;
    if (event.content === undefined || !isMore || !(error instanceof StoreError)) throw error;
    return { prepared: prepareEvent(session, { ...event, actions: NO_ACTIONS }), refused: error };
  }
}

/** What is wrong, without the value, which may be what a caller said. */
function shapeFault(error: unknown): string {
  return error instanceof TypeError ? errorText(error) : 'a field has another shape than it should';
}
