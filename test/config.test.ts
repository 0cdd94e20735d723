import { describe, expect, it } from 'vitest';
import { CONFIG_VARIABLES, type VariableName, readConfig, startWarnings } from '../src/config.js';
import { ConfigError } from '../src/errors.js';

const secured = {
  PUBLIC_URL: 'https://voice.example.com',
  TWILIO_AUTH_TOKEN: 'token',
  CONSOLE_TOKEN: 'console-token-of-length',
  GEMINI_API_KEY: 'key',
};

/** One value of each variable that makes no sense, with a mark that no complaint may repeat. */
const NONSENSE: Readonly<Record<VariableName, readonly string[]>> = {
  HOST: ['xyzzy host', '127.0.0.1:8080', '[::1]', 'http://xyzzy'],
  PORT: ['xyzzy', '65536', '-1', '80.5', '0x50', '1e3', '+80', 'Infinity'],
  PUBLIC_URL: ['xyzzy', 'http://xyzzy.example.com', 'https://xyzzy.example.com/path', 'https://xyzzy.com?'],
  AGENT: ['xyzzy\nsupport'],
  GEMINI_API_KEY: ['xyzzy key', '“xyzzy”'],
  GOOGLE_API_KEY: ['xyzzy key', 'xyzzy\u0007'],
  GOOGLE_GENAI_USE_ENTERPRISE: ['xyzzy', '2'],
  GOOGLE_GENAI_USE_VERTEXAI: ['xyzzy', '2'],
  GOOGLE_CLOUD_PROJECT: ['xyzzy/project', 'Xyzzy'],
  GOOGLE_CLOUD_LOCATION: ['xyzzy.example.com/', 'US'],
  MODEL: ['xyzzy'],
  GOOGLE_GEMINI_BASE_URL: ['xyzzy', 'http://xyzzy.example.com', 'https://:xyzzy@example.com'],
  GOOGLE_VERTEX_BASE_URL: ['xyzzy', 'http://xyzzy.example.com', 'https://example.com/#xyzzy'],
  GEMINI_MODEL: ['xyzzy model'],
  GEMINI_TEXT_MODEL: ['xyzzy model'],
  TWILIO_ACCOUNT_SID: ['xyzzy', 'AC xyzzy'],
  TWILIO_AUTH_TOKEN: ['xyzzy token'],
  TWILIO_API_KEY: ['xyzzy key'],
  TWILIO_API_SECRET: ['xyzzy secret'],
  TWILIO_SHARED_KEY: ['xyzzy key'],
  TWILIO_REGION: ['xyzzy.example.com/'],
  TWILIO_EDGE: ['xyzzy.example.com/'],
  TWILIO_API_BASE_URL: ['xyzzy', 'http://10.0.0.1:3000/xyzzy', 'https://xyzzy@example.com'],
  TWILIO_NUMBER: ['xyzzy', '555-0100'],
  HANDOFF_NUMBER: ['xyzzy', '15550100123', '+1 555 0100', 'tel:+15550100123'],
  HANDOFF_QUEUE: ['xyzzy'],
  HANDOFF_WORKFLOW_SID: ['xyzzy'],
  OUTBOUND_HOURS: ['xyzzy'],
  OUTBOUND_COUNTRIES: ['xyzzy'],
  DO_NOT_CALL: ['xyzzy'],
  DATABASE_URL: ['xyzzy', 'mysql://xyzzy', 'postgres://user:xyzzy@host/a b', 'PostgreSQL://xyzzy', 'sqlite:'],
  DATA_DIR: ['xyzzy\u0007'],
  CONSOLE_TOKEN: ['xyzzy console token'],
  METRICS_TOKEN: ['xyzzy metrics token'],
  MAX_CALLS: ['xyzzy', '-1', '1.5', '100001'],
  MAX_CALL_MINUTES: ['xyzzy', '-1', '1440.1', '1e2'],
  IDLE_REPROMPT_SECONDS: ['xyzzy', '-1', '3600.5'],
  GREETING_PROTECTION_SECONDS: ['xyzzy', '-1', '3601'],
  RECORD_CALLS: ['xyzzy', 'audio', 'both'],
  CALL_WEBHOOK_URL: ['https://xyzzy.example.com'],
  CALL_WEBHOOK_SECRET: ['xyzzy'],
  LOG_LEVEL: ['xyzzy', 'INFO'],
  LOG_PRETTY: ['xyzzy'],
  EARSHOT_DEBUG: ['xyzzy'],
};

