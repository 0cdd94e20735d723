/**
 * The whole server, built from a configuration: the model, the switchboard and a port to listen on, wired together here
 * and nowhere else. `main.ts` runs one; tests run many in one process.
 */
import { existsSync } from 'node:fs';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { basename, dirname, extname, join, relative, resolve as absolute } from 'node:path';
import { type AgentCatalog, loadAgents } from './agent/agent-catalog.js';
import { type Clock, within } from './clock.js';
import type { Config } from './config.js';
import { AppError, ConfigError, errorText } from './errors.js';
import { FIXTURE_FORMAT } from './fixture/fixture-format.js';
import { Recordings, type RecordingsOptions } from './fixture/recordings.js';
import { uniformRandom } from './ids.js';
import { DRAIN_LINGER_MS } from './limits.js';
import { createGeminiConnectLive } from './model/gemini-connect.js';
import { createGeminiText } from './model/gemini-text.js';
import type { ConnectLive } from './model/live-connection.js';
import { type Dialogue, readDialogue } from './model/rehearsal/dialogue.js';
import { startRehearsalService } from './model/rehearsal/rehearsal-service.js';
import type { GenerateText } from './model/text-model.js';
import type { Log } from './observe/log.js';
import { PACKAGE_ROOT, packageVersion } from './package-root.js';
import { awaitStore } from './store/await-store.js';
import { EventWriter } from './store/event-writer.js';
import { openStore } from './store/open-store.js';
import { buildSwitchboard, type Switchboard, type SwitchboardOptions } from './switchboard.js';
import { TwilioCallControl } from './telephony/twilio-call-control.js';

export interface RunningServer {
  /** Where it listens, as `http://host:port`. */
  readonly url: string;
  /** The name of the agent that answers where no other is asked for. */
  readonly agent: string;
  /** Takes no more calls and runs, and resolves when the running ones are over. */
  drain(): Promise<void>;
  /** Cuts whatever is left, tells those who watch, writes what is committed and closes everything. Idempotent. */
  close(): Promise<void>;
}

export interface ServerDeps {
  readonly clock: Clock;
  readonly log: Log;
  /** In the place of those that the configuration names. */
  readonly agents?: AgentCatalog;
  /** How many errors of the process nobody waited for, for the metrics. */
  readonly strayErrors?: SwitchboardOptions['strayErrors'];
}

/** The model behind the calls and how to close it. */
export interface Model {
  readonly name: string;
  readonly generate: GenerateText;
  /** The name of the text model. */
  readonly textName: string;
  /** The name that one agent's setup asks for. */
  nameFor(agentName: string): string;
  readonly connectLive: ConnectLive;
  close(): Promise<void>;
}

export async function startServer(config: Config, deps: ServerDeps): Promise<RunningServer> {
  const { clock, log } = deps;
  const folder = join(PACKAGE_ROOT, 'agents');
  const agents = deps.agents ?? (await loadAgents({ selected: config.AGENT, folder, clock, log }));
  const model = await openModel(config, deps, agents);
  const store = await awaitStore(() => openStore(config.DATABASE_URL, { clock, log }), { clock, log });
  const writer = new EventWriter({ store, clock, log });
  const recordings = openRecordings(config, { ...deps, model, agents });
  const url = (): string => addressOf(switchboard.http);
  const switchboard: Switchboard = buildSwitchboard({
    config,
    agents,
    model,
    callControl: createCallControl(config, deps, url),
    keeping: { store, writer, generate: model.generate, textModel: model.textName },
    ...(deps.strayErrors && { strayErrors: deps.strayErrors }),
    ...(recordings && { openTap: (call, time) => recordings.record(call, time) }),
    clock,
    log,
  });
  await listen(switchboard.http, config);
  await switchboard.resume();
  const close = async (): Promise<void> => {
    await switchboard.close();
    await recordings?.close();
    await writer.close();
    await store.close();
    await model.close();
  };
  let closed: Promise<void> | undefined;
  return {
    url: addressOf(switchboard.http),
    agent: agents.default.name,
    async drain() {
      const hadCalls = switchboard.calls.counts()['calls'] !== 0;
      await switchboard.drain();
      // The sooner this process makes room for the next one, the sooner its callers are heard again.
      if (hadCalls) await within(clock, DRAIN_LINGER_MS, switchboard.calls.callersAsked());
    },
    close: () => (closed ??= close()),
  };
}

