/**
 * A whole server on a stage of real sockets: phones and web clients in front, a scripted model behind (Live and text), a
 * SQLite file below. What a test says happened is what was seen from outside.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Agent } from '../../src/agent/agent.js';
import type { AgentCatalog } from '../../src/agent/agent-catalog.js';
import { type Clock, systemClock } from '../../src/clock.js';
import { readConfig } from '../../src/config.js';
import type { Event } from '../../src/event/event.js';
import type { Log } from '../../src/observe/log.js';
import { createLog } from '../../src/observe/pino-log.js';
import { Phone, type PhoneOptions } from '../../src/replay/phone.js';
import { DEFAULT_FROM } from '../../src/replay/webhook-params.js';
import { type RunningServer, startServer } from '../../src/server.js';
import { tone } from './call-rig.js';
import { FrameReader, type FrameRequest } from './frame-reader.js';
import { type ScriptedConnection, ScriptedGemini } from './scripted-gemini.js';
import { ScriptedTextModel } from './scripted-text-model.js';
import { waitUntil } from './wait-until.js';

export interface PlacedCall {
  readonly phone: Phone;
  readonly callSid: string;
  readonly over: Promise<unknown>;
  /** The call's connection at the model; the greeting has been asked for. */
  readonly model: ScriptedConnection;
}

/** A stored session as the route shows it. */
export interface ShownSession {
  readonly id: string;
  readonly appName: string;
  readonly userId: string;
  readonly state: object;
  readonly events: readonly Event[];
}

export interface Answered {
  readonly status: number;
  readonly body: Record<string, unknown>;
}

export class Stage {
  readonly gemini: ScriptedGemini;
  readonly textModel: ScriptedTextModel;
  readonly folder: string;
  /** What the server logged as an error, with what only a test may see. */
  readonly errors: string[];
  /** The lines of its log, as they are written. */
  readonly log: string[];
  readonly url: string;
  /** The agent that answers where no other is asked for, by which sessions are kept. */
  readonly app: string;
  readonly #close: () => Promise<void>;

  private constructor(
    parts: Pick<Stage, 'gemini' | 'textModel' | 'folder' | 'errors' | 'log' | 'url' | 'app'>,
    close: () => Promise<void>,
  ) {
    this.gemini = parts.gemini;
    this.textModel = parts.textModel;
    this.folder = parts.folder;
    this.errors = parts.errors;
    this.log = parts.log;
    this.url = parts.url;
    this.app = parts.app;
    this.#close = close;
  }

  /** A server in this process, by the machine's clock or one that a test has; with agents of the test's own, the first of
   * which answers where no other is asked for, or those that ship. */
  static async open(
    environment: Readonly<Record<string, string>> = {},
    clock: Clock = systemClock,
    own: readonly Agent[] = [],
  ): Promise<Stage> {
    const { gemini, textModel, folder, settings } = await Stage.surroundings(environment);
    const errors: string[] = [];
    const lines: string[] = [];
    const written = createLog({ level: 'debug', pretty: false }, { write: (line) => void lines.push(line) });
    const log: Log = {
      debug: (fields, message) => written.debug(fields, message),
      info: (fields, message) => written.info(fields, message),
      warn: (fields, message) => written.warn(fields, message),
      error: (fields, message) => {
        errors.push(`${message} ${JSON.stringify(fields)}`);
        written.error(fields, message);
      },
    };
    const server: RunningServer = await startServer(readConfig({ ...settings, PORT: '0' }), {
      clock,
      log,
      ...(own[0] !== undefined && { agents: catalogOf(own[0], own) }),
    });
    const { url, agent: app } = server;
    return new Stage({ gemini, textModel, folder, errors, log: lines, url, app }, () => server.close());
  }

  /** The same around a server that runs elsewhere; `close` ends that. */
  static async around(
    start: (
      settings: Readonly<Record<string, string>>,
    ) => Promise<{ url: string; close: () => Promise<void> }>,
  ): Promise<Stage> {
    const { gemini, textModel, folder, settings } = await Stage.surroundings({});
    const { url, close } = await start(settings);
    return new Stage({ gemini, textModel, folder, errors: [], log: [], url, app: 'support' }, close);
  }

  /** The same surroundings, with the server that has taken the place of the first one; `close` is the first stage's. */
  static at(url: string, { gemini, textModel, folder, errors, log, app }: Stage): Stage {
    return new Stage({ gemini, textModel, folder, errors, log, url, app }, async () => {});
  }

  private static async surroundings(environment: Readonly<Record<string, string>>) {
    const textModel = new ScriptedTextModel();
    const gemini = await ScriptedGemini.start({ onRequest: textModel.onRequest });
    const folder = mkdtempSync(join(tmpdir(), 'earshot-stage-'));
    const settings = {
      GEMINI_API_KEY: 'key-of-the-model',
      GOOGLE_GEMINI_BASE_URL: gemini.url,
      GREETING_PROTECTION_SECONDS: '0',
      EARSHOT_DEBUG: '1',
      DATA_DIR: folder,
      DATABASE_URL: `sqlite:${join(folder, 'earshot.db')}`,
      ...environment,
    };
    return { gemini, textModel, folder, settings };
  }

  /** The server alone: what it has written lies there still. */
  closeServer(): Promise<void> {
    return this.#close();
  }

