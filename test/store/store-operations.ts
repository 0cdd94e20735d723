/**
 * Random operations on a store, each an instruction that any store can be given, and what it answers.
 */
import * as fc from 'fast-check';
import type { Event, JsonObject } from '../../src/event/event.js';
import type { SessionKey, Store } from '../../src/store/store.js';
import type { StoreModel } from './store-model.js';
import { changeEvent, errorOf, userEvent } from './store-fixture.js';

export type Operation =
  | { readonly do: 'create'; readonly key: SessionKey; readonly state: JsonObject }
  | { readonly do: 'append'; readonly key: SessionKey; readonly event: Event }
  | { readonly do: 'save'; readonly key: SessionKey; readonly name: string; readonly data: string }
  | { readonly do: 'deleteSession'; readonly key: SessionKey }
  | { readonly do: 'deleteUser'; readonly key: SessionKey }
  | { readonly do: 'deleteOlderThan'; readonly agoMs: number }
  | { readonly do: 'wait'; readonly ms: number }
  | { readonly do: 'look'; readonly key: SessionKey };

/** Few of each, so that they meet; and no two alike to a careless comparison. */
export function operations(appName: string): fc.Arbitrary<Operation[]> {
  const key = fc.record({
    appName: fc.constantFrom(appName, appName.toUpperCase()),
    userId: fc.constantFrom('ada', 'Ada', '%'),
    id: fc.constantFrom('1', '1 ', 'é'),
  });
  const state = fc.dictionary(
    fc.constantFrom('k', 'K', 'é', '__proto__', 'user:k', 'user:', 'app:k', 'temp:k', 'user:__proto__'),
    fc.jsonValue({ maxDepth: 2 }),
    { maxKeys: 4, noNullPrototype: true },
  );
  const id = fc.constantFrom('e1', 'e2', 'e3', 'e4', 'e5', 'e6');
  const event = fc
    .record({
      id,
      state,
      text: fc.string({ unit: 'binary', maxLength: 20 }),
      partial: fc.constantFrom(true, ...Array<false>(9).fill(false)),
    })
    .map(({ id: eventId, state: delta, text, partial }) => ({
      ...changeEvent(eventId, delta),
      ...userContent(eventId, text),
      ...(partial && { partial }),
    }));
  const name = fc.constantFrom('photo', 'Photo', 'user:photo', 'é');
  return fc.array(
    fc.oneof(
      { weight: 4, arbitrary: fc.record({ do: fc.constant('create' as const), key, state }) },
      { weight: 10, arbitrary: fc.record({ do: fc.constant('append' as const), key, event }) },
      {
        weight: 4,
        arbitrary: fc.record({
          do: fc.constant('save' as const),
          key,
          name,
          data: fc.string({ maxLength: 5 }),
        }),
      },
      { weight: 1, arbitrary: fc.record({ do: fc.constant('deleteSession' as const), key }) },
      { weight: 1, arbitrary: fc.record({ do: fc.constant('deleteUser' as const), key }) },
      {
        weight: 1,
        arbitrary: fc.record({ do: fc.constant('deleteOlderThan' as const), agoMs: fc.nat(3_000) }),
      },
      { weight: 3, arbitrary: fc.record({ do: fc.constant('wait' as const), ms: fc.nat(2_000) }) },
      { weight: 3, arbitrary: fc.record({ do: fc.constant('look' as const), key }) },
    ),
    { minLength: 10, maxLength: 60, size: 'max' },
  );
}

function userContent(id: string, text: string): Pick<Event, 'content'> {
  const { content } = userEvent(id, text);
  return content === undefined ? {} : { content };
}

/** What an operation answers: a value, or an error's code. */
export async function answerOf(store: Store, operation: Operation, nowMs: number): Promise<unknown> {
  const coded = async (answer: Promise<unknown>) => {
    const { code } = await errorOf(answer);
    return code === 'none' ? answer : code;
  };
  switch (operation.do) {
    case 'create':
      return coded(store.createSession(operation.key, operation.state));
    case 'append':
      return coded(store.appendEvent(operation.key, operation.event));
    case 'save':
      return coded(
        store.saveArtifact(operation.key, operation.name, Buffer.from(operation.data), 'text/plain'),
      );
    case 'deleteSession':
      return coded(store.deleteSession(operation.key));
    case 'deleteUser':
      return coded(store.deleteUser({ appName: operation.key.appName }, operation.key.userId));
    case 'deleteOlderThan':
      return coded(store.deleteOlderThan(nowMs - operation.agoMs));
    case 'wait':
      return undefined;
    case 'look':
      return lookAt(store, operation.key);
  }
}

export function modelAnswer(model: StoreModel, operation: Operation, nowMs: number): unknown {
  switch (operation.do) {
    case 'create':
      return model.create(operation.key, operation.state);
    case 'append':
      return model.append(operation.key, operation.event);
    case 'save':
      return model.save(operation.key, operation.name, operation.data);
    case 'deleteSession':
      return model.deleteSession(operation.key);
    case 'deleteUser':
      return model.deleteUser(operation.key.appName, operation.key.userId);
    case 'deleteOlderThan':
      return model.deleteOlderThan(nowMs - operation.agoMs);
    case 'wait':
      return undefined;
    case 'look':
      return {
        session: model.session(operation.key),
        sessions: model.list(operation.key.appName),
        artifacts: model.artifacts(operation.key),
      };
  }
}

/** All that can be read at one session, the lists page by page. */
async function lookAt(store: Store, key: SessionKey): Promise<unknown> {
  const session = await store.getSession(key);
  const events = await pages((after: number | undefined) =>
    store.listEvents(key, { limit: 2, ...(after && { after }) }),
  );
  if (
    session !== undefined &&
    JSON.stringify(events.map(({ event }) => event)) !== JSON.stringify(session.events)
  )
    return 'pages of events differ from the session';
  const listed = await pages((after: string | undefined) =>
    store.listArtifacts(key, { limit: 1, ...(after && { after }) }),
  );
  const artifacts: [string, string[]][] = [];
  for (const { name, versions } of listed) {
    const data: string[] = [];
    for (let version = 0; version < versions; version += 1)
      data.push(Buffer.from((await store.loadArtifact(key, name, version))?.bytes ?? []).toString());
    artifacts.push([name, data]);
  }
  const sessions = await pages((after: string | undefined) =>
    store.listSessions({ appName: key.appName }, { limit: 3, ...(after && { after }) }),
  );
  return { session, sessions, artifacts };
}

async function pages<Item, Cursor>(
  read: (after: Cursor | undefined) => Promise<{ items: readonly Item[]; next?: Cursor } | undefined>,
): Promise<Item[]> {
  const all: Item[] = [];
  let after: Cursor | undefined;
  do {
    const page = await read(after);
    all.push(...(page?.items ?? []));
    after = page?.next;
  } while (after !== undefined);
  return all;
}
