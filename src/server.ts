/**
 * The whole server, built from a configuration: doors, calls, model and metrics, wired together here and nowhere else.
 * `main.ts` runs one; tests run many in one process.
 */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import express from 'express';
import { loadAgents } from './agent/agent-catalog.js';
import { BUILT_IN_TOOLS } from './call/built-in-tools.js';
import { CallRegistry } from './call/call-registry.js';
import { END_REASONS } from './call/end-reason.js';
import { LagAdmission } from './call/lag-admission.js';
import { loadPrompts } from './call/prompts.js';
import type { Clock } from './clock.js';
import type { Config } from './config.js';
import { createErrorHandler, createOperationsApi } from './console/operations-api.js';
import { createUpgradeDoor } from './console/upgrade-door.js';
import { AppError, errorText } from './errors.js';
import { uniformRandom } from './ids.js';
import { HTTP_CHECK_INTERVAL_MS, HTTP_HEADERS_MAX_MS, HTTP_REQUEST_MAX_MS } from './limits.js';
import type { ConnectLive } from './model/live-connection.js';
import { createGeminiConnectLive } from './model/gemini-connect.js';
import { startRehearsalService } from './model/rehearsal/rehearsal-service.js';
import { safeObserver } from './observe/call-observer.js';
import type { Log } from './observe/log.js';
import { type Metrics, createMetrics } from './observe/metrics.js';
import { PACKAGE_ROOT, packageVersion } from './package-root.js';
import { CARRIER_ANOMALIES } from './telephony/carrier-anomaly.js';
import { MEDIA_REFUSALS, MediaStreamServer } from './telephony/media-stream-server.js';
import { TwilioCallControl } from './telephony/twilio-call-control.js';
import { MEDIA_PATH, renderVoiceAnswer } from './telephony/twiml.js';
import { STREAM_EVENTS, WEBHOOK_REFUSALS, createWebhooks } from './telephony/webhooks.js';

export interface RunningServer {
  /** Where it listens, as `http://host:port`. */
  readonly url: string;
  /** The name of the agent that answers where no other is asked for. */
  readonly agent: string;
  /** Takes no more calls and resolves when the running ones are over. */
  drain(): Promise<void>;
  /** Cuts whatever is left and closes everything. */
  close(): Promise<void>;
}

export interface ServerDeps {
  readonly clock: Clock;
  readonly log: Log;
}

/** The model behind the calls and how to close it. */
export interface Model {
  readonly name: string;
  readonly connectLive: ConnectLive;
  close(): Promise<void>;
}

export async function startServer(config: Config, deps: ServerDeps): Promise<RunningServer> {
  const { clock, log } = deps;
  const agents = await loadAgents({
    selected: config.AGENT,
    folder: join(PACKAGE_ROOT, 'agents'),
    clock,
    log,
  });
  const model = await openModel(config, deps);
  const metrics = createMetrics({
    version: packageVersion(),
    agent: agents.default.name,
    model: model.name,
    endReasons: END_REASONS,
    tools: BUILT_IN_TOOLS.map(({ name }) => name),
    refusals: [...new Set([...WEBHOOK_REFUSALS, ...MEDIA_REFUSALS])],
    anomalies: CARRIER_ANOMALIES,
    streamEvents: STREAM_EVENTS,
  });
  const admission = new LagAdmission({ clock, lagMs: () => metrics.loopLagMs() });
  const calls = new CallRegistry({
    agents,
    callsMax: config.MAX_CALLS,
    overloaded: () => admission.isFull,
    deps: {
      clock,
      log,
      observer: safeObserver(metrics.observer, () => metrics.observerFaults.inc()),
      connectLive: model.connectLive,
      callControl: createCallControl(config, deps),
      prompts: loadPrompts(),
      modelName: model.name,
      callMaxMs: config.MAX_CALL_MINUTES * 60_000,
      idleRepromptMs: config.IDLE_REPROMPT_SECONDS * 1000,
      greetingProtectionMs: config.GREETING_PROTECTION_SECONDS * 1000,
    },
  });
  const media = createMediaServer(config, { ...deps, metrics, calls });
  const http = createHttpServer(config, { log, metrics, calls, media });
  await listen(http, config);
  return {
    url: addressOf(http),
    agent: agents.default.name,
    drain: () => calls.drain(),
    async close() {
      http.close();
      calls.close();
      await media.close();
      http.closeAllConnections();
      await model.close();
      admission.close();
      metrics.close();
    },
  };
}

/** Opens the configured model, or the stand-in. */
export async function openModel(config: Config, { clock, log }: ServerDeps): Promise<Model> {
  if (config.gemini === undefined) {
    const service = await startRehearsalService({ clock, log });
    const connectLive = createGeminiConnectLive({
      apiKey: 'rehearsal',
      modelName: 'rehearsal',
      baseUrl: service.url,
      log,
    });
    return { name: 'rehearsal', connectLive, close: () => service.close() };
  }
  const { GEMINI_MODEL: modelName, gemini } = config;
  const connectLive = createGeminiConnectLive({ ...gemini, modelName, log });
  return { name: modelName, connectLive, close: async () => {} };
}

function createCallControl(config: Config, { log }: ServerDeps): TwilioCallControl {
  return new TwilioCallControl({ ...twilioRest(config), random: uniformRandom, log });
}

/** The REST settings, as the call control and the doctor take them. */
export function twilioRest(config: Config) {
  return {
    accountSid: config.TWILIO_ACCOUNT_SID,
    authToken: config.TWILIO_AUTH_TOKEN,
    apiKey: config.TWILIO_API_KEY,
    apiSecret: config.TWILIO_API_SECRET,
    region: config.TWILIO_REGION,
    edge: config.TWILIO_EDGE,
    apiBaseUrl: config.TWILIO_API_BASE_URL,
  };
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

function createHttpServer(config: Config, parts: DoorParts & { media: MediaStreamServer }): Server {
  const { log, metrics, calls, media } = parts;
  // What TwiML takes to load and compile would otherwise be the first caller's wait.
  renderVoiceAnswer({ kind: 'stream', token: 'warm-up' }, 'https://localhost');
  const app = express();
  app.disable('x-powered-by');
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
  const answerUpgrade = createUpgradeDoor(config.CONSOLE_TOKEN);
  http.on('upgrade', (request, socket, head) => {
    if (request.url?.split('?', 1)[0] === MEDIA_PATH) media.handleUpgrade(request, socket, head);
    else answerUpgrade(request, socket);
  });
  http.on('clientError', (error, socket) => {
    log.debug({ cause: errorText(error) }, 'a client spoke no HTTP');
    if (socket.writable) socket.end('HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n');
  });
  return http;
}

function listen(http: Server, config: Config): Promise<void> {
  return new Promise((resolve, reject) => {
    http.once('error', (error) => {
      const place = `HOST ${config.HOST}, PORT ${config.PORT}`;
      reject(
        new AppError('listen_failed', `cannot listen on ${place}: ${errorText(error)}`, { cause: error }),
      );
    });
    http.listen(config.PORT, config.HOST, () => {
      http.removeAllListeners('error');
      resolve();
    });
  });
}

function addressOf(http: Server): string {
  const { address, port, family } = http.address() as AddressInfo;
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`;
}
