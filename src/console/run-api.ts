/**
 * The text modes over HTTP: `POST /run` answers when the run is over, `POST /run_sse` as it goes. A client that leaves stops its run;
 * whoever only watches a call does not touch it.
 */
import type { Request, Response, Router } from 'express';
import { z } from 'zod';
import { AppError, errorText } from '../errors.js';
import { faultFields } from '../foreign.js';
import { faultText, isWholeText, NO_WHOLE_TEXT } from '../input-fault.js';
import { MESSAGE_MAX_CHARS } from '../limits.js';
import type { Log } from '../observe/log.js';
import type { TextMode } from '../observe/run-observer.js';
import type { Broadcast } from '../wire/broadcast.js';
import type { FrameSink, FrameSinkListener } from '../wire/frame-sink.js';
import { serveEvents } from '../wire/serve-events.js';
import { SseWriter } from '../wire/sse-writer.js';
import type { WireFrame } from '../wire/wire-frame.js';

export type StartRun = (
  request: {
    readonly userId: string;
    readonly sessionId: string | undefined;
    readonly message: string;
    readonly mode: TextMode;
  },
  signal: AbortSignal,
) => Promise<{
  readonly sessionId: string;
  readonly broadcast: Broadcast;
  readonly outcome: Promise<unknown>;
  /** What could not be stored, once all is over; of a message its `msg`. */
  readonly losses: readonly {
    readonly code: string;
    readonly message: string;
    readonly msg: string | undefined;
  }[];
}>;

/** What the routes want of the runs. */
export interface RunDoor {
  /** Absent where there is no text model. */
  readonly start: StartRun | undefined;
  /** Of a call that is going on or has just ended. */
  broadcastOf(callSid: string): Broadcast | undefined;
  /** What of the runs is alive, by kind. */
  counts(): Readonly<Record<string, number>>;
}

export interface RunApiOptions {
  readonly runs: RunDoor;
  readonly log: Log;
}

const name = z.string().min(1).max(256);
const words = z.string().max(MESSAGE_MAX_CHARS).refine(isWholeText, NO_WHOLE_TEXT);
const body = z.strictObject({
  userId: name,
  sessionId: name.optional(),
  newMessage: z.strictObject({
    role: z.literal('user').optional(),
    parts: z.array(z.strictObject({ text: words })).min(1),
  }),
});

/** By the run's own error codes; anything else is ours. */
const STATUS_OF: Readonly<Record<string, number>> = {
  run_conflict: 409,
  run_refused: 503,
  server_draining: 503,
  store_failed: 503,
  store_refused: 400,
  model_unreachable: 502,
  model_setup_refused: 502,
  model_connect_timeout: 504,
};

export function addRunRoutes(api: Router, { runs, log }: RunApiOptions): void {
  const { start } = runs;
  if (start !== undefined) {
    api.post(
      '/run',
      (request, response) => void answer(response, log, () => runWhole(start, request, response)),
    );
    api.post(
      '/run_sse',
      (request, response) => void answer(response, log, () => runStreamed(start, request, response)),
    );
  }
  api.get('/run_live', (_request, response) => {
    response.status(426).set('Upgrade', 'websocket').json({ error: 'open a WebSocket here' });
  });
  api.get('/calls/:callSid/stream', (request, response) => {
    const broadcast = runs.broadcastOf(request.params.callSid);
    if (broadcast === undefined) response.status(404).json({ error: 'there is no such call in progress' });
    else serveEvents(broadcast, request, response);
  });
}

async function answer(response: Response, log: Log, run: () => Promise<void>): Promise<void> {
  try {
    await run();
  } catch (error) {
    const status = error instanceof AppError ? (STATUS_OF[error.code] ?? 500) : 500;
    if (status === 500)
      log.error({ cause: errorText(error), ...faultFields(error) }, 'a run could not be started');
    if (response.headersSent) response.destroy();
    else {
      const told = error instanceof AppError ? error.message : 'internal error';
      response
        .status(status)
        .json({ error: told, code: error instanceof AppError ? error.code : 'internal_error' });
    }
  }
}

