import { isDeepStrictEqual } from 'node:util';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseStreamSid, type StreamSid } from '../../src/ids.js';
import { CARRIER_PAYLOAD_MAX_BYTES } from '../../src/limits.js';
import { parseCarrierMessage, plainMarkName } from '../../src/telephony/carrier-message.js';
import { MediaFrameReader } from '../../src/telephony/media-frame-reader.js';

const SID = parseStreamSid('MZ0123456789abcdef') as StreamSid;
const SID_BYTES = Buffer.from(SID);
const reader = new MediaFrameReader();

function parse(message: unknown, streamSid: StreamSid | undefined = SID) {
  return parseCarrierMessage(Buffer.from(JSON.stringify(message)), streamSid);
}

function anomaly(kind: string) {
  return { event: 'anomaly', kind };
}

/** The message as Twilio writes it. */
function twilioMedia(payload: Uint8Array, timestamp: number): Buffer {
  const base64 = Buffer.from(payload).toString('base64');
  const media = { track: 'inbound', chunk: '7', timestamp: String(timestamp), payload: base64 };
  return Buffer.from(JSON.stringify({ event: 'media', sequenceNumber: '8', media, streamSid: SID }));
}

/** What the careful way makes of a text frame, as far as media goes. */
function carefully(data: Buffer): { timestampMs: number; mulaw: number[] } | undefined {
  const message = parseCarrierMessage(data, SID);
  if (message.event !== 'media' || !reader.decode(message.payload)) return undefined;
  return { timestampMs: message.timestampMs, mulaw: [...reader.mulaw] };
}

function quickly(data: Buffer): { timestampMs: number; mulaw: number[] } | undefined {
  if (!reader.read(data, SID_BYTES)) return undefined;
  return { timestampMs: reader.timestampMs, mulaw: [...reader.mulaw] };
}

// --- JSON written in every way that JSON allows -----------------------------------------------------------------

const space = fc.oneof(
  { weight: 80, arbitrary: fc.constant('') },
  { weight: 1, arbitrary: fc.constantFrom(' ', '\n', '\t ', '\u00a0') },
);

function spelled(text: string): fc.Arbitrary<string> {
  const plain = JSON.stringify(text);
  const first = text.charCodeAt(0).toString(16).padStart(4, '0');
  const escaped = text === '' ? plain : `"\\u${first}${JSON.stringify(text.slice(1)).slice(1)}`;
  return fc.oneof(
    { weight: 40, arbitrary: fc.constant(plain) },
    { weight: 1, arbitrary: fc.constant(escaped) },
  );
}

const scalar = fc.oneof(
  fc.string({ maxLength: 6, unit: 'binary' }).map((text) => JSON.stringify(text)),
  fc.stringMatching(/^[A-Za-z0-9+/=]{0,8}$/).map((text) => JSON.stringify(text)),
  fc.nat().map(String),
  fc.constantFrom(
    '007',
    '0',
    '-1',
    '1.5',
    '1e2',
    'true',
    'null',
    '[]',
    '{}',
    '[1,"x"]',
    '{"payload":"AAAA"}',
    '"',
    '',
  ),
);

const payload = fc
  .oneof(
    {
      weight: 6,
      arbitrary: fc.uint8Array({ minLength: 1, maxLength: 40 }).map((b) => Buffer.from(b).toString('base64')),
    },
    {
      weight: 1,
      arbitrary: fc
        .uint8Array({ maxLength: 8 })
        .map((b) => Buffer.from(b).toString('base64').replaceAll('=', '')),
    },
    { weight: 2, arbitrary: fc.stringMatching(/^[A-Za-z0-9+/=_ -]{0,12}$/) },
  )
  .map((text) => JSON.stringify(text));

const timestamp = fc.oneof(
  { weight: 6, arbitrary: fc.nat({ max: 1e9 }).map((n) => `"${n}"`) },
  { weight: 3, arbitrary: fc.nat({ max: 1e9 }).map(String) },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      '"007"',
      '007',
      '"1.5"',
      '1.5',
      '""',
      '"-1"',
      '" 1"',
      '1e3',
      '"999999999999999"',
      '"9999999999999999"',
      '1000000000000000',
    ),
  },
);

