/**
 * The environment, read once: every variable is validated here into one frozen object, and nothing else reads
 * `process.env`. A bad value is one clear line that names its variable; main.ts then exits with 78 (EX_CONFIG).
 */
import { z } from 'zod';
import { ConfigError } from './errors.js';
import { isLoopbackHost } from './loopback.js';

const port = z.coerce.number().int().min(0).max(65_535);
const count = z.coerce.number().int().min(0).max(100_000);
const seconds = z.coerce.number().min(0).max(86_400);
const flag = z
  .enum(['1', 'true', 'on', 'yes', '0', 'false', 'off', 'no'])
  .transform((word) => ['1', 'true', 'on', 'yes'].includes(word));
const text = z.string().trim().min(1);

function httpUrl(allowPath: boolean) {
  return text.transform((value, context) => {
    const url = URL.canParse(value) ? new URL(value) : undefined;
    const secure = url?.protocol === 'https:' || (url?.protocol === 'http:' && isLoopbackHost(url.hostname));
    const plain = url !== undefined && url.username === '' && url.search === '' && url.hash === '';
    if (!secure || !plain || (!allowPath && url.pathname !== '/')) {
      const shape = allowPath ? 'an https:// URL' : 'an https:// origin without a path';
      context.addIssue({ code: 'custom', message: `must be ${shape} (http:// only to a loopback host)` });
      return z.NEVER;
    }
    return allowPath ? value.replace(/\/+$/, '') : value.replace(/\/$/, '');
  });
}

function notBuiltYet(what: string) {
  return text.refine(() => false, { message: `is set, but ${what} is not built yet; unset it` });
}

const phoneNumber = text.regex(/^\+[1-9]\d{6,14}$/, 'must be a number in E.164 form, such as +15550100123');