function readMessage(request: Request, response: Response) {
  // Where nothing was sent there is no body at all.
  const read = body.safeParse(request.body ?? {});
  if (!read.success) {
    response.status(400).json({ error: faultText(read.error, 'the body') });
    return undefined;
  }
  const { userId, sessionId, newMessage } = read.data;
  const message = newMessage.parts.map((part) => part.text).join('');
  if (message.trim() !== '') return { userId, sessionId, message };
  response.status(400).json({ error: 'newMessage: is empty' });
  return undefined;
}

/** Aborted when the client has gone before its answer was whole. */
function signalOf(response: Response): AbortSignal {
  const controller = new AbortController();
  response.on('close', () => {
    if (!response.writableFinished) controller.abort();
  });
  return controller.signal;
}

async function runStreamed(start: StartRun, request: Request, response: Response): Promise<void> {
  const message = readMessage(request, response);
  if (message === undefined) return;
  const { sessionId, broadcast } = await start({ ...message, mode: 'sse' }, signalOf(response));
  // A header holds ASCII only, and an id any text.
  response.setHeader('X-Session-Id', encodeURIComponent(sessionId));
  broadcast.watch(new SseWriter(response), { fromStart: true });
}

async function runWhole(start: StartRun, request: Request, response: Response): Promise<void> {
  const message = readMessage(request, response);
  if (message === undefined) return;
  const { sessionId, broadcast, outcome, losses } = await start(
    { ...message, mode: 'none' },
    signalOf(response),
  );
  const collector = new Collector();
  broadcast.watch(collector, { fromStart: true });
  await outcome;
  await collector.ended;
  // What is told here as said is found again: a message that could not be stored is not among them.
  const isStored = ({ msg }: WholeMessage): boolean => !losses.some((loss) => loss.msg === msg);
  const whole = { sessionId, messages: collector.messages.filter(isStored), tools: collector.tools };
  const [loss] = losses;
  const { failure } = collector;
  if (failure === undefined && loss === undefined) {
    response.json(whole);
    return;
  }
  const code = failure?.code ?? loss?.code ?? 'internal_error';
  const status = failure === undefined ? 503 : (STATUS_OF[code] ?? 502);
  const error = [failure?.message, loss?.message].filter((text) => text !== undefined).join(' ');
  response.status(status).json({ ...whole, error, code });
}

interface WholeMessage {
  readonly msg: string;
  readonly role: string;
  readonly text: string;
}

/** A run's frames, kept until it is over: complete messages, the last state of each tool, and what it failed of. */
class Collector implements FrameSink {
  readonly isGone = false;
  readonly messages: WholeMessage[] = [];
  failure: { readonly code: string; readonly message: string } | undefined;
  readonly #tools = new Map<
    string,
    { readonly callId: string; readonly name: string; readonly state: string }
  >();
  #listener: FrameSinkListener | undefined;
  #end: () => void = () => {};
  readonly ended = new Promise<void>((resolve) => {
    this.#end = resolve;
  });

  get tools(): readonly object[] {
    return [...this.#tools.values()];
  }

  /** It takes everything at once. */
  listen(listener: FrameSinkListener): void {
    this.#listener = listener;
  }

  write(frames: readonly WireFrame[]): boolean {
    for (const { frame } of frames) {
      if (frame.type === 'done') this.messages.push({ msg: frame.msg, role: frame.role, text: frame.text });
      else if (frame.type === 'tool') {
        this.#tools.set(frame.callId, { callId: frame.callId, name: frame.name, state: frame.state });
      } else if (frame.type === 'error' && frame.fatal)
        this.failure = { code: frame.code, message: frame.message };
    }
    return true;
  }

  end(): void {
    this.#end();
    this.#listener?.gone();
  }

  cut(): void {
    this.end();
  }
}
