/**
 * The environment, read once: every variable is validated here into one frozen object, and nothing else reads
 * `process.env`. Each fault is one clear line that names its variable; main.ts tells all of them and exits with 78
 * (EX_CONFIG).
 */
import { isIP } from 'node:net';
import { join } from 'node:path';
import { z } from 'zod';
import { ConfigError } from './errors.js';
import { isLoopbackHost } from './loopback.js';

/** Twilio ends every call after 24 hours; a timer of Node's could not hold more than 24.8 days. */
const CALL_MINUTES_MAX = 24 * 60;
const WAIT_SECONDS_MAX = 3600;

/** Empty values never get here: they count as unset. */
const text = z.string().trim();
/** A path or a name of a file. */
const path = text.regex(/^\P{Cc}+$/u, 'must not hold control characters');
/** Keys, tokens and ids travel in headers and URLs, in which a stray space or quote mark is never seen. */
const word = text.regex(/^[\x21-\x7e]+$/, 'must be printable ASCII without spaces');
/** One label of a host name that a library puts together. */
const label = text.regex(/^[a-z0-9-]+$/, 'must be lower-case letters, digits and -');
const modelName = text.regex(/^[\w./@:-]+$/, 'must be a model name: letters, digits and any of . _ - / @ :');
const phoneNumber = text.regex(/^\+[1-9]\d{6,14}$/, 'must be a number in E.164 form, such as +15550100123');
const hostName = text.refine(
  (value) => isIP(value) !== 0 || /^[\w-]+(\.[\w-]+)*$/.test(value),
  'must be a host name or an IP address, without a port or brackets',
);

const ON = ['1', 'true', 'on', 'yes'];
const OFF = ['0', 'false', 'off', 'no'];
const flag = z.stringbool({
  truthy: ON,
  falsy: OFF,
  error: `must be one of ${[...ON, ...OFF].join(', ')}`,
});

/** Plain decimal digits: no sign, exponent or hexadecimal, which are more often slips than wishes. */
function upTo(max: number, kind: 'number' | 'whole number') {
  const shape = kind === 'number' ? /^\d+(\.\d+)?$/ : /^\d+$/;
  return text
    .refine((value) => shape.test(value) && Number(value) <= max, `must be a ${kind} from 0 to ${max}`)
    .transform(Number);
}

function oneOf<const Words extends readonly string[]>(words: Words) {
  return z.enum(words, `must be one of ${words.join(', ')}`);
}

