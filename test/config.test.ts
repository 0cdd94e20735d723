import { describe, expect, it } from 'vitest';
import { readConfig } from '../src/config.js';
import { ConfigError } from '../src/errors.js';

const secured = {
  PUBLIC_URL: 'https://voice.example.com',
  TWILIO_AUTH_TOKEN: 'token',
  CONSOLE_TOKEN: 'console-token-of-length',
  GEMINI_API_KEY: 'key',
};

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
    [{ PORT: 'eighty' }, 'PORT'],
    [{ PORT: '70000' }, 'PORT'],
    [{ PUBLIC_URL: 'http://voice.example.com' }, 'PUBLIC_URL'],
    [{ PUBLIC_URL: 'https://voice.example.com/path' }, 'PUBLIC_URL'],
    [{ ...secured, PUBLIC_URL: '' }, 'PUBLIC_URL'],
    [{ HOST: '0.0.0.0', CONSOLE_TOKEN: 'console-token-of-length' }, 'TWILIO_AUTH_TOKEN'],
    [{ ...secured, CONSOLE_TOKEN: '' }, 'CONSOLE_TOKEN'],
    [{ ...secured, GEMINI_API_KEY: '' }, 'GEMINI_API_KEY'],
    [{ MODEL: 'gemini' }, 'MODEL'],
    [{ MODEL: 'claude' }, 'MODEL'],
    [{ GOOGLE_GEMINI_BASE_URL: 'http://model.example.com' }, 'GOOGLE_GEMINI_BASE_URL'],
    [{ TWILIO_API_BASE_URL: 'http://10.0.0.1:3000' }, 'TWILIO_API_BASE_URL'],
    [{ TWILIO_API_KEY: 'SK1' }, 'TWILIO_API_SECRET'],
    [{ TWILIO_NUMBER: '555-0100' }, 'TWILIO_NUMBER'],
    [{ RECORD_CALLS: 'fixture' }, 'RECORD_CALLS'],
    [{ HANDOFF_NUMBER: '+15550100123' }, 'HANDOFF_NUMBER'],
    [{ CALL_WEBHOOK_URL: 'https://example.com' }, 'CALL_WEBHOOK_URL'],
    [{ DATABASE_URL: 'mysql://x' }, 'DATABASE_URL'],
    [{ MAX_CALLS: '-1' }, 'MAX_CALLS'],
    [{ LOG_LEVEL: 'loud' }, 'LOG_LEVEL'],
  ])('refuses %j, naming the variable in one line', (environment, name) => {
    const refusal = (() => {
      try {
        readConfig(environment);
      } catch (error) {
        return error;
      }
      return undefined;
    })();
    expect(refusal).toBeInstanceOf(ConfigError);
    expect((refusal as Error).message).toMatch(new RegExp(`^${name} `));
    expect((refusal as Error).message).not.toContain('\n');
  });

  it('never repeats a secret in a complaint', () => {
    expect(() => readConfig({ ...secured, TWILIO_ACCOUNT_SID: 'not-an-sid-but-secret' })).toThrow(
      expect.objectContaining({ message: expect.not.stringContaining('secret') }),
    );
  });
});
