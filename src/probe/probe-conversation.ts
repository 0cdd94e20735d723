/**
 * One conversation with a running server, whole (`POST /run`), as it goes (`POST /run_sse`) or live (`WS /run_live`), and what it
 * came to: told by the frames that any client gets, and by what is stored of it.
 */
import { WebSocket } from 'ws';
import {
  connectEvents,
  connectLive,
  type LiveConnection,
  type Page,
  storedMessages,
} from '../client/index.js';
import type { Clock, Timer } from '../clock.js';
import type { Event, FunctionResponse, JsonObject } from '../event/event.js';
import { PROBE_PICTURE_EVERY_MS, PROBE_SOUND_EVERY_MS, PROBE_TURN_MAX_MS } from '../tool-limits.js';
import { NOISE_FORMAT, PICTURE, steadyNoise } from './probe-input.js';

export const PROBE_MODES = ['run', 'sse', 'live'] as const;
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

export interface Line {
  readonly text: string;
  /** Functions that it leads to: how many live results are waited for. */
  readonly calls: readonly string[];
  /** How often the agent has to speak up by itself before the next line; only live. */
  readonly reports?: number;
}

export interface Conversation {
  readonly url: string;
  readonly app: string;
  readonly userId: string;
  readonly sessionId: string;
  /** Each is typed when the one before is answered. */
  readonly lines: readonly Line[];
  /** What a web client sends beside them. */
  readonly shows?: 'noise' | 'picture' | undefined;
}

/** Rejects where the server refuses a line, or all are not answered within PROBE_TURN_MAX_MS each. */
export async function converse(conversation: Conversation, mode: ProbeMode, clock: Clock): Promise<Answer> {
  const told = await TELLS[mode](conversation, clock);
  const events = await eventsOf(conversation);
  const parts = events.flatMap(({ content }) => content?.parts ?? []);
  const responses = parts.flatMap(({ functionResponse }) => functionResponse ?? []);
  return {
    text: told.join(' '),
    messages: told.length,
    responses: responses.map(({ name, response = {} }: FunctionResponse) => ({ name, response })),
    callGroups: events.filter(({ content }) => content?.parts?.some((part) => part.functionCall)).length,
  };
}

/** Each resolves with the agent's messages. */
const TELLS: Readonly<Record<ProbeMode, (conversation: Conversation, clock: Clock) => Promise<string[]>>> = {
  run: (conversation) => eachLine(conversation, tellWhole),
  sse: (conversation) => eachLine(conversation, tellAsItGoes),
  live: tellLive,
};

async function eachLine(
  conversation: Conversation,
  tell: (url: string, message: object) => Promise<string[]>,
): Promise<string[]> {
  const { url, userId, sessionId, lines } = conversation;
  const told: string[] = [];
  for (const { text } of lines)
    told.push(...(await tell(url, { userId, sessionId, newMessage: { parts: [{ text }] } })));
  return told;
}

async function tellWhole(url: string, message: object): Promise<string[]> {
  const response = await fetch(`${url}/run`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(message),
    signal: AbortSignal.timeout(PROBE_TURN_MAX_MS),
  });
  const body = (await response.json()) as { error?: string; messages?: { role: string; text: string }[] };
  if (!response.ok) throw new Error(`POST /run: HTTP ${response.status}, ${body.error ?? ''}`);
  return (body.messages ?? []).filter(({ role }) => role === 'model').map(({ text }) => text);
}

async function tellAsItGoes(url: string, message: object): Promise<string[]> {
  const signal = AbortSignal.timeout(PROBE_TURN_MAX_MS);
  const stream = connectEvents({ url: `${url}/run_sse`, body: message, signal });
  const { reason, detail } = await stream.ended;
  const [failure] = stream.state.failures;
  if (failure !== undefined) throw new Error(`POST /run_sse: ${failure.code}, ${failure.message}`);
  if (reason !== 'finished') throw new Error(`POST /run_sse: ${reason}, ${detail}`);
  return saidBy(stream.state);
}

