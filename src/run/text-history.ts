/**
 * Committed events as the text model wants its history: calls with the words in front of them, an interrupted message as what was heard of
 * it. Nothing is added that was not committed, but for one line where the agent spoke first.
 */
import { type Event, functionCalls, type FunctionResponse, functionResponses } from '../event/event.js';
import { TEXT_HISTORY_MAX_CHARS } from '../limits.js';
import type { TextContent, TextPart } from '../model/text-model.js';

/** The service has refused contents that begin with the model's (https://github.com/NousResearch/hermes-agent/issues/55427), and on
 * the phone the agent greets first. */
const AGENT_BEGAN: TextContent = { role: 'user', parts: [{ text: 'The conversation has begun.' }] };

/** Oldest first; of a long history the newest that fits, beginning with something that the user said. */
export function historyOf(events: readonly Event[]): TextContent[] {
  const contents: TextContent[] = [];
  const responses = lastResponses(events);
  const called = new Set(events.flatMap((event) => functionCalls(event).map((call) => nameOf(event, call))));
  const told = new Set<string>();
  for (const event of events) {
    const { role = event.author === 'user' ? 'user' : 'model', parts = [] } = event.content ?? {};
    if (event.partial === true) continue;
    const kept = parts.flatMap((part): TextPart[] => {
      if (part.functionCall !== undefined)
        return responses.has(nameOf(event, part.functionCall)) ? [{ ...part }] : [];
      if (part.functionResponse === undefined) return [{ ...part }];
      const id = nameOf(event, part.functionResponse);
      if (told.has(id) || !called.has(id)) return [];
      told.add(id);
      return [{ functionResponse: responses.get(id) }];
    });
    if (kept.length === 0) continue;
    const last = contents.at(-1);
    // A call stands in the same content as the words in front of it: the model wants one right behind the user or a response.
    const joins =
      last?.role === role &&
      (role === 'model' ? !hasCalls(last.parts) : isResponses(kept) === isResponses(last.parts));
    if (joins) contents[contents.length - 1] = { role, parts: [...last.parts, ...kept] };
    else contents.push({ role, parts: kept });
  }
  return newest(contents);
}

/** What each call came to in the end: a pending one has two answers, and the model takes one. */
function lastResponses(events: readonly Event[]): ReadonlyMap<string, FunctionResponse> {
  const responses = new Map<string, FunctionResponse>();
  for (const event of events)
    for (const response of functionResponses(event)) responses.set(nameOf(event, response), response);
  return responses;
}

/** Ids are those of one run: another may give them out again. */
function nameOf({ invocationId }: Event, { id = '' }: { readonly id?: string }): string {
  return `${invocationId} ${id}`;
}

function hasCalls(parts: readonly TextPart[]): boolean {
  return parts.some((part) => part['functionCall'] !== undefined);
}

/** Answers of one group were told one by one, and stand together for the model. */
function isResponses(parts: readonly TextPart[]): boolean {
  return parts.every((part) => part['functionResponse'] !== undefined);
}

/** Calls and responses stand in contents of their own: the model is strict about their order. */
function isWords(parts: readonly TextPart[]): boolean {
  return parts.every((part) => part['functionCall'] === undefined && part['functionResponse'] === undefined);
}

function newest(contents: readonly TextContent[]): TextContent[] {
  let chars = 0;
  let from = contents.length;
  while (from > 0) {
    chars += JSON.stringify(contents[from - 1]).length;
    if (chars > TEXT_HISTORY_MAX_CHARS) break;
    from -= 1;
  }
  const kept = contents.slice(from);
  const [oldest] = kept;
  if (from === 0 && oldest?.role === 'model' && isWords(oldest.parts)) return [AGENT_BEGAN, ...kept];
  const first = kept.findIndex(({ role, parts }) => role === 'user' && isWords(parts));
  return first < 0 ? [] : kept.slice(first);
}