/** What a counter usually is. */
const counter = fc.oneof(
  { weight: 9, arbitrary: fc.nat().map((n) => `"${n}"`) },
  { weight: 1, arbitrary: scalar },
);

/** An object with some fields in any order, some of them doubled, among others. */
function object(known: readonly fc.Arbitrary<readonly [string, string]>[]): fc.Arbitrary<string> {
  const stray = fc.tuple(
    fc.oneof(
      fc.constantFrom('event', 'media', 'streamSid', 'payload', 'timestamp', 'track', 'chunk', '__proto__'),
      fc.string({ maxLength: 6 }),
    ),
    scalar,
  );
  const strays = fc.oneof(
    { weight: 3, arbitrary: fc.constant([] as [string, string][]) },
    { weight: 1, arbitrary: fc.array(stray, { maxLength: 2 }) },
  );
  return fc
    .tuple(fc.tuple(...known), strays)
    .chain(([fields, more]) => fc.shuffledSubarray([...fields, ...more], { minLength: fields.length }))
    .chain((fields) =>
      fc.tuple(
        ...fields.map(([key, value]) =>
          fc.tuple(space, spelled(key), space, space, fc.constant(value), space),
        ),
      ),
    )
    .map(
      (parts) => `{${parts.map(([a, key, b, c, value, d]) => `${a}${key}${b}:${c}${value}${d}`).join(',')}}`,
    );
}

const field = (key: string, value: fc.Arbitrary<string>) => value.map((text) => [key, text] as const);

const mediaText = object([
  field(
    'track',
    fc.oneof({ weight: 9, arbitrary: fc.constant('"inbound"') }, { weight: 1, arbitrary: scalar }),
  ),
  field('chunk', counter),
  field('timestamp', timestamp),
  field('payload', payload),
]);

const messageText = object([
  field(
    'event',
    fc.oneof({ weight: 9, arbitrary: spelled('media') }, { weight: 1, arbitrary: fc.constant('"stop"') }),
  ),
  field('sequenceNumber', counter),
  field(
    'streamSid',
    fc.oneof({ weight: 9, arbitrary: fc.constant(`"${SID}"`) }, { weight: 1, arbitrary: scalar }),
  ),
  field('media', fc.oneof({ weight: 9, arbitrary: mediaText }, { weight: 1, arbitrary: scalar })),
]);

describe('the fast reader of media', () => {
  it('takes every message in the shape that Twilio sends', () => {
    const sound = fc.uint8Array({ minLength: 1, maxLength: 2_000 });
    fc.assert(
      fc.property(sound, fc.nat({ max: 14_400_000 }), (mulaw, timestampMs) => {
        const data = twilioMedia(mulaw, timestampMs);
        expect(quickly(data)).toEqual({ timestampMs, mulaw: [...mulaw] });
        expect(carefully(data)).toEqual({ timestampMs, mulaw: [...mulaw] });
      }),
    );
  });

  it('agrees with the careful one or declines, however the JSON is written', () => {
    let taken = 0;
    fc.assert(
      fc.property(messageText, (text) => {
        const data = Buffer.from(text);
        const quick = quickly(data);
        if (quick === undefined) return true;
        taken += 1;
        return isDeepStrictEqual(carefully(data), quick);
      }),
      { numRuns: 2_000 },
    );
    expect(taken).toBeGreaterThan(100);
  });

  it('agrees with the careful one or declines when bytes of a good message are damaged', () => {
    const good = twilioMedia(Buffer.from('a mu-law sound'), 1_020);
    const damage = fc.array(fc.tuple(fc.nat({ max: good.length - 1 }), fc.nat({ max: 255 })), {
      maxLength: 3,
    });
    const agrees = fc.property(damage, fc.nat({ max: good.length }), fc.boolean(), (changes, length, cut) => {
      const data = Buffer.from(good);
      for (const [at, byte] of changes) data[at] = byte;
      const seen = cut ? data.subarray(0, length) : data;
      const quick = quickly(seen);
      return quick === undefined || isDeepStrictEqual(carefully(seen), quick);
    });
    expect(() => fc.assert(agrees, { numRuns: 2_000 })).not.toThrow();
  });

  it('takes numbers bare, other orders, missing track and missing streamSid', () => {
    for (const text of [
      `{"media":{"payload":"AAEC","timestamp":40,"chunk":3,"track":"inbound"},"event":"media"}`,
      `{"streamSid":"${SID}","event":"media","media":{"payload":"AAEC","timestamp":"40"},"more":"x"}`,
    ]) {
      expect(quickly(Buffer.from(text))).toEqual({ timestampMs: 40, mulaw: [0, 1, 2] });
    }
  });

  it('reuses its buffer from message to message', () => {
    expect(reader.read(twilioMedia(Buffer.alloc(160, 1), 0), SID_BYTES)).toBe(true);
    const first = reader.mulaw;
    expect(reader.read(twilioMedia(Buffer.alloc(160, 2), 20), SID_BYTES)).toBe(true);
    expect(reader.mulaw).toBe(first);
    expect(first[0]).toBe(2);
  });

  it('has room for the largest message there is', () => {
    const mulaw = Buffer.alloc(48 * 1024 - 200, 5);
    const data = twilioMedia(mulaw, 0);
    expect(data.length).toBeLessThanOrEqual(CARRIER_PAYLOAD_MAX_BYTES);
    expect(reader.read(data, SID_BYTES)).toBe(true);
    expect(reader.mulaw.length).toBe(mulaw.length);
    expect(reader.decode('A'.repeat(CARRIER_PAYLOAD_MAX_BYTES + 4))).toBe(false);
  });
});

