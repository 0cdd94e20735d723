import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import twilio from 'twilio';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { LINE_RULES } from '../src/call/line-texts.js';
import { systemClock } from '../src/clock.js';
import { readConfig } from '../src/config.js';
import { diagnose } from '../src/doctor-checks.js';
import { type Finding, isAllWell, renderFinding, renderVerdict } from '../src/doctor-finding.js';
import { silentLog } from '../src/observe/log.js';
import { type RunningServer, startServer } from '../src/server.js';
import { PublicFront } from './support/public-front.js';
import { ScriptedGemini } from './support/scripted-gemini.js';
import { ScriptedTwilioRest } from './support/scripted-twilio-rest.js';

const NUMBER = '+15550100123';
const SID = 'AC00000000000000000000000000000001';
const TOKEN = 'auth-token-of-the-account';
const KEY = 'gemini-key-that-nobody-may-see';
const ELSEWHERE = 'https://handler.twilio.com/twiml/EH1';

/** A whole deployment on loopback: the server behind its proxy, Twilio's REST and the model. */
let front: PublicFront;
let rest: ScriptedTwilioRest;
let gemini: ScriptedGemini;
let server: RunningServer | undefined;
let folder: string;
let serverFolder: string;

beforeEach(async () => {
  front = await PublicFront.start();
  rest = await ScriptedTwilioRest.start();
  gemini = await ScriptedGemini.start();
  rest.credentials.set(SID, TOKEN);
  rest.numbers = [
    {
      phone_number: NUMBER,
      voice_url: `${front.url}/twilio/voice`,
      voice_method: 'POST',
      voice_fallback_url: ELSEWHERE,
      status_callback: `${front.url}/twilio/status`,
      status_callback_method: 'POST',
    },
  ];
  folder = mkdtempSync(join(tmpdir(), 'earshot-doctor-'));
  serverFolder = mkdtempSync(join(tmpdir(), 'earshot-doctor-server-'));
});

afterEach(async () => {
  await server?.close();
  server = undefined;
  await front.close();
  await rest.close();
  await gemini.close();
});

function environment(changes: Record<string, string | undefined> = {}): Record<string, string> {
  const all: Record<string, string | undefined> = {
    PORT: '0',
    PUBLIC_URL: front.url,
    TWILIO_ACCOUNT_SID: SID,
    TWILIO_AUTH_TOKEN: TOKEN,
    TWILIO_API_BASE_URL: rest.url,
    TWILIO_NUMBER: NUMBER,
    CONSOLE_TOKEN: 'console-token-of-length',
    GEMINI_API_KEY: KEY,
    GOOGLE_GEMINI_BASE_URL: gemini.url,
    DATA_DIR: join(folder, 'not', 'there', 'yet'),
    DATABASE_URL: `sqlite:${join(folder, 'not', 'there', 'calls.db')}`,
    ...changes,
  };
  return Object.fromEntries(
    Object.entries(all).filter((entry): entry is [string, string] => entry[1] !== undefined),
  );
}

async function startBehindFront(changes: Record<string, string | undefined> = {}): Promise<void> {
  server = await startServer(
    readConfig(environment({ DATABASE_URL: `sqlite:${join(serverFolder, 'calls.db')}`, ...changes })),
    { clock: systemClock, log: silentLog },
  );
  front.target = server.url;
}

async function examine(
  changes: Record<string, string | undefined> = {},
  agentsFolder?: string,
): Promise<Finding[]> {
  const findings: Finding[] = [];
  const deps = agentsFolder === undefined ? {} : { agentsFolder };
  const config = readConfig(environment(changes));
  for await (const found of diagnose(config, { clock: systemClock, ...deps })) findings.push(found);
  return findings;
}

/** What is not well, as `state about`. */
function complaints(findings: readonly Finding[]): string[] {
  return findings.filter(({ state }) => state !== 'ok').map(({ state, about }) => `${state} ${about}`);
}

function findingAbout(findings: readonly Finding[], name: string): Finding {
  const found = findings.find((each) => each.about === name);
  if (found === undefined) throw new Error(`nothing about ${name}`);
  return found;
}

function agentModule(definition: string): string {
  return `import { defineAgent } from 'earshot';\nexport default defineAgent(${definition});\n`;
}

