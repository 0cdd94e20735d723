/**
 * Everything that a real number needs, looked at in the order in which a call needs it: the variables, the agents,
 * Twilio's account, the number, the public doors, the model with each agent's own setup, and the store. Reads and
 * connects only: nothing is created, here or elsewhere. A check that fails is a finding; none throws.
 */
import { join } from 'node:path';
import type { Agent, AgentContext } from './agent/agent.js';
import { type AgentCatalog, loadAgents } from './agent/agent-catalog.js';
import { CallClock } from './call/call-clock.js';
import { liveSetup } from './call/live-setup.js';
import type { Clock } from './clock.js';
import { type Config, startWarnings } from './config.js';
import { lookAtDataFolder } from './data-folder.js';
import { checkPublicDoors } from './doctor-doors.js';
import { type Finding, finding } from './doctor-finding.js';
import { checkAccount, checkNumber } from './doctor-number.js';
import { AppError, errorText } from './errors.js';
import { causeOf } from './foreign.js';
import { ModelConnectError } from './model/gemini-connect-error.js';
import type { LiveListener } from './model/live-connection.js';
import { type Log, silentLog } from './observe/log.js';
import { PACKAGE_ROOT } from './package-root.js';
import { type Model, openModel, twilioRest } from './server.js';
import { probeStore } from './store/probe-store.js';
import { TwilioAccount } from './telephony/twilio-account.js';

export interface DoctorDeps {
  readonly clock: Clock;
  /** Where the agents are; the package's own `agents/` if it is not said. */
  readonly agentsFolder?: string;
}

/** Each finding as soon as it is known. */
export async function* diagnose(config: Config, deps: DoctorDeps): AsyncGenerator<Finding> {
  yield* checkVariables(config);
  const { findings, catalog } = await checkAgents(config, deps);
  yield* findings;
  yield* await checkCredentials(config);
  const account = new TwilioAccount(twilioRest(config));
  yield* await checkNumber(account, config, (name) => catalog?.find(name) !== undefined);
  yield* await checkPublicDoors(config);
  yield* checkModel(config, deps, catalog);
  yield checkDataFolder(config);
  yield await checkDatabase(config);
}

/** What the server would warn about when it starts. */
function checkVariables(config: Config): Finding[] {
  return startWarnings(config).map((text) => ({ about: 'environment', state: 'mend', text }));
}

interface AgentsAnswer {
  readonly findings: readonly Finding[];
  /** Undefined when the configured agent cannot be loaded. */
  readonly catalog: AgentCatalog | undefined;
}

async function checkAgents(config: Config, deps: DoctorDeps): Promise<AgentsAnswer> {
  const broken: Finding[] = [];
  const log: Log = {
    ...silentLog,
    warn(fields) {
      const { agent, cause } = fields as { agent?: unknown; cause?: unknown };
      broken.push({ about: `agent ${String(agent)}`, state: 'mend', text: String(cause), mend: MEND_MODULE });
    },
  };
  const folder = deps.agentsFolder ?? join(PACKAGE_ROOT, 'agents');
  try {
    const catalog = await loadAgents({ selected: config.AGENT, folder, clock: deps.clock, log });
    const text = `${catalog.default.name} is loaded`;
    return { findings: [{ about: 'AGENT', state: 'ok', text }, ...broken], catalog };
  } catch (error) {
    const failed: Finding = { about: 'AGENT', state: 'mend', text: errorText(error), mend: MEND_MODULE };
    return { findings: [failed, ...broken], catalog: undefined };
  }
}

const MEND_MODULE = 'name an agent that exists, and mend its module';

/** The auth token is tried by itself too: with a wrong one REST may work by the key, and every webhook be refused. */
async function checkCredentials(config: Config): Promise<Finding[]> {
  const rest = twilioRest(config);
  const byToken = rest.authToken !== undefined;
  const byApiKey = rest.apiKey !== undefined;
  const findings: Finding[] = [];
  if (byToken || !byApiKey) {
    const account = new TwilioAccount({ ...rest, apiKey: undefined, apiSecret: undefined });
    findings.push(await checkAccount({ about: 'Twilio auth token', account, byApiKey: false }));
  }
  if (byApiKey) {
    const account = new TwilioAccount(rest);
    findings.push(await checkAccount({ about: 'Twilio API key', account, byApiKey: true }));
  }
  return findings;
}