/** A start with a format as a peer may write it. */
function format(mediaFormat: string) {
  return { start: { streamSid: 'MZ1', callSid: 'CA1', mediaFormat: JSON.parse(mediaFormat) as unknown } };
}

describe('a carrier message', () => {
  it('starts a stream, with or without the fields that compatible hosts leave out', () => {
    const start = { streamSid: 'MZ1', callSid: 'CA1', accountSid: 'AC1', customParameters: { token: 't' } };
    const mediaFormat = { encoding: 'audio/x-mulaw', sampleRate: 8000, channels: 1 };
    const read = { streamSid: 'MZ1', callSid: 'CA1', accountSid: 'AC1', customParameters: { token: 't' } };
    for (const message of [
      { event: 'start', streamSid: 'MZ1', start: { ...start, mediaFormat, tracks: ['inbound'] } },
      { event: 'start', start: { ...start, mediaFormat: { encoding: 'audio/x-mulaw', sampleRate: '8000' } } },
      { event: 'start', streamSid: 'MZ1', start: { ...start, streamSid: undefined } },
    ]) {
      expect(parseCarrierMessage(Buffer.from(JSON.stringify(message)), undefined)).toEqual({
        event: 'start',
        start: read,
      });
    }
    const bare = { event: 'start', start: { streamSid: '0f8f-1', callSid: 'CA1' } };
    expect(parseCarrierMessage(Buffer.from(JSON.stringify(bare)), undefined)).toEqual({
      event: 'start',
      start: { streamSid: '0f8f-1', callSid: 'CA1', accountSid: undefined, customParameters: {} },
    });
  });

  it.each([
    ['no start object', {}],
    ['a start that is a list', { start: [] }],
    ['no callSid', { start: { streamSid: 'MZ1' } }],
    ['a callSid that is a number', { start: { streamSid: 'MZ1', callSid: 1 } }],
    ['no streamSid', { start: { callSid: 'CA1' } }],
    ['two streamSids', { streamSid: 'MZ2', start: { streamSid: 'MZ1', callSid: 'CA1' } }],
    ['an odd streamSid', { start: { streamSid: 'MZ "1"', callSid: 'CA1' } }],
    [
      'parameters that are no text',
      { start: { streamSid: 'MZ1', callSid: 'CA1', customParameters: { token: 1 } } },
    ],
    ['parameters in a list', { start: { streamSid: 'MZ1', callSid: 'CA1', customParameters: ['t'] } }],
    [
      'linear sound',
      { start: { streamSid: 'MZ1', callSid: 'CA1', mediaFormat: { encoding: 'audio/x-l16' } } },
    ],
    ['another rate', { start: { streamSid: 'MZ1', callSid: 'CA1', mediaFormat: { sampleRate: 16000 } } }],
    ['stereo', { start: { streamSid: 'MZ1', callSid: 'CA1', mediaFormat: { channels: 2 } } }],
    ['a rate that only a conversion makes a number', format('{"sampleRate":[8000]}')],
    ['a rate whose conversion throws', format('{"sampleRate":{"toString":1}}')],
    ['channels whose conversion throws', format('{"channels":{"toString":null,"valueOf":null}}')],
    ['a format that is text', { start: { streamSid: 'MZ1', callSid: 'CA1', mediaFormat: 'mulaw' } }],
  ])('is not a start with %s', (_name, fields) => {
    const data = Buffer.from(JSON.stringify({ event: 'start', ...fields }));
    expect(parseCarrierMessage(data, undefined)).toEqual(anomaly('badStart'));
  });

  it('brings key presses, marks and stop', () => {
    expect(parse({ event: 'dtmf', streamSid: SID, dtmf: { track: 'inbound_track', digit: '#' } })).toEqual({
      event: 'dtmf',
      digit: '#',
    });
    expect(parse({ event: 'dtmf', dtmf: { digit: 'a' } })).toEqual({ event: 'dtmf', digit: 'A' });
    expect(parse({ event: 'mark', streamSid: SID, mark: { name: 'g1:\u00e9' } })).toEqual({
      event: 'mark',
      name: 'g1:\u00e9',
    });
    expect(parse({ event: 'stop', streamSid: SID, stop: { callSid: 'CA1' } })).toEqual({ event: 'stop' });
    expect(parse({ event: 'stop' })).toEqual({ event: 'stop' });
    expect(parse({ event: 'connected', protocol: 'Call', version: '9' })).toEqual({ event: 'connected' });
  });

  it.each([
    ['malformedJson', '{'],
    ['malformedJson', '[]'],
    ['malformedJson', 'null'],
    ['malformedJson', '"media"'],
    ['malformedJson', ''],
    ['unknownEvent', '{}'],
    ['unknownEvent', '{"event":7}'],
    ['unknownEvent', '{"event":"toString"}'],
    ['unknownEvent', '{"event":"Media"}'],
    ['duplicateStart', `{"event":"start","start":{"streamSid":"${SID}","callSid":"CA1"}}`],
    ['wrongStream', '{"event":"media","streamSid":"MZother","media":{"timestamp":"1","payload":"AAAA"}}'],
    ['wrongStream', '{"event":"stop","streamSid":7}'],
    ['wrongTrack', '{"event":"media","media":{"track":"outbound","timestamp":"1","payload":"AAAA"}}'],
    ['wrongTrack', '{"event":"media","media":{"track":1,"timestamp":"1","payload":"AAAA"}}'],
    ['badMedia', '{"event":"media"}'],
    ['badMedia', '{"event":"media","media":[]}'],
    ['badMedia', '{"event":"media","media":{"timestamp":"1"}}'],
    ['badMedia', '{"event":"media","media":{"payload":"AAAA"}}'],
    ['badMedia', '{"event":"media","media":{"timestamp":"-1","payload":"AAAA"}}'],
    ['badMedia', '{"event":"media","media":{"timestamp":-1,"payload":"AAAA"}}'],
    ['badMedia', '{"event":"media","media":{"timestamp":"1e3","payload":"AAAA"}}'],
    ['badMedia', '{"event":"media","media":{"timestamp":1e300,"payload":"AAAA"}}'],
    ['badMedia', '{"event":"media","media":{"timestamp":"1","payload":7}}'],
    ['badDtmf', '{"event":"dtmf","dtmf":{"digit":"12"}}'],
    ['badDtmf', '{"event":"dtmf","dtmf":{"digit":5}}'],
    ['badDtmf', '{"event":"dtmf"}'],
    ['badMark', '{"event":"mark","mark":{"name":1}}'],
    ['badMark', '{"event":"mark","mark":"x"}'],
  ])('is %s: %s', (kind, text) => {
    expect(parseCarrierMessage(Buffer.from(text), SID)).toEqual(anomaly(kind));
  });

  it('is not a start with a rate so deeply nested that a conversion would overflow the stack', () => {
    const rate = `${'['.repeat(20_000)}8000${']'.repeat(20_000)}`;
    const text = `{"event":"start","start":{"streamSid":"MZ1","callSid":"CA1","mediaFormat":{"sampleRate":${rate}}}}`;
    expect(parseCarrierMessage(Buffer.from(text), undefined)).toEqual(anomaly('badStart'));
  });

  it('is malformed when its bytes are not UTF-8', () => {
    const data = Buffer.from('{"event":"mark","mark":{"name":"x"}}');
    data[data.indexOf('x')] = 0xff;
    expect(parseCarrierMessage(data, SID)).toEqual(anomaly('malformedJson'));
  });

  it('is out of order before start unless it is connected or start', () => {
    for (const event of ['media', 'dtmf', 'mark', 'stop']) {
      const data = Buffer.from(JSON.stringify({ event }));
      expect(parseCarrierMessage(data, undefined)).toEqual(anomaly('beforeStart'));
    }
  });

  it('never throws, whatever the JSON or the bytes', () => {
    const event = fc.constantFrom('start', 'media', 'dtmf', 'mark', 'stop', 'connected');
    const text = fc
      .tuple(fc.json(), event)
      .chain(([json, name]) => fc.constantFrom(json, `{"event":"${name}","${name}":${json}}`));
    const data = fc.oneof(
      text.map((json) => Buffer.from(json)),
      fc.uint8Array().map((bytes) => Buffer.from(bytes)),
    );
    const property = fc.property(data, fc.constantFrom(undefined, SID), (bytes, sid) => {
      return typeof parseCarrierMessage(bytes, sid).event === 'string';
    });
    expect(() => fc.assert(property, { numRuns: 500 })).not.toThrow();
  });
});