  async close(): Promise<void> {
    await this.#close();
    await this.gemini.close();
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** A phone whose stream is open, with the model connected and asked to greet. */
  async call(options: Partial<PhoneOptions> = {}): Promise<PlacedCall> {
    const index = this.gemini.connections.length;
    const phone = new Phone({ clock: systemClock, url: this.url, ...options });
    const over = phone.call().catch((error: unknown) => error);
    const model = await this.gemini.connection(index);
    await model.waitFor((frame) => JSON.stringify(frame).includes('word for word'));
    return { phone, callSid: phone.callSid, over, model };
  }

  read(path: string, request: FrameRequest = {}): FrameReader {
    return new FrameReader(`${this.url}${path}`, request);
  }

  /** A watcher of a call; resolves once it has been told something. */
  async watch(callSid: string, request: FrameRequest = {}): Promise<FrameReader> {
    const reader = this.read(`/calls/${callSid}/stream`, request);
    await reader.until('the first frame', ({ read }) => read.length > 0);
    return reader;
  }

  async json(path: string, options: RequestInit = {}): Promise<Answered> {
    const response = await fetch(`${this.url}${path}`, options);
    return { status: response.status, body: (await response.json()) as Record<string, unknown> };
  }

  run(sessionId: string | undefined, text: string, userId = DEFAULT_FROM): Promise<Answered> {
    return this.json('/run', {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify(Stage.message(sessionId, text, userId)),
    });
  }

  stream(sessionId: string | undefined, text: string, userId = DEFAULT_FROM): FrameReader {
    return this.read('/run_sse', { body: Stage.message(sessionId, text, userId) });
  }

  static message(sessionId: string | undefined, text: string, userId = DEFAULT_FROM) {
    return { userId, ...(sessionId !== undefined && { sessionId }), newMessage: { parts: [{ text }] } };
  }

  async session(id: string, userId = DEFAULT_FROM, app = this.app): Promise<ShownSession> {
    const { status, body } = await this.json(
      `/apps/${app}/users/${encodeURIComponent(userId)}/sessions/${encodeURIComponent(id)}`,
    );
    if (status !== 200) throw new Error(`session ${id}: ${status} ${JSON.stringify(body)}`);
    return body as unknown as ShownSession;
  }

  /** A call's session is made as its stream opens, and the store has it when it has it. */
  async begun(id: string): Promise<void> {
    await waitUntil('the session', () =>
      this.session(id).then(
        () => true,
        () => false,
      ),
    );
  }

  async events(id: string, userId = DEFAULT_FROM, app = this.app): Promise<readonly Event[]> {
    return (await this.session(id, userId, app)).events;
  }

  /** The words of a session, a line a message; a dash where it was cut. */
  async said(id: string, userId = DEFAULT_FROM): Promise<string[]> {
    return (await this.events(id, userId)).flatMap((event) => saidBy(event));
  }

  async ended(callSid: string): Promise<void> {
    await waitUntil('the end of the call', async () => {
      return (await this.json(`/calls/${callSid}`)).body['state'] === 'ended';
    });
  }

  /** One series by its full name, as Prometheus reads it; undefined where there is none. */
  async metric(series: string): Promise<number | undefined> {
    const text = await (await fetch(`${this.url}/metrics`)).text();
    const line = text.split('\n').find((each) => each.startsWith(`${series} `));
    return line === undefined ? undefined : Number(line.slice(series.length + 1));
  }

  /** All that is alive in the server is gone. */
  async idle(): Promise<void> {
    await waitUntil('nothing to be left', async () => {
      const { body } = await this.json('/debug/runs');
      return Object.values(body).every((count) => count === 0);
    });
  }
}

/** The agents of a test, as a server knows them. */
export function catalogOf(answers: Agent, all: readonly Agent[]): AgentCatalog {
  const named = (name: string): Agent | undefined => all.find((agent) => agent.name === name);
  return {
    default: answers,
    find: named,
    named,
    all,
    names: all.map(({ name }) => name),
    modules: new Map(),
  };
}

export function saidBy({ author, content, interrupted }: Event): string[] {
  const text = (content?.parts ?? []).map((part) => part.text ?? '').join('');
  return text === '' ? [] : [`${author}: ${text}${interrupted === true ? ' —' : ''}`];
}

/** The model says something at once: sound and words in so many pieces, and, unless `open`, the end of its turn. */
export function says(
  model: ScriptedConnection,
  words: string,
  { ms = 400, pieces = 1, open = false }: { ms?: number; pieces?: number; open?: boolean } = {},
): void {
  const split = words.match(/\S+\s*/g) ?? [words];
  for (let piece = 0; piece < pieces; piece += 1) {
    model.sendAudio(tone(ms / pieces));
    const from = Math.floor((piece * split.length) / pieces);
    const to = Math.floor(((piece + 1) * split.length) / pieces);
    if (to > from) model.sendOutputTranscription(split.slice(from, to).join(''));
  }
  if (open) return;
  model.generationComplete();
  model.turnComplete();
}

/** Sound that the caller has heard, in milliseconds: what is not silence on the line. */
export function heardMs(phone: Phone): number {
  return phone.record().heard.filter((byte) => (byte | 0x80) !== 0xff).length / 8;
}