async function* checkModel(
  config: Config,
  deps: DoctorDeps,
  catalog: AgentCatalog | undefined,
): AsyncGenerator<Finding> {
  if (config.MODEL === 'rehearsal') {
    const forCallers = config.PUBLIC_URL !== undefined;
    const text = forCallers
      ? 'the rehearsal stand-in takes turns but understands no speech: real callers would not be understood'
      : 'the rehearsal stand-in takes turns but understands no speech; that will do on this machine';
    yield finding('MODEL', !forCallers, { text, mend: 'set GEMINI_API_KEY and leave MODEL out' });
  }
  if (catalog === undefined) {
    yield { about: 'model', state: 'unchecked', text: 'there is no agent whose setup could be tried' };
    return;
  }
  let model: Model;
  try {
    model = await openModel(config, { clock: deps.clock, log: silentLog }, catalog);
  } catch (error) {
    yield { about: 'model', state: 'mend', text: modelFailure(error), mend: MEND_MODEL };
    return;
  }
  try {
    const named = catalog.names.map((name) => catalog.find(name)).filter((agent) => agent !== undefined);
    for (const agent of new Set([catalog.default, ...named])) yield await tryAgent(model, agent, deps.clock);
  } finally {
    await model.close();
  }
}

const MEND_MODEL = 'check the key, GEMINI_MODEL, and that this machine reaches the model’s host';

/** A stranger's call, on which an instruction function may be tried. */
function strangersCall(agent: Agent): AgentContext {
  const callSid = `CA${'0'.repeat(32)}`;
  return {
    invocationId: 'doctor',
    callSid,
    appName: agent.name,
    userId: `anonymous:${callSid}`,
    sessionId: callSid,
    callerVerified: false,
  };
}

async function tryAgent(model: Model, agent: Agent, clock: Clock): Promise<Finding> {
  const about = `model for agent ${agent.name}`;
  try {
    const setup = liveSetup(agent, strangersCall(agent));
    const { listener, closed } = deafListener();
    const connection = await model.connectLive(setup, listener, new AbortController().signal, {
      clock: new CallClock(clock),
      tap: undefined,
    });
    connection.close();
    await closed;
    return { about, state: 'ok', text: `${model.name} accepted the agent’s setup` };
  } catch (error) {
    const text = `${model.name}: ${modelFailure(error)}`;
    const mend =
      error instanceof AppError && error.code === 'model_setup_refused'
        ? 'mend what it names: the key, GEMINI_MODEL, or the voice and language of the agent'
        : error instanceof AppError && error.code !== 'agent_invalid'
          ? MEND_MODEL
          : 'mend the agent’s instruction function';
    return { about, state: 'mend', text, mend };
  }
}

/** With the provider's own reason: this is the operator's terminal, and keys are masked in it already. */
function modelFailure(error: unknown): string {
  const words = [errorText(error)];
  if (error instanceof ModelConnectError && error.providerReason !== '') words.push(error.providerReason);
  const cause = causeOf(error);
  if (cause !== undefined) words.push(errorText(cause));
  return words.join(': ');
}

function deafListener(): { readonly listener: LiveListener; readonly closed: Promise<void> } {
  let onClose = ignore;
  const closed = new Promise<void>((resolvePromise) => {
    onClose = resolvePromise;
  });
  const listener: LiveListener = {
    onInterrupted: ignore,
    onAudio: ignore,
    onInputTranscription: ignore,
    onOutputTranscription: ignore,
    onGenerationComplete: ignore,
    onTurnComplete: ignore,
    onToolCall: ignore,
    onToolCallCancellation: ignore,
    onGoAway: ignore,
    onSessionResumptionUpdate: ignore,
    onUsageMetadata: ignore,
    onClose: () => onClose(),
  };
  return { listener, closed };
}

function ignore(): void {}

/** Looks whether the database answers, or can be made; nothing is. */
async function checkDatabase(config: Config): Promise<Finding> {
  const about = 'DATABASE_URL';
  try {
    return { about, state: 'ok', text: await probeStore(config.DATABASE_URL, silentLog) };
  } catch (error) {
    const mend = 'name a file that this user may write to, or a PostgreSQL that answers';
    return { about, state: 'mend', text: errorText(error), mend };
  }
}

/** Looks whether DATA_DIR can be written or made, without making it. */
function checkDataFolder(config: Config): Finding {
  const about = 'DATA_DIR';
  const { path, isThere, fault } = lookAtDataFolder(config.DATA_DIR);
  if (fault === undefined)
    return { about, state: 'ok', text: `${path} ${isThere ? 'is writable' : 'can be made'}` };
  return { about, state: 'mend', text: fault, mend: 'make DATA_DIR a folder that this user may write to' };
}
