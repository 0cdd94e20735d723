/**
 * Everything between the model and the sockets, wired together without a port of its own: doors, calls and metrics.
 * `server.ts` gives it one to listen on; a replay hands it connections that never were on a network.
 */
import { createServer, type Server } from 'node:http';
import express from 'express';
import type { AgentCatalog } from './agent/agent-catalog.js';
import type { CallDeps } from './call/call-deps.js';
import { CallRegistry } from './call/call-registry.js';
import { END_REASONS } from './call/end-reason.js';
import { KeptCalls } from './call/kept-calls.js';
import { LagAdmission } from './call/lag-admission.js';
import { loadPrompts } from './call/prompts.js';
import { type Clock, within } from './clock.js';
import type { Config } from './config.js';
import { OpenResponses } from './console/open-responses.js';
import { createErrorHandler, createOperationsApi, type OperationsOptions } from './console/operations-api.js';
import type { RunDoor } from './console/run-api.js';
import { createUpgradeDoor } from './console/upgrade-door.js';
import { errorText } from './errors.js';
import {
  CLOSE_SENT_MAX_MS,
  CLOSE_TOLD_MAX_MS,
  HTTP_CHECK_INTERVAL_MS,
  HTTP_HEADERS_MAX_MS,
  HTTP_REQUEST_MAX_MS,
} from './limits.js';
import { createOpenLive } from './live-runs.js';
import type { ConnectLive } from './model/live-connection.js';
import type { GenerateText } from './model/text-model.js';
import { safeObserver } from './observe/call-observer.js';
import type { Log } from './observe/log.js';
import { type Metrics, type StrayErrorCounts, createMetrics } from './observe/metrics.js';
import type { RunMode, RunObserver } from './observe/run-observer.js';
import { packageVersion } from './package-root.js';
import { forgettingStore } from './run/forgetting-store.js';
import { RunMetrics } from './run/run-metrics.js';
import { Runs } from './run/runs.js';
import { createServerTools, type ServerTools, toolNames } from './server-tools.js';
import { TextRuns, type TextRunsOptions } from './run/text-runs.js';
import type { EventWriter } from './store/event-writer.js';
import type { PendingCalls } from './store/pending-calls.js';
import type { SessionKey, Store } from './store/store.js';
import type { CallControl } from './telephony/call-control.js';
import type { RunTools } from './tool/tool-runs.js';
import type { ToolWork } from './tool/tool-work.js';
import { CARRIER_ANOMALIES } from './telephony/carrier-anomaly.js';
import { MEDIA_REFUSALS, MediaStreamServer } from './telephony/media-stream-server.js';
import { MEDIA_PATH, renderVoiceAnswer } from './telephony/twiml.js';
import { LiveDoor } from './web/live-door.js';
import { STREAM_EVENTS, WEBHOOK_REFUSALS, createWebhooks } from './telephony/webhooks.js';

export interface SwitchboardOptions {
  readonly config: Config;
  readonly agents: AgentCatalog;
  readonly model: { readonly name: string; readonly connectLive: ConnectLive };
  readonly callControl: CallControl;
  readonly openTap?: CallDeps['openTap'];
  /** Hears the events of every call, beside the store and the watchers. */
  readonly onRun?: CallDeps['openRun'];
  /** What a recorded call tells of its tools. */
  readonly replayedTools?: {
    readonly recall: CallDeps['recall'];
    wrap(work: ToolWork, run: RunTools): ToolWork;
  };
  /** What is kept, and the text model; without it calls are followed and forgotten, and there are no text modes. */
  readonly keeping?: Keeping;
  /** Errors of the process for which nobody waited, since its start. */
  readonly strayErrors?: () => StrayErrorCounts;
  readonly clock: Clock;
  readonly log: Log;
}

export interface Keeping {
  readonly store: Store;
  readonly writer: EventWriter;
  readonly generate: GenerateText;
  /** The model that generates. */
  readonly textModel: string;
}

export interface Switchboard {
  /** Not listening yet. */
  readonly http: Server;
  readonly calls: CallRegistry;
  /** Takes no new calls, conversations and text runs, and resolves when those that go on are over, or were cut after DRAIN_MAX_MS. */
  drain(): Promise<void>;
  /** Carries out what was decided and not done when the server last stopped, and sees to what it left unfinished; resolves when that
   * has begun. */
  resume(): Promise<void>;
  /** Cuts whatever is left, tells those who watch once it is stored, and closes everything. */
  close(): Promise<void>;
}