/** @throws ConfigError when RECORD_CALLS asks for it and DATA_DIR cannot hold it. */
function openRecordings(
  config: Config,
  { model, agents, ...deps }: ServerDeps & { readonly model: Model; readonly agents: AgentCatalog },
): Recordings | undefined {
  if (config.RECORD_CALLS !== 'fixture') return undefined;
  const folder = join(absolute(config.DATA_DIR), 'recordings');
  try {
    const header = recordingHeader(config);
    return new Recordings({
      ...deps,
      folder,
      header,
      agentFor: (agentName) => agentReference(agents, agentName, folder),
      modelFor: (agentName) => model.nameFor(agentName),
    });
  } catch (error) {
    throw new ConfigError('config_invalid', `DATA_DIR cannot hold recordings: ${errorText(error)}`);
  }
}

/** As a fixture in `folder` names an agent. */
function agentReference(agents: AgentCatalog, agentName: string, folder: string): string {
  const module = agents.modules.get(agentName);
  if (module === undefined) return agentName;
  if (dirname(module) === join(PACKAGE_ROOT, 'agents')) return basename(module, extname(module));
  const path = relative(folder, module).replaceAll('\\', '/');
  return path.startsWith('.') ? path : `./${path}`;
}

function recordingHeader(config: Config): RecordingsOptions['header'] {
  return {
    earshot: 'call',
    format: FIXTURE_FORMAT,
    made: 'recorded',
    server: packageVersion(),
    door: config.gemini !== undefined && 'vertex' in config.gemini ? 'vertex' : 'developer',
    settings: {
      callMaxMs: config.MAX_CALL_MINUTES * 60_000,
      idleRepromptMs: config.IDLE_REPROMPT_SECONDS * 1000,
      greetingProtectionMs: config.GREETING_PROTECTION_SECONDS * 1000,
      rest: hasRest(config),
      handoff: config.HANDOFF_NUMBER !== undefined,
    },
  };
}

/** Whether there are credentials for the carrier's REST API. */
function hasRest(config: Config): boolean {
  const byKey = config.TWILIO_API_KEY !== undefined && config.TWILIO_API_SECRET !== undefined;
  return config.TWILIO_ACCOUNT_SID !== undefined && (byKey || config.TWILIO_AUTH_TOKEN !== undefined);
}

/** Opens the configured model, or the stand-in. @throws ConfigError for an agent's dialogue that cannot be read. */
export async function openModel(config: Config, deps: ServerDeps, agents?: AgentCatalog): Promise<Model> {
  const { clock, log } = deps;
  if (config.gemini === undefined) return openRehearsal(deps, agents);
  const { GEMINI_MODEL: modelName, GEMINI_TEXT_MODEL: textModelName, gemini } = config;
  const connectLive = createGeminiConnectLive({ ...gemini, modelName, log });
  const generate = createGeminiText({ ...gemini, modelName: textModelName, clock, log });
  return {
    name: modelName,
    textName: textModelName,
    nameFor: () => modelName,
    connectLive,
    generate,
    close: async () => {},
  };
}

/** Each agent has its own dialogue where `NAME.rehearsal.json` lies beside its module. */
async function openRehearsal({ clock, log }: ServerDeps, agents?: AgentCatalog): Promise<Model> {
  const dialogues = dialoguesOf(agents);
  const service = await startRehearsalService({ clock, log, dialogues });
  const nameFor = (agentName: string): string =>
    dialogues.has(agentName) ? `rehearsal-${agentName}` : 'rehearsal';
  const connects = new Map<string, ConnectLive>();
  const connectAs = (modelName: string): ConnectLive => {
    const connect =
      connects.get(modelName) ??
      createGeminiConnectLive({ apiKey: 'rehearsal', modelName, baseUrl: service.url, log });
    connects.set(modelName, connect);
    return connect;
  };
  return {
    name: 'rehearsal',
    textName: 'rehearsal',
    nameFor,
    generate: createGeminiText({
      apiKey: 'rehearsal',
      // Text is answered by the default agent.
      modelName: nameFor(agents?.default.name ?? ''),
      baseUrl: service.url,
      clock,
      log,
    }),
    connectLive: (setup, ...rest) => connectAs(nameFor(setup.agentName))(setup, ...rest),
    close: () => service.close(),
  };
}

function dialoguesOf(agents: AgentCatalog | undefined): ReadonlyMap<string, Dialogue> {
  const dialogues = new Map<string, Dialogue>();
  for (const [name, module] of agents?.modules ?? []) {
    const file = join(dirname(module), `${basename(module, extname(module))}.rehearsal.json`);
    if (existsSync(file)) dialogues.set(name, readDialogue(file));
  }
  return dialogues;
}

function createCallControl(config: Config, { log }: ServerDeps, url: () => string): TwilioCallControl {
  return new TwilioCallControl({
    ...twilioRest(config),
    handoffNumber: config.HANDOFF_NUMBER,
    // Without PUBLIC_URL only a carrier on this machine can reach us.
    publicOrigin: () => config.PUBLIC_URL ?? url(),
    random: uniformRandom,
    log,
  });
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
