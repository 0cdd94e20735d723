import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/clock.js';
import { runCallCommand } from '../../src/replay/call-command.js';
import { readCallOptions } from '../../src/replay/call-options.js';
import { decodeWav } from '../../src/replay/sound-file.js';
import { ScriptedServer, until } from './scripted-server.js';
import { silence, tone } from './tones.js';

describe('the command line of a call', () => {
  it('reads every option', () => {
    const argv =
      'a.wav --url http://127.0.0.1:9/x --out o.wav --agent a --stereo --from +1555 --dtmf 8.5:1,12:4# --linger 2.5 --no-display';
    expect(readCallOptions(argv.split(' '))).toEqual({
      file: 'a.wav',
      url: 'http://127.0.0.1:9',
      out: 'o.wav',
      agent: 'a',
      stereo: true,
      from: '+1555',
      display: false,
      lingerMs: 2_500,
      keys: [
        { atMs: 8_500, digit: '1' },
        { atMs: 12_000, digit: '4' },
        { atMs: 12_250, digit: '#' },
      ],
    });
  });

  it('has defaults for all but the file', () => {
    expect(readCallOptions(['a.wav'])).toMatchObject({
      url: undefined,
      out: 'heard.wav',
      lingerMs: 4_000,
      keys: [],
    });
    expect(readCallOptions(['--help'])).toBe('help');
  });

  it.each([
    [[], 'name one caller file'],
    [['a.wav', 'b.wav'], 'name one caller file'],
    [['a.wav', '--uri', 'x'], '--uri'],
    [['a.wav', '--url', 'localhost:8080'], '--url'],
    [['a.wav', '--dtmf', '5'], '--dtmf'],
    [['a.wav', '--dtmf', 'x:5'], '--dtmf'],
    [['a.wav', '--dtmf', '5:x'], '--dtmf'],
    [['a.wav', '--linger', '-1'], 'linger'],
    [['a.wav', '--linger', 'soon'], '--linger'],
  ])('refuses %j, naming what is wrong', (argv, what) => {
    expect(() => readCallOptions(argv)).toThrow(what);
  });
});