export function buildSwitchboard(options: SwitchboardOptions): Switchboard {
  const { config, agents, keeping, clock, log } = options;
  const metrics = createSwitchboardMetrics(options);
  const admission = new LagAdmission({ clock, lagMs: () => metrics.loopLagMs() });
  const runs = new Runs({ writer: keeping?.writer ?? FORGETFUL, clock, log });
  keeping?.writer.watchLosses(({ error }) => metrics.eventsLost.inc({ reason: error.code }));
  const observerOf = (mode: RunMode): RunObserver =>
    safeObserver(metrics.runObserver(mode), () => metrics.observerFaults.inc());
  const tools = createServerTools(options);
  const textRuns = keeping && createTextRuns(keeping, { agents, runs, tools, observerOf, clock, log });
  const kept = keeping && new KeptCalls({ ...keeping, clock, log });
  const calls = new CallRegistry({
    agents,
    kept,
    callsMax: config.MAX_CALLS,
    overloaded: () => admission.isFull,
    deps: createCallDeps(options, { metrics, runs, tools, observerOf }),
  });
  const live = createLiveDoor({ agents, calls, runs, textRuns, keeping, metrics, clock, log });
  const media = createMediaServer(config, { clock, log, metrics, calls });
  const http = createHttpServer(config, {
    clock,
    log,
    metrics,
    calls,
    media,
    live,
    store: keeping && deletableStore(keeping.store, calls, runs),
    isBeingDone: (appName, key) => tools.runs.isBeingDone(appName, key),
    decide: keeping && ((id, decision) => tools.runs.desk.decide(id, decision)),
    runs: {
      start: textRuns && ((request, signal) => textRuns.start(request, signal)),
      broadcastOf: (callSid) => runs.broadcastOf(callSid),
      counts: () => ({
        ...runs.counts(),
        ...tools.counts(),
        textRuns: textRuns?.count ?? 0,
        unstored: keeping?.writer.waiting.events ?? 0,
      }),
    },
  });
  const responses = new OpenResponses(http);
  return {
    http,
    calls,
    resume: () => tools.resume(),
    async drain() {
      await Promise.all([calls.drain(), textRuns?.drain()]);
    },
    async close() {
      http.close();
      calls.close();
      kept?.close();
      const cut = textRuns?.close();
      await within(clock, CLOSE_TOLD_MAX_MS, Promise.all([cut, runs.told(), kept?.written()]));
      const read = runs.close();
      await within(clock, CLOSE_SENT_MAX_MS, Promise.all([read, responses.sent()]));
      await Promise.all([media.close(), live.close()]);
      http.closeAllConnections();
      await tools.close();
      admission.close();
      metrics.close();
    },
  };
}

interface CallParts {
  readonly metrics: Metrics;
  readonly runs: Runs;
  readonly tools: ServerTools;
  readonly observerOf: (mode: RunMode) => RunObserver;
}

function createCallDeps(
  { config, model, callControl, openTap, onRun, replayedTools, clock, log }: SwitchboardOptions,
  { metrics, runs, tools, observerOf }: CallParts,
): CallDeps {
  return {
    clock,
    log,
    observer: safeObserver(metrics.observer, () => metrics.observerFaults.inc()),
    connectLive: model.connectLive,
    callControl,
    prompts: loadPrompts(),
    ...(openTap && { openTap }),
    openTools: (run) => {
      const work = tools.runs.open(run);
      return replayedTools?.wrap(work, run) ?? work;
    },
    recall: replayedTools?.recall ?? ((call) => tools.runs.recall(call)),
    openRun: (call, run, history) => {
      const numbers = new RunMetrics({ run, observer: observerOf('bidi') });
      run.listen((item) => numbers.hear(item));
      runs.followCall(call, run, history);
      onRun?.(call, run, history);
    },
    callMaxMs: config.MAX_CALL_MINUTES * 60_000,
    idleRepromptMs: config.IDLE_REPROMPT_SECONDS * 1000,
    greetingProtectionMs: config.GREETING_PROTECTION_SECONDS * 1000,
  };
}

/** What is deleted by a route is not kept in memory either. */
function deletableStore(store: Store, calls: CallRegistry, runs: Runs): Store {
  return forgettingStore(store, {
    kept: () => [...runs.kept, ...calls.keptWords.map(({ sessionId: id, ...owner }) => ({ ...owner, id }))],
    forget(deleted) {
      calls.forget(deleted);
      runs.forget(deleted);
    },
  });
}

function createSwitchboardMetrics({ agents, model, keeping, strayErrors }: SwitchboardOptions): Metrics {
  return createMetrics({
    version: packageVersion(),
    agent: agents.default.name,
    model: model.name,
    textModel: keeping?.textModel,
    endReasons: END_REASONS,
    tools: toolNames(agents),
    refusals: [...new Set([...WEBHOOK_REFUSALS, ...MEDIA_REFUSALS])],
    anomalies: CARRIER_ANOMALIES,
    streamEvents: STREAM_EVENTS,
    strayErrors,
    storeBacklog: keeping && (() => ({ ...keeping.writer.waiting, isFailing: keeping.writer.isFailing })),
  });
}

