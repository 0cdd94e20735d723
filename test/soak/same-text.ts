/**
 * Whether page, envelope and store tell the same words of one call. The store is what was committed; the page (`GET /calls/:callSid`)
 * and what a watcher was told as sealed must have the same messages, in whatever order their words came to rest.
 */

export interface Told {
  readonly role: string;
  readonly text: string;
}

/** A stored event, as far as it has words. */
export interface WordedEvent {
  readonly author: string;
  readonly content?: { readonly role?: string; readonly parts?: readonly { readonly text?: string }[] };
}

export function toldByEvents(events: readonly WordedEvent[]): Told[] {
  return events.map(({ author, content }) => ({
    role: author === 'user' ? 'user' : 'model',
    text: (content?.parts ?? []).map((part) => part.text ?? '').join(''),
  }));
}

const lineOf = ({ role, text }: Told): string => `${role}: ${text.trim()}`;

function counted(messages: readonly Told[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const message of messages) {
    if (message.text.trim() !== '') counts.set(lineOf(message), (counts.get(lineOf(message)) ?? 0) + 1);
  }
  return counts;
}

/** What the first has and the second has not, a line each. */
export function missingIn(first: readonly Told[], second: readonly Told[]): string[] {
  const there = counted(second);
  return [...counted(first)].flatMap(([line, count]) => {
    const short = count - (there.get(line) ?? 0);
    return short > 0 ? [line] : [];
  });
}
