import * as fc from 'fast-check';
import twilio from 'twilio';
import { describe, expect, it } from 'vitest';
import { TelephonyError } from '../../src/errors.js';
import { readTwiml } from '../../src/replay/twiml-reader.js';
import { readXml } from '../../src/replay/xml-reader.js';

describe('TwiML as the carrier reads it', () => {
  it('reads what the twilio library writes', () => {
    const response = new twilio.twiml.VoiceResponse();
    response.say('Fish & chips < 5 > 4 "quoted"');
    response.pause({ length: 2 });
    const stream = response.connect().stream({
      url: 'wss://voice.example/twilio/media',
      name: 'main',
      statusCallback: 'https://voice.example/s',
    });
    stream.parameter({ name: 'token', value: 'a&b<c>"d\'' });
    response.play({ loop: 2 }, 'https://voice.example/a.wav?x=1&y=2');
    response.redirect('https://voice.example/twilio/after?a=1&b=2');
    response.hangup();
    expect(readTwiml(response.toString(), 'here')).toEqual([
      { kind: 'say', text: 'Fish & chips < 5 > 4 "quoted"', loop: 1 },
      { kind: 'pause', lengthMs: 2_000 },
      {
        kind: 'connect',
        action: undefined,
        method: 'POST',
        stream: {
          url: 'wss://voice.example/twilio/media',
          name: 'main',
          statusCallback: 'https://voice.example/s',
          statusCallbackMethod: 'POST',
          parameters: { token: 'a&b<c>"d\'' },
        },
      },
      { kind: 'play', url: 'https://voice.example/a.wav?x=1&y=2', loop: 2 },
      { kind: 'redirect', url: 'https://voice.example/twilio/after?a=1&b=2', method: 'POST' },
      { kind: 'hangup' },
    ]);
  });

  it('reads any parameter value that the twilio library can write', () => {
    // XML itself has no place for control characters, and attributes turn line breaks into spaces.
    const value = fc
      .string({ unit: 'grapheme', maxLength: 200 })
      .filter((text) => !/[\p{Cc}\p{Cs}]/u.test(text));
    fc.assert(
      fc.property(value, (text) => {
        const response = new twilio.twiml.VoiceResponse();
        response.connect().stream({ url: 'wss://a.example/m' }).parameter({ name: 'v', value: text });
        const [verb] = readTwiml(response.toString(), 'here');
        expect(verb).toMatchObject({ stream: { parameters: { v: text } } });
      }),
    );
  });

  it('takes comments, CDATA, single quotes and character references', () => {
    const body = `<?xml version='1.0'?><!-- a > b --><Response><Say voice='x'>A<![CDATA[ <b> ]]>&#66;&#x43;</Say></Response>`;
    expect(readTwiml(body, 'here')).toEqual([{ kind: 'say', text: 'A <b> BC', loop: 1 }]);
  });

  it('takes an empty document as a call that is over', () => {
    expect(readTwiml('<Response/>', 'here')).toEqual([]);
  });

  it.each([
    ['nothing', ''],
    ['text that is no XML', 'Internal error'],
    ['HTML', '<!doctype html><html><body>502</body></html>'],
    ['JSON', '{"error":"no"}'],
    ['an unclosed tag', '<Response><Say>Hi</Response>'],
    ['a document cut short', '<Response><Say>Hi</Say>'],
    ['two roots', '<Response/><Response/>'],
    ['text behind the root', '<Response/>oops'],
    ['another root', '<Answer/>'],
    ['a bare ampersand', '<Response><Say>a & b</Say></Response>'],
    ['an unknown entity', '<Response><Say>a&nbsp;b</Say></Response>'],
    ['an unquoted attribute', '<Response><Pause length=3/></Response>'],
    ['an attribute given twice', '<Response><Pause length="3" length="4"/></Response>'],
    ['lower-case verbs, which Twilio does not know', '<Response><hangup/></Response>'],
    ['a verb that the phone cannot follow', '<Response><Dial>+12025550100</Dial></Response>'],
    ['<Connect> without a stream', '<Response><Connect/></Response>'],
    ['a stream without a URL', '<Response><Connect><Stream/></Connect></Response>'],
    [
      'the outbound track',
      '<Response><Connect><Stream url="wss://a/b" track="both_tracks"/></Connect></Response>',
    ],
    [
      'a parameter of 500 characters',
      `<Response><Connect><Stream url="wss://a/b"><Parameter name="n" value="${'v'.repeat(499)}"/></Stream></Connect></Response>`,
    ],
    ['a redirect to nowhere', '<Response><Redirect> </Redirect></Response>'],
    ['an impossible method', '<Response><Redirect method="PUT">/x</Redirect></Response>'],
    ['a pause of no number', '<Response><Pause length="soon"/></Response>'],
    ['more than 64 KB', `<Response><Say>${'a'.repeat(70_000)}</Say></Response>`],
  ])('refuses %s, naming where it came from', (_what, body) => {
    expect(() => readTwiml(body, 'POST https://voice.example/x')).toThrow(TelephonyError);
    expect(() => readTwiml(body, 'POST https://voice.example/x')).toThrow('https://voice.example/x');
  });

  it('never hangs or throws anything but a SyntaxError on noise', () => {
    const noise = fc.array(
      fc.constantFrom(
        '<',
        '>',
        '/',
        '&',
        ';',
        '"',
        "'",
        '=',
        '!--',
        '-->',
        '<![CDATA[',
        ']]>',
        '?',
        'a',
        ' ',
      ),
      {
        maxLength: 60,
      },
    );
    fc.assert(
      fc.property(noise, (parts) => {
        try {
          readXml(parts.join(''));
        } catch (error) {
          expect(error).toBeInstanceOf(SyntaxError);
        }
      }),
      { numRuns: 500 },
    );
  });
});