function trustOf(config: Config) {
  return {
    publicUrl: config.PUBLIC_URL,
    authToken: config.TWILIO_AUTH_TOKEN,
    sharedKey: config.TWILIO_SHARED_KEY,
  };
}

interface DoorParts {
  readonly log: Log;
  readonly metrics: Metrics;
  readonly calls: CallRegistry;
}

function createMediaServer(config: Config, parts: DoorParts & { clock: Clock }): MediaStreamServer {
  const { log, metrics, calls, clock } = parts;
  return new MediaStreamServer({
    ...trustOf(config),
    accept: (start, stream, early) => calls.acceptStream(start, stream, early),
    // A draining server still takes the streams of calls that it announced.
    isDraining: () => false,
    clock,
    log,
    observe: {
      onRefused: (reason) => metrics.refused.inc({ reason }),
      onAnomaly: (kind) => metrics.anomalies.inc({ kind }),
    },
  });
}

interface LiveParts extends DoorParts {
  readonly agents: AgentCatalog;
  readonly runs: Runs;
  readonly textRuns: TextRuns | undefined;
  readonly keeping: Keeping | undefined;
  readonly clock: Clock;
}

function createLiveDoor({ agents, metrics, ...parts }: LiveParts): LiveDoor {
  const { clock, log } = parts;
  return new LiveDoor({
    open: createOpenLive({ appName: agents.default.name, ...parts }),
    clock,
    log,
    onSoundDropped: (ms) => metrics.observer.onAudioDropped('inbound', 'too_fast', ms),
  });
}

/** Where nothing is kept. */
const FORGETFUL: Pick<EventWriter, 'createSession' | 'append'> = {
  createSession: () => Promise.resolve({ stored: true, seq: 0 }),
  append: () => Promise.resolve({ stored: true, seq: 0 }),
};

function createTextRuns(
  { store, writer, generate }: Keeping,
  parts: Pick<TextRunsOptions, 'observerOf' | 'clock' | 'log'> & {
    agents: AgentCatalog;
    runs: Runs;
    tools: ServerTools;
  },
): TextRuns {
  const { agents, runs, tools, ...rest } = parts;
  const recall = async ({ appName, userId, id }: SessionKey): Promise<string | undefined> =>
    tools.runs.recall({ appName, userId, sessionId: id });
  const isBusy = (session: SessionKey): boolean => runs.isRunning(session);
  return new TextRuns({
    agent: agents.default,
    generate,
    store,
    writer,
    isBusy,
    tools: tools.runs,
    recall,
    ...rest,
  });
}

interface HttpParts extends DoorParts {
  readonly clock: Clock;
  readonly media: MediaStreamServer;
  readonly live: LiveDoor;
  readonly store: Store | undefined;
  readonly decide: PendingCalls['decidePendingCall'] | undefined;
  readonly isBeingDone: OperationsOptions['isBeingDone'];
  readonly runs: RunDoor;
}

function createHttpServer(config: Config, parts: HttpParts): Server {
  const { clock, log, metrics, calls, media, live, store, decide, isBeingDone, runs } = parts;
  // What TwiML takes to load and compile would otherwise be the first caller's wait.
  renderVoiceAnswer({ kind: 'stream', token: 'warm-up' }, 'https://localhost');
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.use(
    createWebhooks({
      ...trustOf(config),
      door: calls,
      log,
      observe: {
        onRefused: (reason) => metrics.refused.inc({ reason }),
        onStreamEvent: (event) => metrics.streamEvents.inc({ event }),
      },
    }),
  );
  app.use(
    createOperationsApi({
      calls,
      registry: metrics.registry,
      consoleToken: config.CONSOLE_TOKEN,
      metricsToken: config.METRICS_TOKEN,
      debug: config.EARSHOT_DEBUG,
      runs,
      store,
      decide,
      isBeingDone,
      clock,
      log,
    }),
  );
  app.use(createErrorHandler(log));
  const http = createServer(
    {
      headersTimeout: HTTP_HEADERS_MAX_MS,
      requestTimeout: HTTP_REQUEST_MAX_MS,
      connectionsCheckingInterval: HTTP_CHECK_INTERVAL_MS,
    },
    app,
  );
  const answerUpgrade = createUpgradeDoor(config.CONSOLE_TOKEN, { '/run_live': live });
  http.on('upgrade', (request, socket, head) => {
    if (request.url?.split('?', 1)[0] === MEDIA_PATH) media.handleUpgrade(request, socket, head);
    else answerUpgrade(request, socket, head);
  });
  http.on('clientError', (error, socket) => {
    log.debug({ cause: errorText(error) }, 'a client spoke no HTTP');
    if (socket.writable) socket.end('HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n');
  });
  return http;
}