function agentsWith(modules: Record<string, string>): string {
  const agents = mkdtempSync(join(tmpdir(), 'earshot-agents-'));
  for (const [name, text] of Object.entries(modules)) writeFileSync(join(agents, name), text);
  return agents;
}

describe('a deployment in order', () => {
  it('is told that all is well, and nothing was created or changed for it', async () => {
    await startBehindFront();
    const findings = await examine();
    expect(complaints(findings)).toEqual([]);
    expect(isAllWell(findings)).toBe(true);
    expect(findings.map((each) => each.about)).toEqual([
      'AGENT',
      'Twilio auth token',
      'number',
      'voice URL',
      'voice method',
      'fallback URL',
      'status callback',
      'status callback method',
      'PUBLIC_URL',
      'signed webhook',
      'unsigned webhook',
      'signed media socket',
      'unsigned media socket',
      ...findings.map((each) => each.about).filter((name) => name.startsWith('model for agent')),
      'DATA_DIR',
      'DATABASE_URL',
    ]);
    expect(readdirSync(folder)).toEqual([]);
    expect(rest.requests.every((request) => request.startsWith('GET '))).toBe(true);
    await gemini.waitForNoSockets();
  });

  it('is asked of the model what a call would ask, for every agent that can be called', async () => {
    await startBehindFront();
    const agents = agentsWith({
      'desk.mjs': agentModule(
        `{ name: 'desk', instruction: (ctx) => 'Serve ' + ctx.userId, runConfig: { speechConfig: { voiceConfig: { prebuiltVoiceConfig: { voiceName: 'Puck' } } } } }`,
      ),
      'other.mjs': agentModule(`{ name: 'other', instruction: 'Be brief.' }`),
    });
    expect(complaints(await examine({ AGENT: 'desk' }, agents))).toEqual([]);
    const setups = gemini.connections.map(({ setup }) => JSON.stringify(setup));
    expect(setups).toHaveLength(2);
    expect(setups[0]).toContain('Serve anonymous:CA');
    expect(setups[0]).toContain('Puck');
    expect(setups[1]).toContain('Be brief.');
    for (const setup of setups) {
      expect(setup).toContain(JSON.stringify(LINE_RULES).slice(1, -1));
      expect(setup).toContain('end_call');
    }
  });

  it('may spell the host otherwise and name an agent that exists', async () => {
    await startBehindFront();
    rest.numbers[0]!.voice_url = `${front.url.replace('http://', 'HTTP://')}/twilio/voice/support`;
    expect(complaints(await examine())).toEqual([]);
  });

  it('may use an API key for REST, one that cannot read the account too', async () => {
    await startBehindFront();
    rest.credentials.set('SK1', 'secret-of-the-key');
    rest.restricted.add('SK1');
    const findings = await examine({ TWILIO_API_KEY: 'SK1', TWILIO_API_SECRET: 'secret-of-the-key' });
    expect(complaints(findings)).toEqual([]);
    expect(findingAbout(findings, 'Twilio API key').state).toBe('ok');
  });
});

describe('the credentials', () => {
  it('are to mend when Twilio refuses them, without what Twilio wrote', async () => {
    await startBehindFront();
    rest.credentials.set(SID, 'another');
    const findings = await examine();
    expect(complaints(findings)).toEqual(['mend Twilio auth token', 'unchecked number']);
    expect(findingAbout(findings, 'Twilio auth token').text).toBe('REST answered 401 (code 20003)');
  });

  it('are each tried: a wrong auth token is found behind a good API key, and the reverse', async () => {
    await startBehindFront();
    const key = { TWILIO_API_KEY: 'SK1', TWILIO_API_SECRET: 'secret-of-the-key' };
    expect(complaints(await examine(key))).toEqual(['mend Twilio API key', 'unchecked number']);
    rest.credentials.set('SK1', 'secret-of-the-key').set(SID, 'another');
    expect(complaints(await examine(key))).toEqual(['mend Twilio auth token']);
  });

  it('are missed when REST has none', async () => {
    await startBehindFront();
    const findings = await examine({ TWILIO_ACCOUNT_SID: undefined });
    expect(complaints(findings)).toEqual(['mend Twilio auth token', 'unchecked number']);
  });

  it('of a suspended account are not enough', async () => {
    await startBehindFront();
    rest.status = 'suspended';
    expect(complaints(await examine())).toEqual(['mend Twilio auth token']);
  });
});

