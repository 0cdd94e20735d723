/**
 * What was said and done in a conversation before, in the words that stand in a live model's instruction: of the ways to give such a model a
 * past it is the one that all of them take. What was heard, not what was meant to be said; and what functions came to, so that nothing is
 * done twice. Oldest first; of a long history the newest that fits.
 */
import {
  type Event,
  type FunctionCall,
  type FunctionResponse,
  functionCalls,
  functionResponses,
} from '../event/event.js';
import { LIVE_HISTORY_MAX_CHARS } from '../limits.js';
import { END_CALL_DECLARATION } from '../tool/built-in-tools.js';
import { called, said, SAID_BEFORE } from './line-texts.js';

/** Undefined where there is nothing to tell. `invocationId`: of the run that goes on, whose
 * missing results are still to come. `heading` stands in front. */
export function saidBefore(
  events: readonly Event[],
  { invocationId, heading = SAID_BEFORE }: { invocationId?: string | undefined; heading?: string } = {},
): string | undefined {
  const responses = lastResponses(events);
  const lines = events.flatMap((event) => [
    ...words(event),
    ...functionCalls(event)
      // That a conversation was ended says nothing in the one that follows.
      .filter(({ name }) => name !== END_CALL_DECLARATION.name)
      .map((call) =>
        called(
          call.name,
          call.args ?? {},
          responses.get(nameOf(event, call))?.response,
          event.invocationId === invocationId,
        ),
      ),
  ]);
  return lines.length === 0 ? undefined : `${heading}\n${newest(lines).join('\n')}`;
}

function words({ author, content }: Event): string[] {
  const text = (content?.parts ?? [])
    .map((part) => (part.thought === true ? '' : (part.text ?? '')))
    .join('')
    .trim();
  return text === '' ? [] : [said(author, text)];
}

/** What each call came to in the end: a pending one has two answers. */
function lastResponses(events: readonly Event[]): ReadonlyMap<string, FunctionResponse> {
  return new Map(
    events.flatMap((event) =>
      functionResponses(event).map((response) => [nameOf(event, response), response] as const),
    ),
  );
}

/** Ids are those of one run: another may give them out again. */
function nameOf({ invocationId }: Event, { id = '' }: Pick<FunctionCall, 'id'>): string {
  return `${invocationId} ${id}`;
}

function newest(lines: readonly string[]): readonly string[] {
  let chars = 0;
  let from = lines.length;
  while (from > 0 && (chars += (lines[from - 1]?.length ?? 0) + 1) <= LIVE_HISTORY_MAX_CHARS) from -= 1;
  // One line that is too long for all of it is better than none.
  return from < lines.length ? lines.slice(from) : [(lines.at(-1) ?? '').slice(-LIVE_HISTORY_MAX_CHARS)];
}
