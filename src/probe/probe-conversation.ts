/**
 * One sentence to a running server, whole (`POST /run`) or live (`WS /run_live`), and what it came to: told by the frames that
 * any client gets, and by what is stored of it.
 */
import { WebSocket } from 'ws';
import { connectLive, type Page, storedMessages } from '../client/index.js';
import type { Clock } from '../clock.js';
import type { Event, FunctionResponse, JsonObject } from '../event/event.js';
import { PROBE_TURN_MAX_MS } from '../tool-limits.js';

export const PROBE_MODES = ['run', 'live'] as const;
export type ProbeMode = (typeof PROBE_MODES)[number];

export interface Answer {
  /** All that the agent said. */
  readonly text: string;
  /** Complete ones of the agent. */
  readonly messages: number;
  /** Results in the order in which they are stored; of a call that waits, what it waits for. */
  readonly responses: readonly { readonly name: string; readonly response: JsonObject }[];
  /** Messages of the model that called functions. */
  readonly callGroups: number;
}

export interface Sentence {
  readonly url: string;
  readonly app: string;
  readonly userId: string;
  readonly sessionId: string;
  readonly text: string;
  /** Functions that it leads to: how many live results are waited for. */
  readonly calls: readonly string[];
}

/** Rejects where the server refuses it, or it is not answered within PROBE_TURN_MAX_MS. */
export async function ask(sentence: Sentence, mode: ProbeMode, clock: Clock): Promise<Answer> {
  const told = mode === 'run' ? await askWhole(sentence) : await askLive(sentence, clock);
  const events = await eventsOf(sentence);
  const parts = events.flatMap(({ content }) => content?.parts ?? []);
  const responses = parts.flatMap(({ functionResponse }) => functionResponse ?? []);
  return {
    text: told.join(' '),
    messages: told.length,
    responses: responses.map(({ name, response = {} }: FunctionResponse) => ({ name, response })),
    callGroups: events.filter(({ content }) => content?.parts?.some((part) => part.functionCall)).length,
  };
}

/** The agent's messages. */
async function askWhole({ url, userId, sessionId, text }: Sentence): Promise<string[]> {
  const response = await fetch(`${url}/run`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ userId, sessionId, newMessage: { parts: [{ text }] } }),
    signal: AbortSignal.timeout(PROBE_TURN_MAX_MS),
  });
  const body = (await response.json()) as { error?: string; messages?: { role: string; text: string }[] };
  if (!response.ok) throw new Error(`POST /run: HTTP ${response.status}, ${body.error ?? ''}`);
  return (body.messages ?? []).filter(({ role }) => role === 'model').map((message) => message.text);
}

/** Hangs up when the answer is complete, or at the first failure that is told: nothing may go wrong here. */
async function askLive({ url, userId, sessionId, text, calls }: Sentence, clock: Clock): Promise<string[]> {
  const live = connectLive({
    url: `${url.replace(/^http/, 'ws')}/run_live`,
    userId,
    sessionId,
    WebSocket,
    onChange: (page) => {
      if (page.failures.length > 0 || isAnswered(page, calls.length)) live.end();
    },
  });
  live.sendText(text);
  const timer = clock.setTimer(PROBE_TURN_MAX_MS, () => live.close());
  await live.ended;
  timer.cancel();
  const { state } = live;
  const [failure] = state.failures;
  if (failure !== undefined) throw new Error(`WS /run_live: ${failure.code}, ${failure.message}`);
  if (!isAnswered(state, calls.length)) {
    const called =
      state.messages.flatMap(({ tools }) => tools.map(({ name }) => name)).join(', ') || 'nothing';
    throw new Error(`no answer within ${PROBE_TURN_MAX_MS / 1_000} s; called: ${called}`);
  }
  return storedMessages(state)
    .filter(({ role }) => role === 'model')
    .map((message) => message.text);
}

function isAnswered({ messages }: Page, calls: number): boolean {
  const tools = messages.flatMap((message) => message.tools);
  const last = messages.at(-1);
  return (
    last?.role === 'model' &&
    messages.every(({ status }) => status !== 'open') &&
    tools.every(({ state }) => state !== 'running') &&
    tools.length >= calls
  );
}

async function eventsOf({ url, app, userId, sessionId }: Sentence): Promise<readonly Event[]> {
  const path = ['apps', app, 'users', userId, 'sessions', sessionId].map(encodeURIComponent).join('/');
  const response = await fetch(`${url}/${path}`, { signal: AbortSignal.timeout(PROBE_TURN_MAX_MS) });
  if (!response.ok) throw new Error(`the session is not stored: HTTP ${response.status}`);
  return ((await response.json()) as { events: readonly Event[] }).events;
}