describe('the number', () => {
  it('must be named where the server is public', async () => {
    await startBehindFront();
    const findings = await examine({ TWILIO_NUMBER: undefined });
    expect(complaints(findings)).toEqual(['mend number']);
    expect(findingAbout(findings, 'number').mend).toContain('set it');
  });

  it('must be the account’s own', async () => {
    await startBehindFront();
    rest.numbers[0]!.phone_number = `${NUMBER}4`;
    expect(complaints(await examine())).toEqual(['mend number']);
  });

  it.each([
    ['voice_url', 'voice URL', ''],
    ['voice_url', 'voice URL', 'https://demo.twilio.com/welcome/voice/'],
    ['voice_url', 'voice URL', 'FRONT/twilio/voice/'],
    ['voice_url', 'voice URL', 'FRONT/twilio/voice/nobody'],
    ['voice_url', 'voice URL', 'FRONT/twilio/voice/support/more'],
    ['voice_url', 'voice URL', 'FRONT/twilio/voice?x=1'],
    ['voice_url', 'voice URL', 'FRONT/base/twilio/voice'],
    ['voice_url', 'voice URL', 'FRONT.example.com/twilio/voice'],
    ['voice_method', 'voice method', 'GET'],
    ['voice_fallback_url', 'fallback URL', ''],
    ['voice_fallback_url', 'fallback URL', 'sorry'],
    ['voice_fallback_url', 'fallback URL', 'FRONT/sorry'],
    ['voice_fallback_url', 'fallback URL', 'http://127.0.0.1:1/sorry'],
    ['status_callback', 'status callback', ''],
    ['status_callback', 'status callback', 'FRONT/twilio/voice'],
    ['status_callback_method', 'status callback method', 'GET'],
  ] as const)('with its %s wrong needs its %s mended: "%s"', async (field, name, value) => {
    await startBehindFront();
    rest.numbers[0]![field] = value.replace('FRONT', front.url);
    const findings = await examine();
    expect(complaints(findings)).toEqual([`mend ${name}`]);
    expect(findingAbout(findings, name).mend).toMatch(/^set /);
  });

  it.each(['voice_application_sid', 'trunk_sid'] as const)(
    'that hands its calls to a %s does not use its URLs',
    async (field) => {
      await startBehindFront();
      rest.numbers[0]![field] = 'AP00000000000000000000000000000001';
      expect(complaints(await examine())).toEqual(['mend number']);
    },
  );
});

describe('the public doors', () => {
  it('are closed without a public address, and nothing about the number is called well', async () => {
    const findings = await examine({ PUBLIC_URL: undefined, TWILIO_AUTH_TOKEN: undefined });
    expect(complaints(findings)).toEqual(['mend Twilio auth token', 'unchecked number', 'mend public doors']);
  });

  it('need the server to run', async () => {
    await front.close();
    const findings = await examine();
    expect(complaints(findings)).toEqual(['mend PUBLIC_URL', 'unchecked public doors']);
    expect(findingAbout(findings, 'PUBLIC_URL').text).toContain('ECONNREFUSED');
  });

  it('are not found behind a redirect', async () => {
    await startBehindFront();
    front.intercept = () => 301;
    expect(complaints(await examine())).toEqual(['mend PUBLIC_URL', 'unchecked public doors']);
  });

  it('need the same auth token in the server', async () => {
    await startBehindFront({ TWILIO_AUTH_TOKEN: 'an-older-token' });
    expect(complaints(await examine())).toEqual(['mend signed webhook', 'mend signed media socket']);
  });

  it('need the same public address in the server', async () => {
    await startBehindFront({ PUBLIC_URL: 'https://voice.example.com' });
    expect(complaints(await examine())).toEqual(['mend signed webhook', 'mend signed media socket']);
  });

  it('need a proxy that passes upgrades on', async () => {
    await startBehindFront();
    front.passesUpgrades = false;
    expect(complaints(await examine())).toEqual(['mend signed media socket', 'mend unsigned media socket']);
  });

  it('need a proxy that leaves the path alone', async () => {
    await startBehindFront();
    front.rewrite = (path) => path.replace('/twilio/', '/voice/twilio/');
    expect(complaints(await examine())).toEqual([
      'mend signed webhook',
      'mend unsigned webhook',
      'mend signed media socket',
      'mend unsigned media socket',
    ]);
  });

  it('must not be opened to strangers by what stands in front', async () => {
    await startBehindFront();
    // It signs for whoever comes.
    front.rewriteHeaders = (headers) => {
      const isSocket = headers.upgrade !== undefined;
      const url = isSocket ? `${front.url.replace('http', 'ws')}/twilio/media` : `${front.url}/twilio/status`;
      const params = { CallSid: `CA${'0'.repeat(32)}`, CallStatus: 'completed' };
      const signature = twilio.getExpectedTwilioSignature(TOKEN, url, isSocket ? {} : params);
      return { ...headers, 'x-twilio-signature': signature };
    };
    expect(complaints(await examine())).toEqual(['mend unsigned webhook', 'mend unsigned media socket']);
  });
});

