/**
 * The secrets that one run was handed, and how nothing of the run tells them: where words of an author's leave the tools, for
 * the model, an event, a recording, the store or the log, `[secret NAME]` stands in the secret's place. A run that was handed
 * none pays nothing for it. What a tool makes of a secret, such as a hash or a part of it, cannot be found.
 */
import { errorText } from '../errors.js';
import type { EventActions } from '../event/event.js';
import { SECRET_MASKED_MIN_CHARS, SECRET_NAME_TOLD_MAX_CHARS, SECRETS_KEPT_MAX } from '../tool-limits.js';
import { isObject } from './tool-result.js';
import type { CallOutcome, WorkListener } from './tool-work.js';

export class RunSecrets {
  /** What stands in the place of each, the one that was handed out longest ago first. */
  readonly #marks = new Map<string, string>();
  /** Everything that is looked for, the longest first, so that none is found inside another. */
  #forms: readonly (readonly [form: string, mark: string])[] = [];

  /** It is being handed out. */
  keep(name: string, value: string): void {
    // Files end in a line feed, which nobody sends along.
    const secret = value.trim();
    if (secret.length < SECRET_MASKED_MIN_CHARS) return;
    const known = this.#marks.get(secret);
    const mark = known ?? `[secret ${name.slice(0, SECRET_NAME_TOLD_MAX_CHARS)}]`;
    this.#marks.delete(secret);
    this.#marks.set(secret, mark);
    if (known !== undefined) return;
    for (const oldest of this.#marks.keys()) {
      if (this.#marks.size <= SECRETS_KEPT_MAX) break;
      this.#marks.delete(oldest);
    }
    this.#forms = [...this.#marks]
      .flatMap(([each, itsMark]) => formsOf(each).map((form) => [form, itsMark] as const))
      .toSorted(([a], [b]) => b.length - a.length);
  }

  text(text: string): string {
    let masked = text;
    for (const [form, mark] of this.#forms) masked = masked.replaceAll(form, () => mark);
    return masked;
  }

  /** Of anything that was thrown. To be cut only afterwards: half a secret is not found. */
  errorText(error: unknown): string {
    return this.text(errorText(error));
  }

  holds(text: string): boolean {
    return this.text(text) !== text;
  }

  /** Anywhere in it. */
  holdsAny(json: unknown): boolean {
    return this.#forms.length > 0 && JSON.stringify(this.json(json)) !== JSON.stringify(json);
  }

  /** JSON without secrets, in keys and values, however deep; the same object where there is nothing to look for. */
  json<Json>(json: Json): Json {
    if (this.#forms.length === 0) return json;
    const top: unknown[] = [json];
    // Not by recursion: what a tool returns may be nested deeper than the stack.
    const open: Record<string, unknown>[] = [top as unknown as Record<string, unknown>];
    for (let holder = open.pop(); holder !== undefined; holder = open.pop()) {
      for (const [key, inner] of Object.entries(holder)) {
        const masked = this.#shallow(inner);
        holder[key] = masked;
        if (typeof masked === 'object' && masked !== null) open.push(masked as Record<string, unknown>);
      }
    }
    return top[0] as Json;
  }

  /** A copy that may be changed; what is inside is as it was. */
  #shallow(value: unknown): unknown {
    if (typeof value === 'string') return this.text(value);
    if (typeof value === 'number') return this.holds(String(value)) ? this.text(String(value)) : value;
    if (Array.isArray(value)) return [...(value as unknown[])];
    if (!isObject(value)) return value;
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [this.text(key), inner]));
  }

  actions(actions: EventActions): EventActions {
    return this.json(actions);
  }

  outcome(outcome: CallOutcome): CallOutcome {
    const { response, actions } = outcome;
    return { ...outcome, response: this.json(response), actions: this.actions(actions) };
  }

  /** What is told to it comes to `listener` without secrets. */
  listener(listener: WorkListener): WorkListener {
    return {
      update: (update) => listener.update({ ...update, text: this.text(update.text) }),
      ended: (name, isStopped) => listener.ended(name, isStopped),
      changed: (actions) => listener.changed(this.actions(actions)),
      forget: (name) => listener.forget(name),
      ends: () => listener.ends(),
      settled: (call, outcome, eventId) => listener.settled(call, this.outcome(outcome), eventId),
      late: (call, outcome) => listener.late(call, this.outcome(outcome)),
    };
  }
}

/** As it is, and as it stands in JSON, in addresses, in forms and in headers. */
function formsOf(secret: string): string[] {
  const bytes = Buffer.from(secret);
  const isWellFormed = !/\p{Surrogate}/u.test(secret);
  const forms = new Set([
    secret,
    JSON.stringify(secret).slice(1, -1),
    new URLSearchParams([['', secret]]).toString().slice(1),
    ...(isWellFormed ? [encodeURIComponent(secret), encodeURI(secret)] : []),
    bytes.toString('base64').replace(/=+$/, ''),
    bytes.toString('base64url'),
  ]);
  return [...forms];
}
