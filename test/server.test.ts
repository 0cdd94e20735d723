import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { systemClock } from '../src/clock.js';
import { readConfig } from '../src/config.js';
import { silentLog } from '../src/observe/log.js';
import { Phone } from '../src/replay/phone.js';
import { startServer, type RunningServer } from '../src/server.js';
import { tone } from './support/call-rig.js';
import { ScriptedGemini } from './support/scripted-gemini.js';

const SECURED = {
  PUBLIC_URL: 'https://Voice.Example.com',
  TWILIO_AUTH_TOKEN: 'auth-token-of-the-account',
  CONSOLE_TOKEN: 'console-token-of-length',
};

let running: { server: RunningServer; gemini: ScriptedGemini } | undefined;

async function start(
  environment: Record<string, string> = {},
): Promise<{ server: RunningServer; gemini: ScriptedGemini }> {
  const gemini = await ScriptedGemini.start();
  const config = readConfig({
    PORT: '0',
    GEMINI_API_KEY: 'key',
    GOOGLE_GEMINI_BASE_URL: gemini.url,
    GREETING_PROTECTION_SECONDS: '0',
    EARSHOT_DEBUG: '1',
    DATABASE_URL: `sqlite:${join(mkdtempSync(join(tmpdir(), 'earshot-')), 'calls.db')}`,
    ...environment,
  });
  const server = await startServer(config, { clock: systemClock, log: silentLog });
  running = { server, gemini };
  return running;
}

afterEach(async () => {
  await running?.server.close();
  await running?.gemini.close();
  running = undefined;
});

/** Waits for something to become true, without deciding how long it may take but for a generous bound. */
async function until(what: string, isTrue: () => boolean | Promise<boolean>): Promise<void> {
  const deadlineMs = systemClock.nowMs() + 15_000;
  while (!(await isTrue())) {
    if (systemClock.nowMs() > deadlineMs) throw new Error(`waited in vain for ${what}`);
    await new Promise((resolve) => {
      systemClock.setTimer(10, () => resolve(undefined));
    });
  }
}

async function json(
  url: string,
  options: RequestInit = {},
): Promise<{ status: number; body: Record<string, unknown> }> {
  const response = await fetch(url, options);
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
}

/** Asks for a WebSocket that the server does not open, and reads its answer. */
function upgrade(
  server: RunningServer,
  path: string,
  headers: Record<string, string> = {},
): Promise<{ status: number; body: unknown }> {
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(server.url.replace(/^http/, 'ws') + path, { headers });
    socket.on('open', () => reject(new Error('the socket opened')));
    socket.on('error', reject);
    socket.on('unexpected-response', (_request, response) => {
      let body = '';
      response.on('data', (chunk: Buffer) => (body += chunk.toString()));
      response.on('end', () =>
        resolve({ status: response.statusCode ?? 0, body: JSON.parse(body) as unknown }),
      );
      response.on('error', reject);
    });
  });
}