function httpUrl(allowPath: boolean) {
  return text.transform((value, context) => {
    const url = URL.canParse(value) ? new URL(value) : undefined;
    const secure = url?.protocol === 'https:' || (url?.protocol === 'http:' && isLoopbackHost(url.hostname));
    const plain = url?.username === '' && url.password === '' && !/[?#]/.test(value);
    if (!secure || !plain || (!allowPath && url?.pathname !== '/')) {
      const shape = allowPath ? 'an https:// URL' : 'an https:// origin without a path';
      context.addIssue({ code: 'custom', message: `must be ${shape} (http:// only to a loopback host)` });
      return z.NEVER;
    }
    return allowPath ? value.replace(/\/+$/, '') : value.replace(/\/$/, '');
  });
}

function notBuiltYet(what: string) {
  return text.refine(() => false, `is set, but ${what} is not built yet: unset it`);
}

/** Every variable: its schema (undefined when unset), the default as the docs print it, and its meaning. */
const VARIABLES = {
  HOST: { schema: hostName, default: '127.0.0.1', meaning: 'address to listen on' },
  PORT: {
    schema: upTo(65_535, 'whole number'),
    default: '8080',
    meaning: 'port to listen on, up to 65535; 0 takes a free one',
  },
  PUBLIC_URL: {
    schema: httpUrl(false),
    default: '',
    meaning:
      'public `https://` origin, used in TwiML and in signature checks; unset: taken from a loopback request',
  },
  AGENT: {
    schema: path,
    default: 'support',
    meaning: 'a name under `agents/`, or a path to a module whose default export is the agent',
  },
  GEMINI_API_KEY: {
    schema: word,
    default: '',
    meaning: 'key of the Gemini Developer API, or of Vertex AI in express mode',
  },
  GOOGLE_API_KEY: { schema: word, default: '', meaning: 'the same; it beats GEMINI_API_KEY, as in the SDK' },
  GOOGLE_GENAI_USE_ENTERPRISE: {
    schema: flag,
    default: '',
    meaning: 'on: Vertex AI instead of the Developer API; it beats GOOGLE_GENAI_USE_VERTEXAI, as in the SDK',
  },
  GOOGLE_GENAI_USE_VERTEXAI: {
    schema: flag,
    default: '',
    meaning: 'the same by its older name',
  },
  GOOGLE_CLOUD_PROJECT: {
    schema: text.regex(/^[a-z0-9][a-z0-9.:-]*$/, 'must be the id or the number of a Google Cloud project'),
    default: '',
    meaning:
      'project on Vertex AI, entered with application default credentials; it beats an API key there, as in the SDK',
  },
  GOOGLE_CLOUD_LOCATION: {
    schema: label,
    default: '',
    meaning: 'location of that project’s calls, such as `us-central1`; unset: `global`, as in the SDK',
  },
  MODEL: {
    schema: oneOf(['gemini', 'rehearsal']),
    default: '',
    meaning:
      '`gemini` or `rehearsal` (the embedded stand-in); unset: `gemini` with a credential, else `rehearsal`. With `PUBLIC_URL` or a Twilio token and no credential, `rehearsal` must be said',
  },
  GOOGLE_GEMINI_BASE_URL: {
    schema: httpUrl(true),
    default: '',
    meaning: 'another host of the Developer API (the SDK’s variable); `http://` only to loopback',
  },
  GOOGLE_VERTEX_BASE_URL: {
    schema: httpUrl(true),
    default: '',
    meaning: 'another host of Vertex AI (the SDK’s variable); `http://` only to loopback',
  },
  GEMINI_MODEL: { schema: modelName, default: 'gemini-3.8-live', meaning: 'the live model' },
  GEMINI_TEXT_MODEL: {
    schema: modelName,
    default: 'gemini-flash-latest',
    meaning: 'the model of the text modes',
  },
  TWILIO_ACCOUNT_SID: {
    schema: text.regex(/^AC[0-9a-zA-Z]+$/, 'must be AC and letters or digits'),
    default: '',
    meaning: 'account of the REST API, by which a line is cut',
  },
  TWILIO_AUTH_TOKEN: {
    schema: word,
    default: '',
    meaning:
      'with it every webhook and every media socket must be signed and `PUBLIC_URL` is required; without it only a loopback `HOST` is accepted',
  },
  TWILIO_API_KEY: { schema: word, default: '', meaning: 'API key SID for REST, instead of the auth token' },
  TWILIO_API_SECRET: { schema: word, default: '', meaning: 'secret of TWILIO_API_KEY' },
  TWILIO_SHARED_KEY: {
    schema: word,
    default: '',
    meaning: 'SharedKey secret, where a Webhook Rule signs with one',
  },
  TWILIO_REGION: { schema: label, default: '', meaning: 'REST region, such as `ie1`' },
  TWILIO_EDGE: { schema: label, default: '', meaning: 'REST edge, such as `dublin`' },
  TWILIO_API_BASE_URL: {
    schema: httpUrl(true),
    default: '',
    meaning: 'a Twilio-compatible REST host; `http://` only to loopback',
  },
  TWILIO_NUMBER: { schema: phoneNumber, default: '', meaning: 'your number, which `npm run doctor` checks' },
  HANDOFF_NUMBER: {
    schema: phoneNumber,
    default: '',
    meaning: 'the human that `connect_to_human` connects callers with',
  },
  HANDOFF_QUEUE: {
    schema: notBuiltYet('handing a call to a queue'),
    default: '',
    meaning: 'not built yet: refused',
  },
  HANDOFF_WORKFLOW_SID: {
    schema: notBuiltYet('handing a call to TaskRouter'),
    default: '',
    meaning: 'not built yet: refused',
  },
  OUTBOUND_HOURS: { schema: notBuiltYet('placing calls'), default: '', meaning: 'not built yet: refused' },
  OUTBOUND_COUNTRIES: {
    schema: notBuiltYet('placing calls'),
    default: '',
    meaning: 'not built yet: refused',
  },
  DO_NOT_CALL: { schema: notBuiltYet('placing calls'), default: '', meaning: 'not built yet: refused' },
  DATABASE_URL: {
    schema: text.regex(
      /^(sqlite:\P{Cc}+|postgres(ql)?:\/\/[\x21-\x7e]+)$/u,
      'must be sqlite:PATH or postgres://…',
    ),
    default: 'sqlite:data/earshot.db',
    meaning:
      'where conversations, approvals and the ledger are kept: `sqlite:PATH` or `postgres://…`, with the same behaviour; unset: `earshot.db` in `DATA_DIR`',
  },
  DATA_DIR: {
    schema: path,
    default: 'data',
    meaning:
      'the folder of all that is written: the database, unless `DATABASE_URL` names another, and recordings. Made where it is missing, for the server’s user alone',
  },
  CONSOLE_TOKEN: {
    schema: word,
    default: '',
    meaning:
      'bearer token of everything but `/twilio/*`, `/healthz`, `/readyz`; required unless `HOST` is loopback and `PUBLIC_URL` is unset',
  },
  METRICS_TOKEN: {
    schema: word,
    default: '',
    meaning: 'bearer token of `/metrics`; else CONSOLE_TOKEN where one is set',
  },
  MAX_CALLS: {
    schema: upTo(100_000, 'whole number'),
    default: '0',
    meaning:
      'above 0 (up to 100000) the only limit on calls; 0: admission by event-loop lag. Over it a caller hears a busy message',
  },
  MAX_CALL_MINUTES: {
    schema: upTo(CALL_MINUTES_MAX, 'number'),
    default: '30',
    meaning: 'longest call, up to 1440; 0 = no limit',
  },
  IDLE_REPROMPT_SECONDS: {
    schema: upTo(WAIT_SECONDS_MAX, 'number'),
    default: '15',
    meaning:
      'silence of both sides, up to 3600, after which the agent asks again, and after as much again says goodbye; 0 = off',
  },
  GREETING_PROTECTION_SECONDS: {
    schema: upTo(WAIT_SECONDS_MAX, 'number'),
    default: '3',
    meaning: 'from the first greeting sound sent, an interruption is held for this long, up to 3600; 0 = off',
  },
  RECORD_CALLS: {
    schema: z.enum(
      ['off', 'fixture'],
      'must be off or fixture: recording the sound as audio is not built yet',
    ),
    default: 'off',
    meaning:
      '`fixture`: each call as a replayable file in `DATA_DIR/recordings`, which holds what was said; `audio` and `both` are not built yet',
  },
  CALL_WEBHOOK_URL: {
    schema: notBuiltYet('the end-of-call webhook'),
    default: '',
    meaning: 'not built yet: refused',
  },
  CALL_WEBHOOK_SECRET: {
    schema: notBuiltYet('the end-of-call webhook'),
    default: '',
    meaning: 'not built yet: refused',
  },
  LOG_LEVEL: {
    schema: oneOf(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']),
    default: 'info',
    meaning: 'what is logged',
  },
  LOG_PRETTY: { schema: flag, default: 'off', meaning: 'log for people instead of JSON lines' },
  EARSHOT_DEBUG: { schema: flag, default: 'off', meaning: 'opens `/debug/runs`' },
} as const;

type Variables = typeof VARIABLES;
export type VariableName = keyof Variables;
type Values = { readonly [Name in VariableName]: z.output<Variables[Name]['schema']> | undefined };

/** What `docs/configuration.md` lists; a test holds the two equal. */
export const CONFIG_VARIABLES: readonly { name: VariableName; default: string; meaning: string }[] = (
  Object.keys(VARIABLES) as VariableName[]
).map((name) => ({ name, default: VARIABLES[name].default, meaning: VARIABLES[name].meaning }));

/** Which of Google's doors, with everything that decides it: the SDK is told all of this and asks nobody else. */
export type GeminiAccess = { readonly baseUrl?: string } & (
  | { readonly apiKey: string }
  | { readonly vertex: { readonly apiKey: string } | { readonly project: string; readonly location: string } }
);

/** Defaults filled in where there is one that is not the absence of the variable. */
export type Config = Omit<Values, DefaultedName | 'MODEL'> & {
  readonly [Name in DefaultedName]: z.output<Variables[Name]['schema']>;
} & {
  readonly MODEL: 'gemini' | 'rehearsal';
  /** Undefined with the rehearsal model. */
  readonly gemini: GeminiAccess | undefined;
};

type DefaultedName = {
  [Name in VariableName]: Variables[Name]['default'] extends '' ? never : Name;
}[VariableName];

type Environment = Readonly<Record<string, string | undefined>>;

/** Reads and checks the environment. Throws a ConfigError with a line for each fault, which names the variable. */
export function readConfig(environment: Environment): Config {
  const { values, given, faults } = readEach(environment);
  const needsGemini = given.has('MODEL') ? values.MODEL === 'gemini' : hasModelCredential(values, given);
  faults.push(...faultsTogether(values, given));
  if (needsGemini) faults.push(...geminiFaults(values, given));
  if (faults.length > 0) throw new ConfigError('config_invalid', faults.join('\n'));
  const MODEL = needsGemini ? 'gemini' : 'rehearsal';
  const DATABASE_URL = given.has('DATABASE_URL') ? values.DATABASE_URL : databaseIn(values.DATA_DIR ?? '');
  return Object.freeze({
    ...values,
    DATABASE_URL,
    MODEL,
    gemini: needsGemini ? geminiAccess(values) : undefined,
  }) as Config;
}

/** Where the database lies when nobody says: with all the rest that is kept. */
function databaseIn(dataFolder: string): string {
  return `sqlite:${join(dataFolder, 'earshot.db')}`;
}

interface Read {
  /** Undefined where a variable is not given, or is wrong. */
  readonly values: Values;
  /** What was set, also to something wrong. */
  readonly given: ReadonlySet<VariableName>;
  readonly faults: string[];
}

function readEach(environment: Environment): Read {
  const values: Record<string, unknown> = {};
  const given = new Set<VariableName>();
  const faults: string[] = [];
  for (const name of Object.keys(VARIABLES) as VariableName[]) {
    const set = environment[name]?.trim() ?? '';
    if (set !== '') given.add(name);
    const raw = set === '' ? VARIABLES[name].default : set;
    values[name] = undefined;
    if (raw === '') continue;
    const result = (VARIABLES[name].schema as z.ZodType).safeParse(raw);
    if (result.success) values[name] = result.data;
    else faults.push(`${name} ${result.error.issues[0]?.message ?? 'is not valid'}`);
  }
  return { values: values as Values, given, faults };
}

type Given = Read['given'];

function isOnVertex(values: Values): boolean {
  return values.GOOGLE_GENAI_USE_ENTERPRISE ?? values.GOOGLE_GENAI_USE_VERTEXAI ?? false;
}

function hasApiKey(given: Given): boolean {
  return given.has('GOOGLE_API_KEY') || given.has('GEMINI_API_KEY');
}

function hasModelCredential(values: Values, given: Given): boolean {
  return isOnVertex(values) || hasApiKey(given);
}

/** What `@google/genai` 2.32 makes of the same variables (its GoogleGenAI constructor). */
function geminiAccess(values: Values): GeminiAccess {
  const apiKey = values.GOOGLE_API_KEY ?? values.GEMINI_API_KEY ?? '';
  const { GOOGLE_CLOUD_PROJECT: project, GOOGLE_CLOUD_LOCATION: location } = values;
  if (!isOnVertex(values)) return { apiKey, ...optionalBaseUrl(values.GOOGLE_GEMINI_BASE_URL) };
  const atBaseUrl = optionalBaseUrl(values.GOOGLE_VERTEX_BASE_URL);
  if (project === undefined) return { vertex: { apiKey }, ...atBaseUrl };
  return { vertex: { project, location: location ?? 'global' }, ...atBaseUrl };
}

function optionalBaseUrl(baseUrl: string | undefined): { baseUrl?: string } {
  return baseUrl === undefined ? {} : { baseUrl };
}

/** What that constructor would throw for, said before it could. */
function geminiFaults(values: Values, given: Given): string[] {
  if (!isOnVertex(values)) {
    if (hasApiKey(given)) return [];
    return ['MODEL is gemini, but there is no GEMINI_API_KEY, GOOGLE_API_KEY or Vertex AI setting'];
  }
  if (given.has('GOOGLE_CLOUD_PROJECT')) return [];
  if (given.has('GOOGLE_CLOUD_LOCATION'))
    return ['GOOGLE_CLOUD_PROJECT is required with GOOGLE_CLOUD_LOCATION'];
  if (hasApiKey(given)) return [];
  return ['GOOGLE_CLOUD_PROJECT is required on Vertex AI, unless there is a GOOGLE_API_KEY'];
}

/**
 * The rules that join variables; each protects the line from strangers or the caller from a silent stand-in. A variable that
 * is set to something wrong is told as that alone: it is not missing too, and what its being set asks for is.
 */
function faultsTogether(values: Values, given: Given): string[] {
  const loopback = values.HOST === undefined || isLoopbackHost(values.HOST);
  const isPublic = given.has('PUBLIC_URL');
  const isSigned = given.has('TWILIO_AUTH_TOKEN');
  const faults: string[] = [];
  if (!isSigned && !loopback)
    faults.push('TWILIO_AUTH_TOKEN is required unless HOST is a loopback address: nothing unsigned gets in');
  if ((isSigned || !loopback) && !isPublic)
    faults.push('PUBLIC_URL is required with TWILIO_AUTH_TOKEN: signatures are checked over it');
  if ((isPublic || !loopback) && !given.has('CONSOLE_TOKEN'))
    faults.push('CONSOLE_TOKEN is required unless HOST is a loopback address and PUBLIC_URL is unset');
  const [key, secret] = ['TWILIO_API_KEY', 'TWILIO_API_SECRET'] as const;
  if (given.has(key) && !given.has(secret)) faults.push(`${secret} is required with ${key}`);
  if (given.has(secret) && !given.has(key)) faults.push(`${key} is required with ${secret}`);
  const isServing = isPublic || isSigned || !loopback;
  if (isServing && !given.has('MODEL') && !hasModelCredential(values, given))
    faults.push(
      'GEMINI_API_KEY is missing; set it, or say MODEL=rehearsal to answer real calls with the stand-in',
    );
  return faults;
}

const TOKEN_CHARS_MIN = 16;

/** What is accepted but should not go unsaid when the server starts; never a value, which may be a secret. */
export function startWarnings(config: Config): readonly string[] {
  const warnings: string[] = [];
  if (config.RECORD_CALLS !== 'off') {
    warnings.push(
      'RECORD_CALLS is on: every call is written into DATA_DIR/recordings, with what is said in it',
    );
  }
  if (config.PUBLIC_URL !== undefined && config.TWILIO_AUTH_TOKEN === undefined) {
    warnings.push('PUBLIC_URL is set without TWILIO_AUTH_TOKEN: calls from outside this machine are refused');
  }
  const { GOOGLE_GENAI_USE_ENTERPRISE: enterprise, GOOGLE_GENAI_USE_VERTEXAI: vertexAi } = config;
  if (enterprise !== undefined && vertexAi !== undefined && enterprise !== vertexAi) {
    warnings.push(
      'GOOGLE_GENAI_USE_VERTEXAI is overruled by GOOGLE_GENAI_USE_ENTERPRISE, which says otherwise',
    );
  }
  for (const name of ['CONSOLE_TOKEN', 'METRICS_TOKEN'] as const) {
    const token = config[name];
    if (token !== undefined && token.length < TOKEN_CHARS_MIN) {
      warnings.push(`${name} is short enough to be guessed: give it ${TOKEN_CHARS_MIN} characters or more`);
    }
  }
  return warnings;
}
