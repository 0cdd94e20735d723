/**
 * Replays one call: the real switchboard on a virtual clock, with the fixture's incoming lines in place of the carrier,
 * the model and the REST API, and a note of all that the server writes to them. Nothing waits and nothing is random:
 * the same fixture and the same code give the same notes, to the byte.
 */
import type { AgentCatalog } from '../agent/agent-catalog.js';
import type { CallTap, HeardMessage } from '../call-tap.js';
import { nextTurn } from '../clock.js';
import { type Config, readConfig } from '../config.js';
import { AppError, FixtureError } from '../errors.js';
import { type Fixture, type FixtureHeader, type FixtureLine, roundMs } from '../fixture/fixture-format.js';
import { modelOutput } from '../fixture/outgoing-line.js';
import { REPLAY_CALLS_MAX, REPLAY_SETTLE_TURNS_MAX, REPLAY_TAIL_MAX_MS } from '../limits.js';
import { createGeminiConnectLive } from '../model/gemini-connect.js';
import { type Log, silentLog } from '../observe/log.js';
import { buildSwitchboard, type Switchboard, type SwitchboardOptions } from '../switchboard.js';
import { RECORDED_JITTER, TwilioCallControl } from '../telephony/twilio-call-control.js';
import type { RestRequest } from '../telephony/twilio-rest.js';
import { scriptOf, type Moment } from './fixture-script.js';
import { HANDOFF_STAND_IN, SERVER_NAME } from '../fixture/redaction.js';
import { ReplayedPhone } from './replayed-phone.js';
import { ReplayedRequest } from './replayed-request.js';
import { ReplayedSocket } from './replayed-socket.js';
import { ReplayedTools } from './replayed-tools.js';
import { VirtualClock } from './virtual-clock.js';

export interface ReplayOptions {
  readonly agents: AgentCatalog;
  /** The phone plays what it hears and returns its marks by itself; the fixture's own marks are not said. */
  readonly playsMarks?: boolean;
  /** Hears the events of the call. */
  readonly onRun?: SwitchboardOptions['onRun'];
  readonly log?: Log;
}

/** Everything that happened, in order: the fixture's incoming lines, and what the server wrote. */
export interface ReplayResult {
  readonly lines: readonly FixtureLine[];
  /** Incoming lines that had nobody to say them to. */
  readonly unsaid: readonly FixtureLine[];
  readonly durationMs: number;
}

type Answer = { statusCode: number; body: unknown };
interface RestWaiter {
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: Error) => void;
}

/**
 * @throws FixtureError `fixture_invalid` for a sound file of the fixture's that cannot be read, and for a setting that
 * the server does not take. Anything else that is thrown is a fault of the replay itself, wherever it happened in it.
 */
export async function replay(fixture: Fixture, options: ReplayOptions): Promise<ReplayResult> {
  const moments = await scriptOf(fixture);
  return new Replay(fixture, options).run(moments);
}

class Replay {
  readonly #clock = new VirtualClock();
  readonly #fixture: Fixture;
  readonly #options: ReplayOptions;
  readonly #lines: FixtureLine[] = [];
  readonly #unsaid: FixtureLine[] = [];
  readonly #models: ReplayedSocket[] = [];
  readonly #restWaiters: RestWaiter[] = [];
  readonly #stalls: readonly { readonly sinceMs: number; readonly untilMs: number }[];
  readonly #phone: ReplayedPhone;
  readonly #tools: ReplayedTools;
  readonly #switchboard: Switchboard;
  #activity = 0;
  /** What went wrong first in the replay's own parts, which the server calls. */
  #fault: { readonly error: unknown } | undefined;
  #ended = false;