describe('a call through every real door', () => {
  it('is greeted, heard, cut in on and ended, over real sockets with the real SDK', async () => {
    const { server, gemini } = await start();
    const phone = new Phone({ clock: systemClock, url: server.url });
    const over = phone.call();
    const model = await gemini.connection(0);
    await model.waitFor((frame) => JSON.stringify(frame).includes('word for word'));
    model.sendAudio(tone(3_000));
    model.sendOutputTranscription('Hello, how can I help you today?');
    const heardMs = (): number => phone.record().heard.filter((byte) => (byte | 0x80) !== 0xff).length / 8;
    await until('a good second of the greeting to be heard', () => heardMs() > 1_200);
    await until('caller sound at the model', () => model.receivedAudio.length > 640);
    model.interrupt();
    model.turnComplete();
    await until('the clear', () => phone.record().clears.length === 1);
    phone.dtmf('7');
    await model.waitFor((frame) => JSON.stringify(frame).includes('the key \\"7\\"'));
    model.sendAudio(tone(400));
    model.sendOutputTranscription('Goodbye.');
    model.toolCall({ id: 'c1', name: 'end_call' });
    await model.waitFor((frame) => 'toolResponse' in frame);
    model.generationComplete();
    model.turnComplete();
    const record = await over;
    expect(record.endedBy).toBe('server');
    expect(record.warnings).toEqual([]);
    const call = await json(`${server.url}/calls/${phone.callSid}`);
    expect(call.body).toMatchObject({ state: 'ended', endReason: 'agent_ended', agent: 'support' });
    const messages = call.body['messages'] as { role: string; interrupted: boolean; text: string }[];
    expect(messages[0]).toMatchObject({ role: 'model', interrupted: true });
    expect('Hello, how can I help you today?'.startsWith(messages[0]!.text)).toBe(true);
    expect(messages.at(-1)).toMatchObject({ role: 'model', interrupted: false, text: 'Goodbye.' });
    await model.waitForClose();
    const metrics = await (await fetch(`${server.url}/metrics`)).text();
    expect(metrics).toContain('earshot_calls_total{direction="inbound",end_reason="agent_ended"} 1');
    expect(metrics).toContain('earshot_streams_total{mode="bidi",outcome="interrupted"} 1');
    expect(metrics).toContain('earshot_streams_total{mode="bidi",outcome="done"} 1');
    expect(metrics).toMatch(
      /earshot_time_to_first_event_seconds_count\{mode="bidi",turn="greeting",model="[^"]+"\} 1/,
    );
    expect(metrics).toContain('earshot_barge_in_clear_seconds_count 1');
    expect(metrics).toContain('earshot_calls_active 0');
    await until('nothing to be left', async () => {
      const { body } = await json(`${server.url}/debug/runs`);
      return Object.values(body).every((count) => count === 0);
    });
  });

  it('works behind signatures, with any spelling of the host that Twilio was given', async () => {
    const { server, gemini } = await start(SECURED);
    const phone = new Phone({
      clock: systemClock,
      url: server.url,
      publicUrl: SECURED.PUBLIC_URL,
      authToken: SECURED.TWILIO_AUTH_TOKEN,
    });
    const over = phone.call();
    const model = await gemini.connection(0);
    await model.waitFor((frame) => JSON.stringify(frame).includes('word for word'));
    phone.hangUp();
    const record = await over;
    expect(record.endedBy).toBe('caller');
    await model.waitForClose();
  });

  it('lets nobody in whose signature is another token’s', async () => {
    const { server, gemini } = await start(SECURED);
    const phone = new Phone({
      clock: systemClock,
      url: server.url,
      publicUrl: SECURED.PUBLIC_URL,
      authToken: 'somebody-else',
    });
    await expect(phone.call()).rejects.toThrow('403');
    expect(gemini.handshakes).toBe(0);
  });

  it('ends with an apology and no open line when the model’s host is not there', async () => {
    const { server } = await start({ GOOGLE_GEMINI_BASE_URL: 'http://127.0.0.1:9' });
    const record = await new Phone({ clock: systemClock, url: server.url }).call();
    expect(record.endedBy).toBe('server');
    const soundBytes = record.heard.filter((byte) => (byte | 0x80) !== 0xff).length;
    expect(soundBytes).toBeGreaterThan(8 * 2_000);
  });

  it('takes an agent from a path outside the project, in JavaScript and in TypeScript', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'earshot-agent-'));
    for (const [file, type] of [
      ['desk.mjs', ''],
      ['desk.ts', ': string'],
    ] as const) {
      const path = join(folder, file);
      writeFileSync(
        path,
        `import { defineAgent } from 'earshot';\nconst name${type} = 'desk';\nexport default defineAgent({ name, instruction: (ctx) => 'Serve ' + ctx.userId });\n`,
      );
      const { server, gemini } = await start({ AGENT: path });
      const phone = new Phone({ clock: systemClock, url: server.url, from: '+15550100007' });
      const over = phone.call();
      const model = await gemini.connection(0);
      await model.waitForSetup();
      expect(JSON.stringify(model.setup)).toContain('Serve +15550100007');
      await until('the stream', () => phone.state === 'talking' || phone.state === 'listening');
      phone.hangUp();
      await over;
      await server.close();
      await gemini.close();
      running = undefined;
    }
  });
});