const SWITCH = 'must be one of 1, true, on, yes, 0, false, off, no';

function refusalOf(environment: Record<string, string>): unknown {
  try {
    readConfig(environment);
  } catch (error) {
    return error;
  }
  return undefined;
}

describe('the configuration', () => {
  it('needs nothing: the stand-in model answers on loopback', () => {
    expect(readConfig({})).toMatchObject({ HOST: '127.0.0.1', PORT: 8080, MODEL: 'rehearsal', MAX_CALLS: 0 });
  });

  it('takes Gemini when there is a credential', () => {
    expect(readConfig({ GOOGLE_API_KEY: 'key' }).MODEL).toBe('gemini');
    expect(readConfig({ GOOGLE_API_KEY: 'key', MODEL: 'rehearsal' }).MODEL).toBe('rehearsal');
  });

  it('is complete for a real number', () => {
    expect(readConfig({ ...secured, HOST: '0.0.0.0' })).toMatchObject({ MODEL: 'gemini', HOST: '0.0.0.0' });
  });

  it('counts an empty variable as unset', () => {
    expect(readConfig({ PORT: '', PUBLIC_URL: ' ' })).toMatchObject({ PORT: 8080, PUBLIC_URL: undefined });
  });

  it.each([
    [{ ...secured, PUBLIC_URL: '' }, 'PUBLIC_URL'],
    [{ ...secured, HOST: '0.0.0.0', TWILIO_AUTH_TOKEN: '' }, 'TWILIO_AUTH_TOKEN'],
    [{ ...secured, CONSOLE_TOKEN: '' }, 'CONSOLE_TOKEN'],
    [{ ...secured, GEMINI_API_KEY: '' }, 'GEMINI_API_KEY'],
    [{ MODEL: 'gemini' }, 'MODEL'],
    [{ TWILIO_API_KEY: 'SK1' }, 'TWILIO_API_SECRET'],
    [{ GOOGLE_GENAI_USE_VERTEXAI: 'true' }, 'GOOGLE_CLOUD_PROJECT'],
    [{ GOOGLE_GENAI_USE_VERTEXAI: 'true', GOOGLE_VERTEX_BASE_URL: 'https://x.com' }, 'GOOGLE_CLOUD_PROJECT'],
    [
      { GOOGLE_GENAI_USE_ENTERPRISE: 'true', GOOGLE_CLOUD_LOCATION: 'eu', GOOGLE_API_KEY: 'key' },
      'GOOGLE_CLOUD_PROJECT',
    ],
    [{ MODEL: 'gemini', GOOGLE_CLOUD_PROJECT: 'shop' }, 'MODEL'],
  ])('refuses %j, naming the variable in one line', (environment, name) => {
    const refusal = refusalOf(environment);
    expect(refusal).toBeInstanceOf(ConfigError);
    expect((refusal as Error).message).toMatch(new RegExp(`^${name} `));
    expect((refusal as Error).message).not.toContain('\n');
  });

  it.each(CONFIG_VARIABLES)('answers nonsense in $name with one line that does not repeat it', ({ name }) => {
    for (const value of NONSENSE[name]) {
      const pair = { TWILIO_API_KEY: 'SK1', TWILIO_API_SECRET: 'secret' };
      const refusal = refusalOf({ ...secured, ...pair, [name]: value }) as Error;
      expect(refusal).toBeInstanceOf(ConfigError);
      expect(refusal).toMatchObject({ code: 'config_invalid' });
      expect(refusal.message).toMatch(new RegExp(`^${name} (must|is) `));
      expect(refusal.message).not.toMatch(/\n|xyzzy|invalid (input|option|string)/i);
    }
  });

  it.each([
    ['PORT', 'must be a whole number from 0 to 65535'],
    ['MAX_CALLS', 'must be a whole number from 0 to 100000'],
    ['MAX_CALL_MINUTES', 'must be a number from 0 to 1440'],
    ['IDLE_REPROMPT_SECONDS', 'must be a number from 0 to 3600'],
    ['GREETING_PROTECTION_SECONDS', 'must be a number from 0 to 3600'],
    ['MODEL', 'must be one of gemini, rehearsal'],
    ['LOG_LEVEL', 'must be one of trace, debug, info, warn, error, fatal, silent'],
    ['RECORD_CALLS', 'must be off or fixture: recording the sound as audio is not built yet'],
    ['GOOGLE_GENAI_USE_ENTERPRISE', SWITCH],
    ['GOOGLE_GENAI_USE_VERTEXAI', SWITCH],
    ['LOG_PRETTY', SWITCH],
    ['EARSHOT_DEBUG', SWITCH],
    ['DATABASE_URL', 'must be sqlite:PATH or postgres://…'],
    ['HANDOFF_QUEUE', 'is set, but handing a call to a queue is not built yet: unset it'],
  ])('says of a bad %s that it %s', (name, sentence) => {
    expect(refusalOf({ [name]: 'xyzzy' })).toMatchObject({ message: `${name} ${sentence}` });
  });

  it('tells all faults at once, a line each: what is wrong, and what is missing', () => {
    const faultsOf = (environment: Record<string, string>) =>
      (refusalOf(environment) as Error).message.split('\n').map((line) => line.split(' ', 1)[0]);
    expect(faultsOf({ HOST: '0.0.0.0' })).toEqual([
      'TWILIO_AUTH_TOKEN',
      'PUBLIC_URL',
      'CONSOLE_TOKEN',
      'GEMINI_API_KEY',
    ]);
    // What was named first is mended, and nothing new is said.
    expect(faultsOf({ HOST: '0.0.0.0', TWILIO_AUTH_TOKEN: 'token', MODEL: 'rehearsal' })).toEqual([
      'PUBLIC_URL',
      'CONSOLE_TOKEN',
    ]);
    expect(faultsOf({ MODEL: 'gemini', PORT: 'x', TWILIO_API_KEY: 'SK1', HANDOFF_QUEUE: 'q' })).toEqual([
      'PORT',
      'HANDOFF_QUEUE',
      'TWILIO_API_SECRET',
      'MODEL',
    ]);
    const all = Object.fromEntries(CONFIG_VARIABLES.map(({ name }) => [name, NONSENSE[name][0] ?? '']));
    expect(faultsOf(all)).toEqual(CONFIG_VARIABLES.map(({ name }) => name));
  });

  it('tells a variable that is wrong as that alone, and what its being set asks for all the same', () => {
    expect(refusalOf({ PUBLIC_URL: 'http://voice.example.com', MODEL: 'rehearsal' })).toMatchObject({
      message: [
        'PUBLIC_URL must be an https:// origin without a path (http:// only to a loopback host)',
        'CONSOLE_TOKEN is required unless HOST is a loopback address and PUBLIC_URL is unset',
      ].join('\n'),
    });
  });

  it.each([
    [{}, 'sqlite:data/earshot.db'],
    [{ DATA_DIR: '/mnt/kept/' }, 'sqlite:/mnt/kept/earshot.db'],
    [{ DATA_DIR: './kept', DATABASE_URL: ' ' }, 'sqlite:kept/earshot.db'],
    [{ DATA_DIR: '/mnt/kept', DATABASE_URL: 'sqlite:data/earshot.db' }, 'sqlite:data/earshot.db'],
    [{ DATA_DIR: '/mnt/kept', DATABASE_URL: 'postgres://host/calls' }, 'postgres://host/calls'],
  ])('keeps the database of %j at %s: in DATA_DIR, unless DATABASE_URL says where', (environment, url) => {
    expect(readConfig(environment).DATABASE_URL).toBe(url);
  });

  it('takes the ends of every range, fractions where a time is meant, and switches in any case', () => {
    const ends = { PORT: '65535', MAX_CALLS: '100000', MAX_CALL_MINUTES: '1440', IDLE_REPROMPT_SECONDS: '0' };
    expect(readConfig({ ...ends, GREETING_PROTECTION_SECONDS: '0.25', LOG_PRETTY: 'TRUE' })).toMatchObject({
      PORT: 65_535,
      MAX_CALLS: 100_000,
      MAX_CALL_MINUTES: 1440,
      IDLE_REPROMPT_SECONDS: 0,
      GREETING_PROTECTION_SECONDS: 0.25,
      LOG_PRETTY: true,
    });
  });

  it('takes an address of PostgreSQL and a path of SQLite', () => {
    for (const url of ['postgres://user:word@host/calls', 'postgresql://host/calls', 'sqlite:calls.db'])
      expect(readConfig({ DATABASE_URL: url }).DATABASE_URL).toBe(url);
  });
});