/** Hangs up when the last line is answered, or at the first failure that is told: nothing may go wrong here. */
async function tellLive(conversation: Conversation, clock: Clock): Promise<string[]> {
  const { url, userId, sessionId, lines, shows } = conversation;
  let typed = 0;
  const live = connectLive({
    url: `${url.replace(/^http/, 'ws')}/run_live`,
    userId,
    sessionId,
    WebSocket,
    ...(shows === 'noise' && { audio: NOISE_FORMAT }),
    onChange(page) {
      const isAnswered = isAnsweredUpTo(page, lines.slice(0, typed));
      if (page.failures.length > 0 || (isAnswered && typed === lines.length)) live.end();
      else if (isAnswered) typeNext();
    },
  });
  const typeNext = (): void => {
    live.sendText(lines[typed]?.text ?? '');
    typed += 1;
  };
  typeNext();
  const shown = shows === undefined ? undefined : keepShowing(shows, live, clock);
  const maxMs = PROBE_TURN_MAX_MS * lines.length;
  const timer = clock.setTimer(maxMs, () => live.close());
  await live.ended;
  timer.cancel();
  shown?.cancel();
  const { state } = live;
  const [failure] = state.failures;
  if (failure !== undefined) throw new Error(`WS /run_live: ${failure.code}, ${failure.message}`);
  if (!isAnsweredUpTo(state, lines)) {
    const called = toolsOf(state).map(({ name }) => name);
    throw new Error(`no answer within ${maxMs / 1_000} s; called: ${called.join(', ') || 'nothing'}`);
  }
  return saidBy(state);
}

/** Sound all the time; a picture now and then, once a tool looks. */
function keepShowing(what: 'noise' | 'picture', live: LiveConnection, clock: Clock): Timer {
  const noise = steadyNoise(PROBE_SOUND_EVERY_MS);
  const everyMs = what === 'noise' ? PROBE_SOUND_EVERY_MS : PROBE_PICTURE_EVERY_MS;
  let timer: Timer;
  const show = (): void => {
    if (what === 'noise') live.sendAudio(noise);
    else if (toolsOf(live.state).length > 0) live.sendImage('image/png', PICTURE);
    timer = clock.setTimer(everyMs, show);
  };
  timer = clock.setTimer(everyMs, show);
  return { cancel: () => timer.cancel() };
}

/** Every message is complete and every call answered; behind the last line the agent has spoken, and as often as it has to report. */
function isAnsweredUpTo(page: Page, lines: readonly Line[]): boolean {
  const { messages } = page;
  const calls = lines.flatMap((line) => line.calls).length;
  const last = messages.findLastIndex(({ role }) => role === 'user');
  return (
    messages.filter(({ role }) => role === 'user').length === lines.length &&
    messages.every(({ status }) => status !== 'open') &&
    messages.length - last - 1 >= 1 + (lines.at(-1)?.reports ?? 0) &&
    toolsOf(page).every(({ state }) => state !== 'running') &&
    toolsOf(page).length >= calls
  );
}

const toolsOf = ({ messages }: Page) => messages.flatMap(({ tools }) => tools);

const saidBy = (page: Page): string[] =>
  storedMessages(page)
    .filter(({ role }) => role === 'model')
    .map(({ text }) => text);

async function eventsOf({ url, app, userId, sessionId }: Conversation): Promise<readonly Event[]> {
  const path = ['apps', app, 'users', userId, 'sessions', sessionId].map(encodeURIComponent).join('/');
  const response = await fetch(`${url}/${path}`, { signal: AbortSignal.timeout(PROBE_TURN_MAX_MS) });
  if (!response.ok) throw new Error(`the session is not stored: HTTP ${response.status}`);
  return ((await response.json()) as { events: readonly Event[] }).events;
}
