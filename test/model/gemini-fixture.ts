/**
 * What the Gemini adapter's tests share: a scripted server, a clock that stands still, and a log that is kept.
 */
import { createGeminiConnectLive, type GeminiConnectOptions } from '../../src/model/gemini-connect.js';
import type { GeminiOddity } from '../../src/model/gemini-message-reader.js';
import type { ConnectLive, LiveConnection, LiveSetup } from '../../src/model/live-connection.js';
import type { Log } from '../../src/observe/log.js';
import { RecordingLiveListener } from '../support/recording-live-listener.js';
import { ScriptedGemini, type GeminiScript, type ScriptedConnection } from '../support/scripted-gemini.js';
import { scopeOn } from '../support/scopes.js';
import { VirtualClock } from '../../src/replay/virtual-clock.js';

/** Looks like a key, and its characters change when a URL holds them. */
export const API_KEY = 'AIza-test/key+with=odd&characters-0123456789';

export const PLAIN_SETUP: LiveSetup = {
  agentName: 'plain',
  instruction: 'You are a telephone agent.',
  voice: 'Kore',
  languageCode: 'en-US',
  functionDeclarations: [],
};

interface OpenOptions {
  readonly modelName?: string;
  readonly setup?: Partial<LiveSetup>;
  readonly listener?: RecordingLiveListener;
}

interface OpenedConnection {
  readonly connection: LiveConnection;
  readonly listener: RecordingLiveListener;
  readonly peer: ScriptedConnection;
}

export class GeminiFixture {
  readonly clock = new VirtualClock();
  readonly logLines: { level: string; fields: object; message: string }[] = [];
  readonly oddities: GeminiOddity[] = [];
  readonly server: ScriptedGemini;
  readonly #connections: LiveConnection[] = [];
  #opening: Promise<unknown> = Promise.resolve();

  private constructor(server: ScriptedGemini) {
    this.server = server;
  }

  static async start(script: Partial<GeminiScript> = {}): Promise<GeminiFixture> {
    return new GeminiFixture(await ScriptedGemini.start(script));
  }

  get log(): Log {
    const line =
      (level: string) =>
      (fields: object, message: string): void => {
        this.logLines.push({ level, fields, message });
      };
    return { debug: line('debug'), info: line('info'), warn: line('warn'), error: line('error') };
  }

  connectLive(modelName = 'gemini-3.8-live', more: Partial<GeminiConnectOptions> = {}): ConnectLive {
    return createGeminiConnectLive({
      apiKey: API_KEY,
      modelName,
      baseUrl: this.server.url,
      log: this.log,
      observe: (oddity) => this.oddities.push(oddity),
      ...more,
    });
  }

  /** A connection that is open, its listener, and the server's end of it; one after the other, so that both ends
   * belong together. */
  open(options: OpenOptions = {}): Promise<OpenedConnection> {
    const opened = this.#opening.then(() => this.#open(options));
    this.#opening = opened.catch(() => {});
    return opened;
  }

  async #open({
    modelName,
    setup,
    listener = new RecordingLiveListener(),
  }: OpenOptions): Promise<OpenedConnection> {
    const index = this.server.connections.length;
    const connection = await this.connectLive(modelName)(
      { ...PLAIN_SETUP, ...setup },
      listener,
      new AbortController().signal,
      scopeOn(this.clock),
    );
    this.#connections.push(connection);
    return { connection, listener, peer: await this.server.connection(index) };
  }

  async stop(): Promise<void> {
    for (const connection of this.#connections) connection.close();
    await this.server.close();
  }
}
