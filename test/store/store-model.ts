/**
 * What a store does, written down once more in the simplest way: everything in memory, everything compared in full.
 */
import type { Event, JsonObject } from '../../src/event/event.js';
import type { SessionKey } from '../../src/store/store.js';

interface ModelSession extends SessionKey {
  readonly createdAtMs: number;
  updatedAtMs: number;
  readonly events: Event[];
  readonly state: Map<string, unknown>;
  readonly artifacts: Map<string, string[]>;
}

interface ModelUser {
  readonly state: Map<string, { readonly value: unknown; readonly atMs: number }>;
  readonly artifacts: Map<string, { readonly data: string; readonly atMs: number }[]>;
}

const byBytes = (a: string, b: string) => Buffer.compare(Buffer.from(a), Buffer.from(b));

export class StoreModel {
  readonly #sessions = new Map<string, ModelSession>();
  readonly #users = new Map<string, ModelUser>();
  readonly #apps = new Map<string, Map<string, unknown>>();
  readonly #now: () => number;

  constructor(now: () => number) {
    this.#now = now;
  }

  create(key: SessionKey, state: JsonObject): boolean {
    const name = nameOf(key);
    if (this.#sessions.has(name)) return false;
    const session = {
      ...key,
      createdAtMs: this.#now(),
      updatedAtMs: this.#now(),
      events: [],
      state: new Map(),
      artifacts: new Map(),
    };
    this.#sessions.set(name, session);
    this.#apply(session, state);
    return true;
  }

  append(key: SessionKey, event: Event): number | string {
    if (event.partial === true) return 'store_refused';
    const session = this.#sessions.get(nameOf(key));
    if (session === undefined) return 'store_no_session';
    const stored = withoutTemp(event);
    const known = session.events.findIndex(({ id }) => id === event.id);
    if (known >= 0)
      return JSON.stringify(session.events[known]) === JSON.stringify(stored) ? known + 1 : 'store_conflict';
    session.events.push(stored);
    session.updatedAtMs = this.#now();
    this.#apply(session, event.actions.stateDelta);
    return session.events.length;
  }

  save(key: SessionKey, name: string, data: string): number | string {
    const session = this.#sessions.get(nameOf(key));
    if (session === undefined) return 'store_no_session';
    session.updatedAtMs = this.#now();
    if (name.startsWith('user:')) {
      const versions = this.#user(key).artifacts.get(name) ?? [];
      this.#user(key).artifacts.set(name, [...versions, { data, atMs: this.#now() }]);
      return versions.length;
    }
    const versions = session.artifacts.get(name) ?? [];
    session.artifacts.set(name, [...versions, data]);
    return versions.length;
  }

  deleteSession(key: SessionKey): boolean {
    return this.#sessions.delete(nameOf(key));
  }

  deleteUser(appName: string, userId: string): object {
    const sessions = [...this.#sessions.values()].filter(
      (one) => one.appName === appName && one.userId === userId,
    );
    for (const session of sessions) this.deleteSession(session);
    const user = this.#users.get(JSON.stringify([appName, userId]));
    this.#users.delete(JSON.stringify([appName, userId]));
    return countsOf(sessions, {
      stateKeys: user?.state.size ?? 0,
      artifactVersions: [...(user?.artifacts.values() ?? [])].flat().length,
    });
  }

  deleteOlderThan(timeMs: number): object {
    const sessions = [...this.#sessions.values()].filter(({ updatedAtMs }) => updatedAtMs < timeMs);
    for (const session of sessions) this.deleteSession(session);
    let [stateKeys, artifactVersions] = [0, 0];
    for (const [name, user] of this.#users) {
      const [appName, userId] = JSON.parse(name) as [string, string];
      if ([...this.#sessions.values()].some((one) => one.appName === appName && one.userId === userId))
        continue;
      for (const [key, { atMs }] of user.state) if (atMs < timeMs && user.state.delete(key)) stateKeys += 1;
      for (const [key, versions] of user.artifacts) {
        if (versions.some(({ atMs }) => atMs >= timeMs)) continue;
        user.artifacts.delete(key);
        artifactVersions += versions.length;
      }
    }
    return countsOf(sessions, { stateKeys, artifactVersions });
  }

  session(key: SessionKey): object | undefined {
    const session = this.#sessions.get(nameOf(key));
    if (session === undefined) return undefined;
    const { createdAtMs, updatedAtMs, events } = session;
    const user = [...this.#user(key).state].map(([name, { value }]) => [name, value] as const);
    const entries = [...session.state, ...user, ...(this.#apps.get(key.appName) ?? [])];
    const state = Object.fromEntries(entries.sort(([a], [b]) => byBytes(a, b)));
    return { ...key, createdAtMs, updatedAtMs, state, events: [...events], omittedEvents: 0 };
  }

  /** Newest first. */
  list(appName: string): object[] {
    return [...this.#sessions.values()]
      .filter((session) => session.appName === appName)
      .sort((a, b) => b.createdAtMs - a.createdAtMs || byBytes(b.userId, a.userId) || byBytes(b.id, a.id))
      .map(({ userId, id, createdAtMs, updatedAtMs }) => ({ appName, userId, id, createdAtMs, updatedAtMs }));
  }

  artifacts(key: SessionKey): [string, string[]][] {
    const own = [...(this.#sessions.get(nameOf(key))?.artifacts ?? [])];
    const shared = [...this.#user(key).artifacts].map(([name, versions]): [string, string[]] => [
      name,
      versions.map(({ data }) => data),
    ]);
    return [...own, ...shared].sort(([a], [b]) => byBytes(a, b));
  }

  #user({ appName, userId }: SessionKey): ModelUser {
    const name = JSON.stringify([appName, userId]);
    const user = this.#users.get(name) ?? { state: new Map(), artifacts: new Map() };
    this.#users.set(name, user);
    return user;
  }

  #apply(session: ModelSession, delta: JsonObject): void {
    for (const [key, value] of Object.entries(delta)) {
      if (key.startsWith('temp:')) continue;
      if (key.startsWith('user:')) this.#user(session).state.set(key, { value, atMs: this.#now() });
      else if (key.startsWith('app:'))
        this.#apps.set(
          session.appName,
          (this.#apps.get(session.appName) ?? new Map<string, unknown>()).set(key, value),
        );
      else session.state.set(key, value);
    }
  }
}

function nameOf({ appName, userId, id }: SessionKey): string {
  return JSON.stringify([appName, userId, id]);
}

function withoutTemp(event: Event): Event {
  const kept = Object.entries(event.actions.stateDelta).filter(([key]) => !key.startsWith('temp:'));
  return { ...event, actions: { ...event.actions, stateDelta: Object.fromEntries(kept) } };
}

function countsOf(
  sessions: readonly ModelSession[],
  shared: { readonly stateKeys: number; readonly artifactVersions: number },
): object {
  const sum = (count: (session: ModelSession) => number) =>
    sessions.reduce((all, one) => all + count(one), 0);
  return {
    sessions: sessions.length,
    events: sum(({ events }) => events.length),
    stateKeys: shared.stateKeys + sum(({ state }) => state.size),
    artifactVersions: shared.artifactVersions + sum(({ artifacts }) => [...artifacts.values()].flat().length),
    memoryFacts: 0,
  };
}
