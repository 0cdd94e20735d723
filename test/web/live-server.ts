/**
 * The whole server, a scripted model behind it, and clients of `/run_live` in front, all over real sockets.
 */
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { WebSocket } from 'ws';
import { systemClock } from '../../src/clock.js';
import {
  type ClientState,
  connectLive,
  type Frame,
  type LiveConnection,
  type LiveOptions,
} from '../../src/client/index.js';
import { readConfig } from '../../src/config.js';
import { silentLog } from '../../src/observe/log.js';
import { startServer, type RunningServer } from '../../src/server.js';
import { ScriptedGemini, type ScriptedConnection } from '../support/scripted-gemini.js';

/** Waits for something to become true, without deciding how long it may take but for a generous bound. */
export async function until(what: string, isTrue: () => boolean | Promise<boolean>): Promise<void> {
  const deadlineMs = systemClock.nowMs() + 15_000;
  while (!(await isTrue())) {
    if (systemClock.nowMs() > deadlineMs) throw new Error(`waited in vain for ${what}`);
    await new Promise((resolve) => {
      systemClock.setTimer(5, () => resolve(undefined));
    });
  }
}

export interface Client {
  readonly live: LiveConnection;
  readonly frames: Frame[];
  /** Sound that came, in order. */
  readonly sound: Uint8Array[];
  readonly state: () => ClientState;
  /** `role: text`, with a dash behind what was cut. */
  readonly page: () => string[];
}

export class LiveServer {
  readonly server: RunningServer;
  readonly gemini: ScriptedGemini;
  readonly #clients: LiveConnection[] = [];
  readonly #sockets: WebSocket[] = [];

  private constructor(server: RunningServer, gemini: ScriptedGemini) {
    this.server = server;
    this.gemini = gemini;
  }

  static async start(environment: Record<string, string> = {}): Promise<LiveServer> {
    const gemini = await ScriptedGemini.start();
    const config = readConfig({
      PORT: '0',
      GEMINI_API_KEY: 'key',
      GOOGLE_GEMINI_BASE_URL: gemini.url,
      GREETING_PROTECTION_SECONDS: '0',
      EARSHOT_DEBUG: '1',
      DATABASE_URL: `sqlite:${join(mkdtempSync(join(tmpdir(), 'earshot-live-')), 'live.db')}`,
      ...environment,
    });
    const server = await startServer(config, { clock: systemClock, log: silentLog });
    return new LiveServer(server, gemini);
  }

  get url(): string {
    return `${this.server.url.replace(/^http/, 'ws')}/run_live`;
  }

  connect(options: Partial<LiveOptions> = {}): Client {
    const frames: Frame[] = [];
    const sound: Uint8Array[] = [];
    const live = connectLive({
      url: this.url,
      userId: 'u1',
      sessionId: 's1',
      WebSocket,
      retryFirstMs: 1,
      retryMaxMs: 1,
      onAudio: (each) => sound.push(each),
      onChange: (_state, frame) => {
        if (frame !== undefined) frames.push(frame);
      },
      ...options,
    });
    this.#clients.push(live);
    const page = (): string[] =>
      live.state.messages.map(
        ({ role, text, status }) => `${role}: ${text.trim()}${status === 'cut' ? ' —' : ''}`,
      );
    return { live, frames, sound, state: () => live.state, page };
  }

  /** A bare socket, and what comes over it. */
  async socket(
    options: { readonly headers?: Record<string, string>; readonly protocols?: string[] } = {},
  ): Promise<{ ws: WebSocket; received: Record<string, unknown>[]; closed: Promise<number> }> {
    const ws = new WebSocket(this.url, options.protocols ?? [], { headers: options.headers ?? {} });
    this.#sockets.push(ws);
    const received: Record<string, unknown>[] = [];
    ws.on('message', (data) =>
      received.push(JSON.parse((data as Buffer).toString()) as Record<string, unknown>),
    );
    const closed = new Promise<number>((resolve) => {
      ws.on('close', (code) => resolve(code));
    });
    await new Promise((resolve, reject) => {
      ws.on('open', resolve);
      ws.on('error', reject);
    });
    return { ws, received, closed };
  }

  /** The model's side of conversation number `index`, once the greeting was asked for. */
  async greeting(index = 0): Promise<ScriptedConnection> {
    const model = await this.gemini.connection(index);
    await model.waitFor((frame) => JSON.stringify(frame).includes('word for word'));
    return model;
  }

  async json(path: string): Promise<Record<string, unknown>> {
    return (await (await fetch(this.server.url + path)).json()) as Record<string, unknown>;
  }

  /** The texts of the committed events, as a page shows them. */
  async committed(userId = 'u1', sessionId = 's1'): Promise<string[]> {
    const body = await this.json(`/apps/support/users/${userId}/sessions/${sessionId}`);
    const events = (body['events'] ?? []) as {
      author: string;
      interrupted?: boolean;
      content?: { parts?: { text?: string }[] };
    }[];
    return events.flatMap(({ author, interrupted, content }) => {
      const text = (content?.parts ?? [])
        .map((part) => part.text ?? '')
        .join('')
        .trim();
      const role = author === 'user' ? 'user' : 'model';
      return text === '' ? [] : [`${role}: ${text}${interrupted === true ? ' —' : ''}`];
    });
  }

  /** Until nothing of any conversation is alive. */
  async nothingLeft(): Promise<void> {
    await until('nothing to be left', async () =>
      Object.values(await this.json('/debug/runs')).every((count) => count === 0),
    );
  }

  async close(): Promise<void> {
    for (const live of this.#clients) live.close();
    for (const socket of this.#sockets) socket.terminate();
    await this.server.close();
    await this.gemini.close();
  }
}