describe('the operators’ doors', () => {
  it('want the console’s token everywhere but at health and readiness', async () => {
    const { server } = await start(SECURED);
    const bearer = { headers: { Authorization: `Bearer ${SECURED.CONSOLE_TOKEN}` } };
    for (const path of ['/calls', '/calls/CA1', '/metrics', '/debug/runs', '/']) {
      expect((await fetch(server.url + path)).status).toBe(401);
      expect((await fetch(`${server.url}${path}?token=${SECURED.CONSOLE_TOKEN}`)).status).toBe(401);
      expect((await fetch(server.url + path, { headers: { Authorization: 'Bearer wrong' } })).status).toBe(
        401,
      );
    }
    expect((await fetch(`${server.url}/calls`, bearer)).status).toBe(200);
    expect((await fetch(`${server.url}/metrics`, bearer)).status).toBe(200);
    expect((await fetch(`${server.url}/healthz`)).status).toBe(200);
    expect((await fetch(`${server.url}/readyz`)).status).toBe(200);
  });

  it('give /metrics a token of its own', async () => {
    const { server } = await start({ ...SECURED, METRICS_TOKEN: 'metrics-token-of-length' });
    const status = async (token: string): Promise<number> =>
      (await fetch(`${server.url}/metrics`, { headers: { Authorization: `Bearer ${token}` } })).status;
    expect(await status('metrics-token-of-length')).toBe(200);
    expect(await status(SECURED.CONSOLE_TOKEN)).toBe(401);
  });

  it('without a token serve only this machine by name, no foreign page, and JSON alone', async () => {
    const { server } = await start();
    const port = new URL(server.url).port;
    const http = await import('node:http');
    const status = (options: {
      method?: string;
      headers: Record<string, string>;
      body?: string;
    }): Promise<number> =>
      new Promise((resolve, reject) => {
        const request = http.request(
          {
            host: '127.0.0.1',
            port,
            path: '/calls/CA1/hangup',
            method: options.method ?? 'POST',
            headers: options.headers,
          },
          (response) => {
            response.resume();
            resolve(response.statusCode ?? 0);
          },
        );
        request.on('error', reject);
        request.end(options.body);
      });
    expect(await status({ headers: { Host: 'evil.example.com' } })).toBe(403);
    expect(await status({ headers: { Host: `localhost:${port}`, Origin: 'https://evil.example.com' } })).toBe(
      403,
    );
    const form = { 'Content-Type': 'application/x-www-form-urlencoded', 'Content-Length': '3' };
    expect(await status({ headers: { Host: `localhost:${port}`, ...form }, body: 'a=b' })).toBe(415);
    expect(await status({ headers: { Host: `localhost:${port}` } })).toBe(404);
  });

  it('say of what is named but not built that it is not', async () => {
    const { server } = await start();
    for (const [method, path] of [
      ['GET', '/'],
      ['POST', '/calls'],
      ['POST', '/calls/CA1/transfer'],
    ] as const) {
      const { status, body } = await json(server.url + path, { method });
      expect(status).toBe(501);
      expect(body['error']).toContain('not built yet');
    }
    expect((await json(`${server.url}/nowhere`)).status).toBe(404);
  });

  it('let no socket open to those who may not have one', async () => {
    const open = await start();
    for (const [path, headers, status] of [
      ['/run_live', { Origin: 'https://evil.example.com' }, 403],
      ['/run_live', { Host: 'evil.example.com' }, 403],
      ['/elsewhere', {}, 404],
      ['/run_live/more', {}, 404],
    ] as const) {
      const answer = await upgrade(open.server, path, headers);
      expect({ path, status: answer.status }).toEqual({ path, status });
    }
    await open.server.close();
    await open.gemini.close();
    const { server } = await start(SECURED);
    const bearer = (token: string) => ({ Host: 'voice.example.com', Authorization: `Bearer ${token}` });
    expect((await upgrade(server, '/run_live')).status).toBe(401);
    expect((await upgrade(server, `/run_live?token=${SECURED.CONSOLE_TOKEN}`)).status).toBe(401);
    expect((await upgrade(server, '/run_live', bearer('wrong'))).status).toBe(401);
  });

  it('page the calls and refuse a page that makes no sense', async () => {
    const { server } = await start();
    expect((await json(`${server.url}/calls`)).body).toEqual({ calls: [] });
    for (const query of ['limit=0', 'limit=x', 'limit=1000', 'before=yesterday', 'state=odd']) {
      expect((await json(`${server.url}/calls?${query}`)).status).toBe(400);
    }
  });

  it('are not ready when full, and the caller over the limit hears that all lines are busy', async () => {
    const { server } = await start({ MAX_CALLS: '1' });
    const first = new Phone({ clock: systemClock, url: server.url });
    const over = first.call();
    await until('the stream', () => first.state === 'listening' || first.state === 'talking');
    expect((await fetch(`${server.url}/readyz`)).status).toBe(503);
    const busy = await new Phone({ clock: systemClock, url: server.url }).call();
    expect(busy.streams).toEqual([]);
    expect(busy.carrierSpeech.map(({ text }) => text).join(' ')).toMatch(/busy/i);
    first.hangUp();
    await over;
    await until('readiness', async () => (await fetch(`${server.url}/readyz`)).status === 200);
  });
});