describe('a call by command', () => {
  let server: ScriptedServer;
  let folder: string;
  let printed: string[];
  beforeEach(async () => {
    server = await new ScriptedServer().start();
    folder = await mkdtemp(join(tmpdir(), 'earshot-call-'));
    printed = [];
    await writeFile(join(folder, 'caller.ulaw'), tone(200));
  });
  afterEach(async () => {
    await server.stop();
    await rm(folder, { recursive: true, force: true });
  });

  function run(
    argv: string[],
    { env = {}, interrupt = new AbortController().signal, serverEntry = '/nowhere.js' } = {},
  ) {
    return runCallCommand({
      clock: systemClock,
      argv: [join(folder, 'caller.ulaw'), '--out', join(folder, 'heard.wav'), '--linger', '0.3', ...argv],
      env,
      print: (text) => printed.push(text),
      screen: { isTTY: false } as NodeJS.WriteStream,
      serverEntry,
      interrupt,
    });
  }

  /** Answers a call with `sound`, and tells of it at `GET /calls/:callSid`. */
  function answerWith(sound: Uint8Array): void {
    server.answers.set('/twilio/voice', (request) => {
      const view = {
        callSid: request.params['CallSid'],
        agent: 'support',
        state: 'ended',
        endReason: 'caller_hung_up',
        durationMs: 1_000,
        messages: [
          { msg: 'm1', role: 'model', text: 'Hello, how can I', interrupted: true },
          { msg: 'm2', role: 'user', text: 'My order.', interrupted: false },
        ],
      };
      server.answers.set(`/calls/${request.params['CallSid']}`, ({ headers }) =>
        headers.authorization === 'Bearer secret'
          ? { type: 'application/json', body: JSON.stringify(view) }
          : { status: 401 },
      );
      return { body: server.connectTwiml() };
    });
    void until(() => server.streams[0]?.of('start').length === 1).then(() => {
      server.streams[0]?.media(sound);
      server.streams[0]?.mark('m');
    });
  }

  it('plays the file, hangs up after the silence, writes what was heard and prints what was said', async () => {
    answerWith(tone(300, 880));
    expect(await run(['--url', server.url], { env: { CONSOLE_TOKEN: 'secret' } })).toBe(0);
    expect(server.streams[0]?.of('stop')).toHaveLength(1);
    const heard = decodeWav(new Uint8Array(await readFile(join(folder, 'heard.wav'))), 'heard.wav');
    expect(Buffer.from(heard).indexOf(tone(300, 880))).toBeGreaterThanOrEqual(0);
    const text = printed.join('\n');
    expect(text).toContain('agent   Hello, how can I —\ncaller  My order.');
    expect(text).toMatch(/turn latency +/);
    expect(text).toMatch(/marks returned +1\n/);
    expect(text).toContain('Ended by the caller, reason caller_hung_up.');
    expect(text).toContain('agent speaks');
    expect(text).toContain(join(folder, 'heard.wav'));
  });

  it('does not call when the recording could not be written anyway', async () => {
    for (const out of [join(folder, 'nowhere', 'heard.wav'), folder]) {
      printed = [];
      expect(await run(['--url', server.url, '--out', out])).toBe(1);
      expect(printed.join('\n')).toContain(`${out}: cannot be written`);
    }
    expect(server.streams).toEqual([]);
  });

  it('prints the transcript though the recording could not be written after all', async () => {
    answerWith(tone(300, 880));
    const out = join(folder, 'gone', 'heard.wav');
    await mkdir(join(folder, 'gone'));
    const calling = run(['--url', server.url, '--out', out], { env: { CONSOLE_TOKEN: 'secret' } });
    await until(() => server.streams.length === 1);
    await rm(join(folder, 'gone'), { recursive: true });
    expect(await calling).toBe(1);
    const text = printed.join('\n');
    expect(text).toContain('agent   Hello, how can I —');
    expect(text).toContain('cannot be written');
    expect(text).not.toContain('What the caller heard');
  });

  it('writes both sides with --stereo, and does without a transcript that it may not read', async () => {
    answerWith(tone(300, 880));
    expect(await run(['--url', server.url, '--stereo', '--no-display'])).toBe(0);
    const wav = await readFile(join(folder, 'heard.wav'));
    expect(wav.readUInt16LE(22)).toBe(2);
    expect(printed.join('\n')).toContain('No transcript: the server wants CONSOLE_TOKEN.');
  });

  it('hangs up on an interrupt and still writes the WAV', async () => {
    await writeFile(join(folder, 'caller.ulaw'), silence(600_000));
    answerWith(tone(100));
    const interrupt = new AbortController();
    void until(() => (server.streams[0]?.of('mark').length ?? 0) > 0).then(() => interrupt.abort());
    expect(await run(['--url', server.url, '--no-display'], { interrupt: interrupt.signal })).toBe(0);
    expect((await readFile(join(folder, 'heard.wav'))).length).toBeGreaterThan(44);
    expect(server.streams[0]?.of('stop')).toHaveLength(1);
  });

  it('fails with what the line said when no stream was opened', async () => {
    server.answers.set('/twilio/voice', { body: '<Response><Say>Busy.</Say><Hangup/></Response>' });
    expect(await run(['--url', server.url])).toBe(1);
    const text = printed.join('\n');
    expect(text).toContain('line    Busy.');
    expect(text).toContain('opened no media stream');
  });

  it('fails with one clear line when the webhook does', async () => {
    server.answers.set('/twilio/voice', { status: 403 });
    expect(await run(['--url', server.url])).toBe(1);
    expect(printed.at(-1)).toBe(`call: POST ${server.url}/twilio/voice: HTTP 403 instead of TwiML (11200)`);
  });

  it('fails when the server is full, absent, or the file is wrong', async () => {
    server.answers.set('/readyz', { status: 503 });
    expect(await run(['--url', server.url])).toBe(1);
    expect(printed.at(-1)).toContain('draining or full');
    expect(await run(['--url', 'http://127.0.0.1:1'])).toBe(1);
    expect(printed.at(-1)).toContain('no server is ready at http://127.0.0.1:1');
    await writeFile(join(folder, 'caller.ulaw'), '');
    expect(await run(['--url', server.url])).toBe(1);
    expect(printed.at(-1)).toContain('caller.ulaw: is empty');
  });

  const STAND_IN = `
    import { createServer } from 'node:http';
    import { writeFileSync } from 'node:fs';
    const server = createServer((request, response) => {
      response.setHeader('content-type', 'text/xml');
      response.end(request.url === '/twilio/voice' ? '<Response><Say>Hi.</Say></Response>' : '');
    });
    server.listen(Number(process.env.PORT), process.env.HOST, () => console.log('stand-in listens'));
    process.on('SIGTERM', () => { writeFileSync(process.env.DATA_DIR + '/drained', ''); process.exit(0); });
  `;

  it('starts a server of its own when none is there, and lets it drain', async () => {
    const serverEntry = join(folder, 'server.mjs');
    await writeFile(serverEntry, STAND_IN);
    expect(await run([], { env: { PORT: '1', DATA_DIR: folder }, serverEntry })).toBe(1);
    expect(printed[0]).toBe('No server at http://127.0.0.1:1; starting one for this call.');
    expect(printed.join('\n')).toContain('line    Hi.');
    expect(await readFile(join(folder, 'drained'), 'utf8')).toBe('');
    expect(await readFile(join(folder, 'call-server.log'), 'utf8')).toContain('stand-in listens');
  });

  it('shows the end of the log of a server that does not start', async () => {
    const serverEntry = join(folder, 'server.mjs');
    await writeFile(serverEntry, 'console.error("PORT is taken"); process.exit(78);');
    expect(await run([], { env: { PORT: '1', DATA_DIR: folder }, serverEntry })).toBe(1);
    expect(printed.at(-1)).toContain('ended before it took calls');
    expect(printed.at(-1)).toContain('PORT is taken');
  });
});