  constructor(fixture: Fixture, options: ReplayOptions) {
    this.#fixture = fixture;
    this.#options = options;
    this.#stalls = fixture.lines.flatMap((line) =>
      line.leg === 'clock' ? [{ sinceMs: line.stalledSince, untilMs: line.at }] : [],
    );
    this.#tools = new ReplayedTools(fixture, () => this.#stir());
    this.#switchboard = this.#build();
    this.#phone = new ReplayedPhone({
      http: this.#switchboard.http,
      clock: this.#clock,
      playsMarks: options.playsMarks === true,
      hidesDigits: fixture.header.made === 'recorded',
      note: (dir, content) => this.#note({ leg: 'phone', dir, ...content }),
      onActivity: () => this.#stir(),
      onFault: this.#onFault,
    });
  }

  async run(moments: readonly Moment[]): Promise<ReplayResult> {
    let result: ReplayResult;
    try {
      result = await this.#play(moments);
    } finally {
      await this.#close();
    }
    this.#check();
    return result;
  }

  async #play(moments: readonly Moment[]): Promise<ReplayResult> {
    for (const moment of moments) {
      if (moment.at > this.#clock.nowMs()) await this.#advanceTo(moment.at);
      await this.#say(moment);
    }
    const lastAt = this.#fixture.lines.at(-1)?.at ?? 0;
    if (lastAt > this.#clock.nowMs()) await this.#advanceTo(lastAt);
    // A call that was written by hand runs on until it is over by itself.
    const untilMs = this.#clock.nowMs() + REPLAY_TAIL_MAX_MS;
    while (!this.#ended && this.#clock.nowMs() < untilMs) await this.#advanceTo(this.#clock.nowMs() + 1000);
    return { lines: [...this.#lines], unsaid: [...this.#unsaid], durationMs: this.#clock.nowMs() };
  }

  readonly #onFault = (error: unknown): void => {
    this.#fault ??= { error };
  };

  #check(): void {
    if (this.#fault !== undefined) throw this.#fault.error;
  }

  // --- Time -----------------------------------------------------------------------------------------------------

  /** Fires what is due on the way, each timer with everything that follows from it before the next. */
  async #advanceTo(untilMs: number): Promise<void> {
    const clock = this.#clock;
    for (let next = clock.nextTimerAtMs; next !== undefined && next <= untilMs; next = clock.nextTimerAtMs) {
      const stall = this.#stallAt(next);
      if (stall !== undefined && stall.untilMs <= untilMs && stall.untilMs > clock.nowMs()) {
        clock.stall(stall.untilMs - clock.nowMs());
        clock.advance(0);
      } else clock.advance(Math.max(0, next - clock.nowMs()));
      await this.#settle();
    }
    if (untilMs > clock.nowMs()) clock.advance(untilMs - clock.nowMs());
  }

  #stallAt(atMs: number): { readonly untilMs: number } | undefined {
    if (this.#stalls.length === 0) return undefined;
    const at = roundMs(atMs);
    return this.#stalls.find(({ sinceMs, untilMs }) => at >= sinceMs && at < untilMs);
  }

  /** Waits until nothing follows any more from what has happened at this moment. */
  async #settle(): Promise<void> {
    await this.#rest();
    this.#check();
  }

  async #rest(): Promise<void> {
    let seen = -1;
    let quiet = 0;
    for (let turn = 0; quiet < 3 && turn < REPLAY_SETTLE_TURNS_MAX; turn += 1) {
      quiet = seen === this.#activity ? quiet + 1 : 0;
      seen = this.#activity;
      await nextTurn();
    }
    if (quiet >= 3) return;
    const at = (this.#clock.nowMs() / 1000).toFixed(3);
    this.#onFault(
      new Error(`at ${at} the server did not come to rest within ${REPLAY_SETTLE_TURNS_MAX} turns`),
    );
  }

  #stir(): void {
    this.#activity += 1;
  }

  // --- What the outside does ------------------------------------------------------------------------------------

  async #say({ line, written }: Moment): Promise<void> {
    if (line.leg === 'clock') return;
    const isMark = line.leg === 'phone' && line.message?.['event'] === 'mark';
    if (isMark && this.#options.playsMarks === true) return;
    if (written !== undefined) this.#lines.push(written);
    const said = this.#deliver(line);
    // Sound is handled where it is read; everything else may have consequences that take turns of the event loop. Who
    // is speaking may go on for a while into a line that the server has closed.
    if (line.leg === 'phone' && line.message?.['event'] === 'media') return;
    if (!said && written !== undefined) this.#unsaid.push(written);
    await this.#settle();
  }

  #deliver(line: FixtureLine): boolean {
    switch (line.leg) {
      case 'phone':
        return this.#phone.say(line);
      case 'model':
        return this.#models[(line.conn ?? 1) - 1]?.say(line) ?? false;
      case 'rest':
        return this.#answerRest(line.answer);
      case 'operator':
        return this.#operate(line);
      case 'tool':
        return this.#tools.say(line);
      case 'call':
      case 'clock':
        return true;
    }
  }

  #answerRest(answer: Extract<FixtureLine, { leg: 'rest' }>['answer']): boolean {
    const waiter = this.#restWaiters.shift();
    if (waiter === undefined) return false;
    if (answer === null || answer === undefined) waiter.reject(new Error('no answer'));
    else waiter.resolve({ statusCode: answer.status, body: answer.body ?? {} });
    return true;
  }

  #operate({ order, get, post }: Extract<FixtureLine, { leg: 'operator' }>): boolean {
    const { calls, http } = this.#switchboard;
    if (order === 'drain') void calls.drain();
    else if (order !== undefined) return calls.order(this.#phone.callSid, order);
    const path = get ?? post;
    if (path === undefined) return true;
    const request = new ReplayedRequest({
      onAnswer: ({ status, body }) =>
        this.#note({ leg: 'operator', dir: 'out', answer: { status, body: jsonOrText(body) } }),
      onActivity: () => this.#stir(),
      onFault: this.#onFault,
    });
    http.emit('connection', request.socket);
    request.send(get === undefined ? 'POST' : 'GET', path);
    return true;
  }

  // --- What the server does -------------------------------------------------------------------------------------

  #note(content: Record<string, unknown>): void {
    const { leg, dir, ...rest } = content;
    this.#lines.push({ at: roundMs(this.#clock.nowMs()), leg, dir, ...rest } as FixtureLine);
  }

  #openModel(): ReplayedSocket {
    const conn = this.#models.length + 1;
    const model = new ReplayedSocket({
      side: 'server',
      toLine: (text) => modelOutput(text, (words) => this.#phone.redaction.toModel(words)),
      note: (line) => {
        if (line.sound === undefined) this.#stir();
        this.#note({ leg: 'model', dir: 'out', ...(conn > 1 && { conn }), ...line });
      },
      onActivity: () => this.#stir(),
      onFault: this.#onFault,
    });
    this.#models.push(model);
    return model;
  }

  #request({ method, uri, data }: RestRequest): Promise<Answer> {
    this.#stir();
    this.#note({ leg: 'rest', dir: 'out', request: { method, uri, data } });
    return new Promise((resolve, reject) => {
      this.#restWaiters.push({ resolve, reject });
    });
  }

  #build(): Switchboard {
    const { header } = this.#fixture;
    const { settings } = header;
    const log = this.#options.log ?? silentLog;
    const config = configOf(this.#fixture);
    const door = header.door === 'vertex' ? { vertex: { apiKey: 'replay' } } : { apiKey: 'replay' };
    const connectLive = createGeminiConnectLive({
      ...door,
      modelName: header.model,
      baseUrl: 'http://127.0.0.1',
      openConnection: () => this.#openModel().socket,
      log,
    });
    const callControl = new TwilioCallControl({
      accountSid: settings.rest === true ? `AC${'0'.repeat(32)}` : undefined,
      authToken: 'replay',
      apiKey: undefined,
      apiSecret: undefined,
      region: undefined,
      edge: undefined,
      apiBaseUrl: undefined,
      transport: (request) => this.#request(request),
      handoffNumber: settings.handoff === true ? HANDOFF_STAND_IN : undefined,
      publicOrigin: () => `https://${SERVER_NAME}`,
      random: () => RECORDED_JITTER,
      log,
    });
    return buildSwitchboard({
      config,
      agents: this.#options.agents,
      model: { name: header.model, connectLive },
      callControl,
      openTap: () => endTap((ended, messages) => this.#finished(ended, messages)),
      ...(this.#options.onRun && { onRun: this.#options.onRun }),
      replayedTools: this.#tools,
      clock: this.#clock,
      log,
    });
  }

  #finished(ended: string, messages: readonly HeardMessage[]): void {
    this.#ended = true;
    this.#note({ leg: 'call', dir: 'out', ended });
    for (const { role, text, interrupted } of messages) {
      const heard = { role, text: this.#phone.redaction.sentence(text), interrupted };
      this.#note({ leg: 'call', dir: 'out', heard });
    }
  }

  /** Whatever the server still says is no part of the call. */
  async #close(): Promise<void> {
    const closing = this.#switchboard.close();
    await this.#rest();
    this.#phone.end();
    for (const model of this.#models) model.end();
    for (const waiter of this.#restWaiters) waiter.reject(new Error('the replay is over'));
    await this.#rest();
    await closing;
  }
}

/** @throws FixtureError for a setting that the server does not take. */
function configOf({ path, header }: Fixture): Config {
  try {
    return readConfig(variablesOf(header.settings));
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    throw new FixtureError('fixture_invalid', `${path}:1: settings: ${error.message}`, { cause: error });
  }
}

function variablesOf(settings: FixtureHeader['settings']): Record<string, string> {
  const { callsMax, callMaxMs, idleRepromptMs, greetingProtectionMs } = settings;
  return {
    MODEL: 'rehearsal',
    EARSHOT_DEBUG: 'on',
    MAX_CALLS: String(callsMax ?? REPLAY_CALLS_MAX),
    ...(callMaxMs !== undefined && { MAX_CALL_MINUTES: String(callMaxMs / 60_000) }),
    ...(idleRepromptMs !== undefined && { IDLE_REPROMPT_SECONDS: String(idleRepromptMs / 1000) }),
    ...(greetingProtectionMs !== undefined && {
      GREETING_PROTECTION_SECONDS: String(greetingProtectionMs / 1000),
    }),
  };
}

function jsonOrText(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return body;
  }
}

/** Hears of a call's end only: the rest is read off the wire. */
function endTap(finished: CallTap['finished']): CallTap {
  return {
    webhook() {},
    webhookAnswered() {},
    carrierOpened: () => undefined,
    modelConnecting: () => undefined,
    rest: undefined,
    tools: undefined,
    ordered() {},
    stalled() {},
    finished,
  };
}
