import { describe, expect, it } from 'vitest';
import { dialTwiml, renderVoiceAnswer } from '../../src/telephony/twiml.js';

describe('the TwiML of a voice answer', () => {
  it('connects a stream with its token and falls through to /twilio/after', () => {
    const { status, xml } = renderVoiceAnswer({ kind: 'stream', token: 'a-token' }, 'https://example.com');
    expect(status).toBe(200);
    expect(xml).toBe(
      '<?xml version="1.0" encoding="UTF-8"?><Response><Connect>' +
        '<Stream url="wss://example.com/twilio/media" statusCallback="https://example.com/twilio/stream" ' +
        'statusCallbackMethod="POST"><Parameter name="token" value="a-token"/></Stream></Connect>' +
        '<Redirect method="POST">https://example.com/twilio/after</Redirect></Response>',
    );
  });

  it('uses ws:// for a local http origin and keeps a base path', () => {
    const local = renderVoiceAnswer({ kind: 'stream', token: 't' }, 'http://127.0.0.1:8080').xml;
    expect(local).toContain('url="ws://127.0.0.1:8080/twilio/media"');
    expect(local).toContain('>http://127.0.0.1:8080/twilio/after<');
    const based = renderVoiceAnswer({ kind: 'stream', token: 't' }, 'https://example.com/phone').xml;
    expect(based).toContain('url="wss://example.com/phone/twilio/media"');
    expect(based).toContain('>https://example.com/phone/twilio/after<');
  });

  it('escapes what goes into attributes', () => {
    const { xml } = renderVoiceAnswer({ kind: 'stream', token: 'a"<&b' }, 'https://example.com');
    expect(xml).toContain('value="a&quot;&lt;&amp;b"');
  });

  it('says why and hangs up when busy or sorry, and only hangs up when there is nothing to say', () => {
    for (const kind of ['busy', 'apology', 'nobodyAnswered'] as const) {
      const { status, xml } = renderVoiceAnswer({ kind }, 'https://example.com');
      expect(status).toBe(200);
      expect(xml).toMatch(/<Response><Say>[^<]{20,}<\/Say><Hangup\/><\/Response>$/);
    }
    expect(renderVoiceAnswer({ kind: 'busy' }, '').xml).not.toBe(
      renderVoiceAnswer({ kind: 'apology' }, '').xml,
    );
    const { xml } = renderVoiceAnswer({ kind: 'hangup' }, 'https://example.com');
    expect(xml).toMatch(/<Response><Hangup\/><\/Response>$/);
  });

  it('asks for patience and then again what follows, where nobody has the call yet', () => {
    expect(renderVoiceAnswer({ kind: 'hold' }, 'https://example.com/phone')).toEqual({
      status: 200,
      xml:
        '<?xml version="1.0" encoding="UTF-8"?><Response><Say>One moment please.</Say><Pause length="2"/>' +
        '<Redirect method="POST">https://example.com/phone/twilio/after</Redirect></Response>',
    });
  });

  it('is 404 with nothing in it for an unknown agent', () => {
    expect(renderVoiceAnswer({ kind: 'unknownAgent' }, 'https://example.com')).toEqual({
      status: 404,
      xml: '',
    });
  });
});

describe('the TwiML that connects a caller with a human', () => {
  it('rings the number for a while, and asks what follows', () => {
    expect(dialTwiml('+15005550006', 'https://example.com')).toBe(
      '<?xml version="1.0" encoding="UTF-8"?><Response>' +
        '<Dial action="https://example.com/twilio/handoff" method="POST" timeout="20" answerOnBridge="true">' +
        '<Number>+15005550006</Number></Dial></Response>',
    );
  });

  it('keeps a base path', () => {
    expect(dialTwiml('+15005550006', 'https://example.com/phone')).toContain(
      'action="https://example.com/phone/twilio/handoff"',
    );
  });
});