describe('the door to the model', () => {
  const everything = {
    GEMINI_API_KEY: 'gemini-key',
    GOOGLE_API_KEY: 'google-key',
    GOOGLE_CLOUD_PROJECT: 'shop',
    GOOGLE_CLOUD_LOCATION: 'europe-west4',
    GOOGLE_GEMINI_BASE_URL: 'https://developer.example.com/',
    GOOGLE_VERTEX_BASE_URL: 'http://127.0.0.1:9000',
  };

  it.each([
    ['the rehearsal model', {}, undefined],
    ['a key', { GEMINI_API_KEY: 'key' }, { apiKey: 'key' }],
    [
      'both keys and all the rest, with no switch',
      everything,
      { apiKey: 'google-key', baseUrl: 'https://developer.example.com' },
    ],
    ['everything, but rehearsal was said', { ...everything, MODEL: 'rehearsal' }, undefined],
    [
      'everything on Vertex AI: the project beats the keys',
      { ...everything, GOOGLE_GENAI_USE_VERTEXAI: 'True' },
      { vertex: { project: 'shop', location: 'europe-west4' }, baseUrl: 'http://127.0.0.1:9000' },
    ],
    [
      'a project alone on Vertex AI',
      { GOOGLE_GENAI_USE_ENTERPRISE: '1', GOOGLE_CLOUD_PROJECT: 'example.com:shop' },
      { vertex: { project: 'example.com:shop', location: 'global' } },
    ],
    [
      'a key alone on Vertex AI, whose base URL is not the Developer API’s',
      { GOOGLE_GENAI_USE_VERTEXAI: '1', GEMINI_API_KEY: 'key', GOOGLE_GEMINI_BASE_URL: 'https://x.com' },
      { vertex: { apiKey: 'key' } },
    ],
    [
      'switches that disagree: ENTERPRISE beats VERTEXAI',
      { ...everything, GOOGLE_GENAI_USE_ENTERPRISE: 'false', GOOGLE_GENAI_USE_VERTEXAI: 'true' },
      { apiKey: 'google-key', baseUrl: 'https://developer.example.com' },
    ],
  ])('with %s', (_name, environment, access) => {
    const config = readConfig(environment);
    expect(config.gemini).toEqual(access);
    expect(config.MODEL).toBe(access === undefined ? 'rehearsal' : 'gemini');
  });

  it('may be left half set when rehearsal is said', () => {
    expect(readConfig({ MODEL: 'rehearsal', GOOGLE_GENAI_USE_VERTEXAI: 'true' }).gemini).toBeUndefined();
  });
});

describe('the warnings at the start', () => {
  it('are none for a server that sets nothing, nor for one that is complete', () => {
    expect(startWarnings(readConfig({}))).toEqual([]);
    expect(startWarnings(readConfig(secured))).toEqual([]);
  });

  it.each([
    [{ CONSOLE_TOKEN: 'secret' }, 'CONSOLE_TOKEN', 'guessed'],
    [{ METRICS_TOKEN: 'secret' }, 'METRICS_TOKEN', 'guessed'],
    [
      { GOOGLE_GENAI_USE_ENTERPRISE: '0', GOOGLE_GENAI_USE_VERTEXAI: '1' },
      'GOOGLE_GENAI_USE_VERTEXAI',
      'overruled',
    ],
  ])('say of %j, once and without the value, what it does not do', (environment, name, what) => {
    const warnings = startWarnings(readConfig(environment));
    expect(warnings).toHaveLength(1);
    expect(warnings[0]).toMatch(new RegExp(`^${name} .*${what}`));
    for (const value of Object.values(environment)) {
      if (value.length > 1) expect(warnings[0]).not.toContain(value);
    }
  });
});