/** Every variable: its schema (undefined when unset), the default as the docs print it, and its meaning. */
const VARIABLES = {
  HOST: { schema: text, default: '127.0.0.1', meaning: 'address to listen on' },
  PORT: { schema: port, default: '8080', meaning: 'port to listen on; 0 takes a free one' },
  PUBLIC_URL: {
    schema: httpUrl(false),
    default: '',
    meaning:
      'public `https://` origin, used in TwiML and in signature checks; unset: taken from a loopback request',
  },
  AGENT: {
    schema: text,
    default: 'support',
    meaning: 'a name under `agents/`, or a path to a module whose default export is the agent',
  },
  GEMINI_API_KEY: { schema: text, default: '', meaning: 'Gemini Developer API key' },
  GOOGLE_API_KEY: { schema: text, default: '', meaning: 'the same; it beats GEMINI_API_KEY, as in the SDK' },
  GOOGLE_GENAI_USE_VERTEXAI: {
    schema: flag,
    default: 'off',
    meaning: 'Vertex AI instead, by the SDK’s own variables',
  },
  GOOGLE_CLOUD_PROJECT: { schema: text, default: '', meaning: 'project on Vertex AI' },
  GOOGLE_CLOUD_LOCATION: { schema: text, default: '', meaning: 'location on Vertex AI' },
  MODEL: {
    schema: z.enum(['gemini', 'rehearsal']),
    default: '',
    meaning:
      '`gemini` or `rehearsal` (the embedded stand-in); unset: `gemini` with a credential, else `rehearsal`. With `PUBLIC_URL` or a Twilio token and no credential, `rehearsal` must be said',
  },
  GOOGLE_GEMINI_BASE_URL: {
    schema: httpUrl(true),
    default: '',
    meaning: 'another host of the Gemini API (the SDK’s variable); `http://` only to loopback',
  },
  GEMINI_MODEL: { schema: text, default: 'gemini-3.8-live', meaning: 'the live model' },
  GEMINI_TEXT_MODEL: {
    schema: text,
    default: 'gemini-flash-latest',
    meaning: 'the model of the text modes (which are not built yet)',
  },
  TWILIO_ACCOUNT_SID: {
    schema: text.regex(/^AC[0-9a-zA-Z]+$/, 'must begin with AC'),
    default: '',
    meaning: 'account of the REST API, by which a line is cut',
  },
  TWILIO_AUTH_TOKEN: {
    schema: text,
    default: '',
    meaning:
      'with it every webhook and every media socket must be signed and `PUBLIC_URL` is required; without it only a loopback `HOST` is accepted',
  },
  TWILIO_API_KEY: { schema: text, default: '', meaning: 'API key SID for REST, instead of the auth token' },
  TWILIO_API_SECRET: { schema: text, default: '', meaning: 'secret of TWILIO_API_KEY' },
  TWILIO_SHARED_KEY: {
    schema: text,
    default: '',
    meaning: 'SharedKey secret, where a Webhook Rule signs with one',
  },
  TWILIO_REGION: { schema: text, default: '', meaning: 'REST region, such as `ie1`' },
  TWILIO_EDGE: { schema: text, default: '', meaning: 'REST edge, such as `dublin`' },
  TWILIO_API_BASE_URL: {
    schema: httpUrl(true),
    default: '',
    meaning: 'a Twilio-compatible REST host; `http://` only to loopback',
  },
  TWILIO_NUMBER: { schema: phoneNumber, default: '', meaning: 'your number, which `npm run doctor` checks' },
  HANDOFF_NUMBER: {
    schema: notBuiltYet('handing a call to a human'),
    default: '',
    meaning: 'not built yet: refused',
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
    schema: text.regex(/^(sqlite:.+|postgres(ql)?:\/\/.+)$/, 'must be sqlite:PATH or postgres://…'),
    default: 'sqlite:data/earshot.db',
    meaning: 'not built yet: checked, then ignored with a warning; calls are kept in memory',
  },
  DATA_DIR: { schema: text, default: 'data', meaning: 'where files are written' },
  CONSOLE_TOKEN: {
    schema: text,
    default: '',
    meaning:
      'bearer token of everything but `/twilio/*`, `/healthz`, `/readyz`; required unless `HOST` is loopback and `PUBLIC_URL` is unset',
  },
  METRICS_TOKEN: {
    schema: text,
    default: '',
    meaning: 'bearer token of `/metrics`; else CONSOLE_TOKEN where one is set',
  },
  MAX_CALLS: {
    schema: count,
    default: '0',
    meaning:
      'above 0 the only limit on calls; 0: admission by event-loop lag. Over it a caller hears a busy message',
  },
  MAX_CALL_MINUTES: { schema: seconds, default: '30', meaning: 'longest call; 0 = no limit' },
  IDLE_REPROMPT_SECONDS: {
    schema: seconds,
    default: '15',
    meaning:
      'silence of both sides after which the agent asks again, and after as much again says goodbye; 0 = off',
  },
  GREETING_PROTECTION_SECONDS: {
    schema: seconds,
    default: '3',
    meaning: 'from the first greeting sound sent, an interruption is held for this long; 0 = off',
  },
  RECORD_CALLS: {
    schema: z.enum(['off'], 'is not "off", but recording calls is not built yet'),
    default: 'off',
    meaning: 'only `off`: recording is not built yet',
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
    schema: z.enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']),
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

/** Defaults filled in where there is one that is not the absence of the variable. */
export type Config = Omit<Values, DefaultedName | 'MODEL'> & {
  readonly [Name in DefaultedName]: z.output<Variables[Name]['schema']>;
} & { readonly MODEL: 'gemini' | 'rehearsal'; readonly hasModelCredential: boolean };

type DefaultedName = {
  [Name in VariableName]: Variables[Name]['default'] extends '' ? never : Name;
}[VariableName];

type Environment = Readonly<Record<string, string | undefined>>;

/** Reads and checks the environment. Throws a ConfigError whose message names the first bad variable. */
export function readConfig(environment: Environment): Config {
  const values: Record<string, unknown> = {};
  for (const name of Object.keys(VARIABLES) as VariableName[]) {
    const given = environment[name]?.trim();
    const raw = given === undefined || given === '' ? VARIABLES[name].default : given;
    values[name] = raw === '' ? undefined : parse(name, raw);
  }
  const checked = values as Values;
  const hasModelCredential =
    checked.GEMINI_API_KEY !== undefined ||
    checked.GOOGLE_API_KEY !== undefined ||
    checked.GOOGLE_GENAI_USE_VERTEXAI === true;
  const MODEL = checked.MODEL ?? (hasModelCredential ? 'gemini' : 'rehearsal');
  checkTogether(checked, hasModelCredential, MODEL);
  return Object.freeze({ ...checked, MODEL, hasModelCredential }) as Config;
}

function parse(name: VariableName, raw: string): unknown {
  const result = (VARIABLES[name].schema as z.ZodType).safeParse(raw);
  if (result.success) return result.data;
  throw refuse(name, result.error.issues[0]?.message ?? 'is not valid');
}

function refuse(name: VariableName, problem: string): ConfigError {
  return new ConfigError('config_invalid', `${name} ${problem}`);
}

/** The rules that join variables; each protects the line from strangers or the caller from a silent stand-in. */
function checkTogether(values: Values, hasModelCredential: boolean, model: 'gemini' | 'rehearsal'): void {
  const loopback = isLoopbackHost(values.HOST ?? '');
  if (values.TWILIO_AUTH_TOKEN !== undefined && values.PUBLIC_URL === undefined) {
    throw refuse('PUBLIC_URL', 'is required with TWILIO_AUTH_TOKEN: signatures are checked over it');
  }
  if (values.TWILIO_AUTH_TOKEN === undefined && !loopback) {
    throw refuse(
      'TWILIO_AUTH_TOKEN',
      'is required unless HOST is a loopback address: nothing unsigned gets in',
    );
  }
  if (values.CONSOLE_TOKEN === undefined && (!loopback || values.PUBLIC_URL !== undefined)) {
    throw refuse('CONSOLE_TOKEN', 'is required unless HOST is a loopback address and PUBLIC_URL is unset');
  }
  if ((values.TWILIO_API_KEY === undefined) !== (values.TWILIO_API_SECRET === undefined)) {
    throw refuse(
      values.TWILIO_API_KEY === undefined ? 'TWILIO_API_KEY' : 'TWILIO_API_SECRET',
      'is missing its pair',
    );
  }
  if (model === 'gemini' && !hasModelCredential) {
    throw refuse('MODEL', 'is gemini, but there is no GEMINI_API_KEY, GOOGLE_API_KEY or Vertex AI setting');
  }
  const serious = values.PUBLIC_URL !== undefined || values.TWILIO_AUTH_TOKEN !== undefined;
  if (serious && !hasModelCredential && values.MODEL !== 'rehearsal') {
    throw refuse(
      'GEMINI_API_KEY',
      'is missing; set it, or say MODEL=rehearsal to answer real calls with the stand-in',
    );
  }
}