describe('the agents', () => {
  it('must include the one that AGENT names', async () => {
    await startBehindFront();
    const findings = await examine({ AGENT: 'nobody' });
    expect(complaints(findings)).toEqual(['mend AGENT', 'unchecked model']);
    expect(findingAbout(findings, 'AGENT').text).toContain('nobody');
    expect(gemini.handshakes).toBe(0);
  });

  it('must all load: a broken one is told by its name, and the others are tried', async () => {
    await startBehindFront();
    const agents = agentsWith({
      'desk.mjs': agentModule(`{ name: 'desk', instruction: 'Serve.' }`),
      'torn.mjs': 'export default {',
      'plain.mjs': 'export default { name: "plain" };',
    });
    const findings = await examine({ AGENT: 'desk' }, agents);
    expect(complaints(findings)).toEqual(['mend agent plain', 'mend agent torn']);
    expect(findingAbout(findings, 'model for agent desk').state).toBe('ok');
  });

  it('must not throw while they are asked for their instruction', async () => {
    await startBehindFront();
    const agents = agentsWith({
      'desk.mjs': agentModule(`{ name: 'desk', instruction: () => { throw new Error('no words today'); } }`),
    });
    const findings = await examine({ AGENT: 'desk' }, agents);
    expect(complaints(findings)).toEqual(['mend model for agent desk']);
    expect(findingAbout(findings, 'model for agent desk').text).toContain('no words today');
    expect(findingAbout(findings, 'model for agent desk').mend).toContain('instruction');
  });
});

describe('the model', () => {
  it('that refuses the setup is quoted, with the key masked', async () => {
    await startBehindFront();
    gemini.script.setup = { close: 1007, reason: `voice Koree is unknown (key ${KEY})` };
    const findings = await examine();
    const found = findingAbout(findings, 'model for agent support');
    expect(found.state).toBe('mend');
    expect(found.text).toContain('voice Koree is unknown (key ***)');
    expect(found.mend).toContain('voice');
    expect(JSON.stringify(findings)).not.toContain(KEY);
  });

  it.each([
    ['refuses the key', { httpStatus: 403 }, '403'],
    ['is not well', { httpStatus: 503 }, '503'],
  ])('that %s at the handshake is told by its status', async (_name, handshake, text) => {
    await startBehindFront();
    gemini.script.handshake = handshake;
    const found = findingAbout(await examine(), 'model for agent support');
    expect(found.state).toBe('mend');
    expect(found.text).toContain(text);
  });

  it('that is not there is told as such', async () => {
    await startBehindFront();
    const found = findingAbout(
      await examine({ GOOGLE_GEMINI_BASE_URL: 'http://127.0.0.1:9' }),
      'model for agent support',
    );
    expect(found.state).toBe('mend');
    expect(found.text).toContain('ECONNREFUSED');
  });

  it('that is the stand-in would not understand real callers', async () => {
    const standIn = { MODEL: 'rehearsal', GEMINI_API_KEY: undefined, GOOGLE_GEMINI_BASE_URL: undefined };
    await startBehindFront(standIn);
    const findings = await examine(standIn);
    expect(complaints(findings)).toEqual(['mend MODEL']);
    expect(findingAbout(findings, 'MODEL').text).toContain('would not be understood');
    expect(findingAbout(findings, 'model for agent support').state).toBe('ok');
  });

  it('may be the stand-in on this machine', async () => {
    const findings = await examine({
      MODEL: 'rehearsal',
      GEMINI_API_KEY: undefined,
      PUBLIC_URL: undefined,
      TWILIO_AUTH_TOKEN: undefined,
    });
    expect(findingAbout(findings, 'MODEL')).toMatchObject({ state: 'ok' });
    expect(findingAbout(findings, 'MODEL').text).toContain('understands no speech');
    expect(isAllWell(findings)).toBe(false);
  });
});

