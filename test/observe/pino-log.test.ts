import { describe, expect, it } from 'vitest';
import { createLog } from '../../src/observe/pino-log.js';

const SECRET = 'what-nobody-may-read';

function logged(level = 'debug') {
  let text = '';
  const log = createLog({ level, pretty: false }, { write: (line) => void (text += line) });
  return {
    log,
    get text() {
      return text;
    },
    get lines() {
      const lines = text.split('\n').filter((line) => line !== '');
      return lines.map((line) => JSON.parse(line) as Record<string, unknown>);
    },
  };
}

/** An object that holds `inner` so many levels down. */
function buried(inner: object, levels: number): object {
  return levels === 0 ? inner : { outer: buried(inner, levels - 1) };
}

describe('the log', () => {
  it('writes one JSON line an event: level, time, fields and message', () => {
    const out = logged();
    out.log.info({ callSid: 'CA1', durationMs: 12, nested: { list: [1, { deep: null }] } }, 'call ended');
    out.log.warn({}, 'odd');
    expect(out.lines).toEqual([
      {
        level: 30,
        time: expect.any(Number) as number,
        callSid: 'CA1',
        durationMs: 12,
        nested: { list: [1, { deep: null }] },
        msg: 'call ended',
      },
      { level: 40, time: expect.any(Number) as number, msg: 'odd' },
    ]);
  });

  it('writes nothing below its level', () => {
    const out = logged('warn');
    out.log.debug({}, 'a');
    out.log.info({}, 'b');
    out.log.warn({}, 'c');
    out.log.error({}, 'd');
    expect(out.lines.map(({ msg }) => msg)).toEqual(['c', 'd']);
    const silent = logged('silent');
    silent.log.error({}, 'e');
    expect(silent.text).toBe('');
  });

  it('leaves out what is personal, however deep it stands, and keeps what is beside it', () => {
    for (const levels of [0, 1, 2, 3, 4, 8]) {
      const out = logged();
      out.log.info(
        { callSid: 'CA1', ...buried({ pii: { from: SECRET, words: [SECRET] }, code: 7 }, levels) },
        'x',
      );
      expect(out.text).not.toContain(SECRET);
      expect(out.text).not.toContain('pii');
      expect(out.text).toContain('CA1');
      if (levels <= 4) expect(out.text).toContain('"code":7');
    }
  });

  it('leaves it out of lists too', () => {
    const out = logged();
    out.log.info({ calls: [{ callSid: 'CA1', pii: { from: SECRET } }, [{ authToken: SECRET }]] }, 'x');
    expect(out.lines[0]).toMatchObject({ calls: [{ callSid: 'CA1' }, [{}]] });
    expect(out.text).not.toContain(SECRET);
  });

  it.each([
    'apiKey',
    'apiSecret',
    'authToken',
    'sharedKey',
    'token',
    'consoleToken',
    'password',
    'Authorization',
    'Set-Cookie',
    'x-goog-api-key',
    'GEMINI_API_KEY',
    'GOOGLE_API_KEY',
    'TWILIO_AUTH_TOKEN',
    'TWILIO_API_KEY',
    'TWILIO_API_SECRET',
    'TWILIO_SHARED_KEY',
    'CONSOLE_TOKEN',
    'METRICS_TOKEN',
    'CALL_WEBHOOK_SECRET',
  ])('never writes a %s', (name) => {
    for (const levels of [0, 1, 3]) {
      const out = logged();
      out.log.error(buried({ [name]: SECRET, beside: 1 }, levels), 'x');
      expect(out.text).not.toContain(SECRET);
      expect(out.text).toContain('"beside":1');
    }
  });

  it('keeps names that only resemble them', () => {
    const out = logged();
    const fields = { promptTokens: 3, tokenCount: 4, keyPressed: true, piiFields: 2, streamSid: 'MZ1' };
    out.log.info(fields, 'x');
    expect(out.lines[0]).toMatchObject(fields);
  });

  it('writes an error with its stack and cause, without what hangs on it', () => {
    const error = Object.assign(new Error('the observer failed', { cause: new Error('disk full') }), {
      code: 'EOBSERVE',
      pii: { from: SECRET },
      config: { headers: { Authorization: SECRET }, auth: { password: SECRET } },
    });
    for (const fields of [{ err: error }, { outer: { failure: error } }]) {
      const out = logged();
      out.log.error(fields, 'x');
      expect(out.text).toContain('the observer failed: disk full');
      expect(out.text).toContain('EOBSERVE');
      expect(out.text).toContain('pino-log.test');
      expect(out.text).not.toContain(SECRET);
    }
  });

  it('does not change what it is given', () => {
    const fields = { pii: { from: SECRET }, deep: { token: SECRET } };
    const copy = structuredClone(fields);
    logged().log.info(fields, 'x');
    expect(fields).toEqual(copy);
  });

  it('survives fields that go round in a circle, and dates', () => {
    const fields: Record<string, unknown> = { at: new Date(0) };
    fields['self'] = fields;
    const out = logged();
    out.log.info(fields, 'x');
    expect(out.lines[0]).toMatchObject({ at: '1970-01-01T00:00:00.000Z', msg: 'x' });
  });
});