describe('base64', () => {
  it('decodes like Node, padded or not, and nothing else', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 1, maxLength: 100 }), (bytes) => {
        const text = Buffer.from(bytes).toString('base64');
        expect(reader.decode(text)).toBe(true);
        expect([...reader.mulaw]).toEqual([...bytes]);
        expect(reader.decode(text.replaceAll('=', ''))).toBe(true);
        expect([...reader.mulaw]).toEqual([...bytes]);
      }),
    );
    for (const text of [
      '',
      'A',
      'A===',
      'AA=',
      'AAAA=',
      'AAA==',
      'AA==AA==',
      'AA-_',
      'AA AA',
      'AAAAA',
      '====',
      'AAA\u0141',
    ]) {
      expect([text, reader.decode(text)]).toEqual([text, false]);
    }
  });

  it('brings a plain mark the short way as the long one does, and leaves every other one to it', () => {
    const sid = parseStreamSid('MZ0123') as StreamSid;
    const line = (name: string, streamSid = 'MZ0123'): string =>
      `{"event":"mark","sequenceNumber":"7","streamSid":"${streamSid}","mark":{"name":"${name}"}}`;
    expect(plainMarkName(Buffer.from(line('g1:m5')), sid)).toBe('g1:m5');
    expect(plainMarkName(Buffer.from(line('g1:m5', 'MZ9999')), sid)).toBeUndefined();
    const edited = fc
      .tuple(fc.stringMatching(/^[A-Za-z0-9:_-]{0,70}$/), fc.nat(120), fc.string({ maxLength: 3 }), fc.nat(2))
      .map(([name, at, put, drop]) => {
        const text = line(name);
        return text.slice(0, at) + put + text.slice(at + drop);
      });
    const named = fc.string({ unit: 'binary', maxLength: 80 }).map((name) => line(name));
    fc.assert(
      fc.property(fc.oneof(edited, named), (text) => {
        const data = Buffer.from(text);
        const name = plainMarkName(data, sid);
        if (name !== undefined) expect(parseCarrierMessage(data, sid)).toEqual({ event: 'mark', name });
      }),
      { numRuns: 2_000 },
    );
  });
});