describe('the store', () => {
  it.each([
    ['is a file', 'file'],
    ['lies below a file', 'file/data'],
  ])('is to mend when DATA_DIR %s', async (_name, path) => {
    await startBehindFront();
    writeFileSync(join(folder, 'file'), '');
    expect(complaints(await examine({ DATA_DIR: join(folder, path) }))).toEqual(['mend DATA_DIR']);
  });

  it('may be there already', async () => {
    await startBehindFront();
    mkdirSync(join(folder, 'data'));
    expect(complaints(await examine({ DATA_DIR: join(folder, 'data') }))).toEqual([]);
    expect(readdirSync(join(folder, 'data'))).toEqual([]);
  });
});

describe('the variables', () => {
  it.each([['CONSOLE_TOKEN', 'short']])(
    'that the server would warn about are to mend: %s',
    async (name, value) => {
      await startBehindFront();
      const findings = await examine({ [name]: value });
      expect(complaints(findings)).toEqual(['mend environment']);
      expect(findingAbout(findings, 'environment').text).toContain(name);
    },
  );
});

describe('what is printed', () => {
  it('marks what is to mend and says how, and lets no text steer the terminal', () => {
    const mend = { about: 'number', state: 'mend', text: 'un\u001B[2Jset\u202E', mend: 'set it' } as const;
    expect(renderFinding(mend)).toBe('MEND number: un [2Jset\n       set it\n');
    expect(renderFinding({ ...mend, state: 'ok', text: 'well' })).toBe('ok   number: well\n');
    expect(renderFinding({ about: 'number', state: 'unchecked', text: 'later' })).toBe(
      '?    number: later\n',
    );
  });

  it('calls all well only when everything was looked at', () => {
    const ok = { about: 'a', state: 'ok', text: '' } as const;
    const unchecked = { about: 'b', state: 'unchecked', text: '' } as const;
    const mend = { about: 'c', state: 'mend', text: '' } as const;
    expect(renderVerdict([ok, ok])).toContain('All is well.');
    expect(renderVerdict([ok, unchecked])).toContain('0 to mend, 1 not checked');
    expect(renderVerdict([mend, ok])).toContain('1 to mend.');
    expect(isAllWell([])).toBe(false);
    expect([[ok], [ok, unchecked], [mend]].map(isAllWell)).toEqual([true, false, false]);
  });
});

describe('the process', () => {
  /** The built doctor (`npm test` builds it first), in a folder of its own without a `.env`. */
  async function run(changes: Record<string, string | undefined> = {}) {
    const entry = fileURLToPath(new URL('../dist/doctor.js', import.meta.url));
    const child = spawn(process.execPath, [entry], {
      cwd: folder,
      env: { PATH: process.env['PATH'] ?? '', ...environment({ DATA_DIR: undefined, ...changes }) },
    });
    let output = '';
    let errors = '';
    child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
    child.stderr.on('data', (chunk: Buffer) => (errors += chunk.toString()));
    const code = await new Promise((resolve) => {
      child.on('close', resolve);
    });
    return { code, output, errors };
  }

  it('exits with 0 when all is well, and leaves no file behind', async () => {
    await startBehindFront();
    const { code, output, errors } = await run();
    expect(errors).toBe('');
    expect(output).toMatch(/All is well\.\n$/);
    expect(output).not.toContain('MEND');
    expect(code).toBe(0);
    expect(readdirSync(folder)).toEqual([]);
    expect(existsSync(join(folder, 'data'))).toBe(false);
  });

  it('exits with 1 when something is to mend', async () => {
    const { code, output } = await run();
    expect(output).toContain('MEND PUBLIC_URL: /healthz answers 502\n');
    expect(output).toMatch(/\n1 to mend, 1 not checked\.\n$/);
    expect(code).toBe(1);
  });

  it('exits with 78 and one line on a bad variable', async () => {
    const { code, output, errors } = await run({ PORT: 'eighty' });
    expect({ code, output }).toEqual({ code: 78, output: '' });
    expect(errors).toMatch(/^doctor: PORT .*\n$/);
  });
});
