/** The fast way through a carrier's message against the careful one, over whatever a carrier may write. */
import { isDeepStrictEqual } from 'node:util';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseStreamSid, type StreamSid } from '../../src/ids.js';
import { CARRIER_ANOMALIES } from '../../src/telephony/carrier-anomaly.js';
import { parseCarrierMessage, type CarrierMessage } from '../../src/telephony/carrier-message.js';
import { MediaFrameReader } from '../../src/telephony/media-frame-reader.js';
import { STREAM_SID } from './carrier-line.js';
import { Mutations, readCorpus } from './corpus.js';
import { Chance, fuzzCount, fuzzed, fuzzedAtLeast, FUZZ_SEED } from './seed.js';

const SID = parseStreamSid(STREAM_SID) as StreamSid;
const SID_BYTES = Buffer.from(SID);
const reader = new MediaFrameReader();

interface Sound {
  readonly timestampMs: number;
  readonly mulaw: Buffer;
}

function quickly(data: Buffer): Sound | undefined {
  if (!reader.read(data, SID_BYTES)) return undefined;
  return { timestampMs: reader.timestampMs, mulaw: Buffer.from(reader.mulaw) };
}

function carefully(data: Buffer): Sound | undefined {
  const message = parseCarrierMessage(data, SID);
  if (message.event !== 'media' || !reader.decode(message.payload)) return undefined;
  return { timestampMs: message.timestampMs, mulaw: Buffer.from(reader.mulaw) };
}

/** A judgement of its own, from `JSON.parse` and a strict reading of RFC 4648, for a message whose keys are not doubled. */
function byTheBook(data: Buffer): Sound | undefined {
  const { event, streamSid, media } = JSON.parse(data.toString('utf8')) as Record<string, unknown>;
  if (event !== 'media' || (streamSid !== undefined && streamSid !== STREAM_SID)) return undefined;
  if (typeof media !== 'object' || media === null || Array.isArray(media)) return undefined;
  const { track, timestamp, payload } = media as Record<string, unknown>;
  if (track !== undefined && track !== 'inbound') return undefined;
  const isText = typeof timestamp === 'string' && /^[0-9]{1,15}$/.test(timestamp);
  const isNumber = typeof timestamp === 'number' && timestamp >= 0 && timestamp < 1e15;
  if (!isText && !isNumber) return undefined;
  if (typeof payload !== 'string' || payload === '') return undefined;
  const isWhole = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}(?:==)?|[A-Za-z0-9+/]{3}=?)?$/.test(payload);
  return isWhole ? { timestampMs: Number(timestamp), mulaw: Buffer.from(payload, 'base64') } : undefined;
}

// --- Messages with each field right, odd or absent, in any order --------------------------------------------------

const ABSENT = Symbol('absent');
const odd = fc.oneof(
  fc.constantFrom<unknown>(ABSENT, null, true, 0, -1, 1.5, '', [], {}, [1], { toString: 1 }, 'x', 1e300),
  fc.jsonValue({ maxDepth: 2 }),
);

function mostly<T>(right: fc.Arbitrary<T>): fc.Arbitrary<unknown> {
  return fc.oneof({ weight: 30, arbitrary: right }, { weight: 1, arbitrary: odd });
}

const timestamp = fc.oneof(
  fc.nat(1e9),
  fc.nat(1e9).map(String),
  fc.constantFrom<unknown>(
    '007',
    '',
    ' 1',
    '1.5',
    '1e3',
    '-0',
    0.1,
    999_999_999_999_999,
    1e15,
    '9'.repeat(16),
  ),
);
const base64 = fc.uint8Array({ maxLength: 170 }).map((bytes) => Buffer.from(bytes).toString('base64'));
const payload = fc.oneof(
  { weight: 4, arbitrary: base64 },
  { weight: 1, arbitrary: base64.map((text) => text.replaceAll('=', '')) },
  { weight: 1, arbitrary: base64.map((text) => `${text}=`) },
  { weight: 1, arbitrary: fc.uint8Array().map((bytes) => Buffer.from(bytes).toString('base64url')) },
  {
    weight: 1,
    arbitrary: fc.tuple(base64, fc.string({ unit: 'binary', maxLength: 3 })).map((parts) => parts.join('')),
  },
);

/** An object of these fields and others, in any order. */
function shuffled(fields: Record<string, fc.Arbitrary<unknown>>): fc.Arbitrary<object> {
  const strays = fc.dictionary(fc.string({ unit: 'binary', maxLength: 5 }), fc.jsonValue({ maxDepth: 1 }), {
    maxKeys: 2,
  });
  const extra = fc.oneof({ weight: 5, arbitrary: fc.constant({}) }, { weight: 1, arbitrary: strays });
  return fc.tuple(fc.record(fields), extra).chain(([known, more]) => {
    const entries = [...Object.entries(more), ...Object.entries(known)].filter(
      ([, value]) => value !== ABSENT,
    );
    return fc
      .shuffledSubarray(entries, { minLength: entries.length })
      .map((order) => Object.fromEntries(order.filter(([key]) => key !== '__proto__')));
  });
}

const media = shuffled({
  track: mostly(fc.constant('inbound')),
  chunk: mostly(fc.nat(1_000).map(String)),
  timestamp: mostly(timestamp),
  payload: mostly(payload),
});
const message = shuffled({
  event: mostly(fc.constantFrom('media', 'media', 'media', 'media', 'stop')),
  sequenceNumber: mostly(fc.nat(1_000)),
  streamSid: mostly(fc.constant(STREAM_SID)),
  media: mostly(media),
});

/** The same message in other words: with whitespace, or with escapes in its strings. */
const spelling = fc.constantFrom<(text: string) => string>(
  (text) => text,
  (text) => text,
  (text) => text,
  (text) => text,
  (text) => JSON.stringify(JSON.parse(text), undefined, 1),
  (text) => ` ${text}\n`,
  (text) =>
    text.replace(/media|inbound|MZ1/, (word) => `\\u00${word.charCodeAt(0).toString(16)}${word.slice(1)}`),
  (text) => text.replaceAll('/', '\\/'),
);

describe('a media message', () => {
  it('is read by the book, whichever way it goes, whatever its fields and their order', () => {
    let quick = 0;
    const property = fc.property(message, spelling, (fields, spell) => {
      const data = Buffer.from(spell(JSON.stringify(fields)));
      const wanted = byTheBook(data);
      const fast = quickly(data);
      if (fast !== undefined) quick += 1;
      expect(carefully(data)).toEqual(wanted);
      if (fast !== undefined) expect(fast).toEqual(wanted);
    });
    fc.assert(property, fuzzed(3_000));
    expect(quick).toBeGreaterThan(fuzzedAtLeast(300));
  });

  it('is read the same fast or carefully, or carefully only, after any damage', () => {
    const chance = new Chance(FUZZ_SEED);
    const entries = ['carrier-media.txt', 'carrier-control.txt'].flatMap(readCorpus);
    const mutations = new Mutations(
      entries.filter(({ data }) => data.length < 2_000).map(({ data }) => data),
      chance,
    );
    let quick = 0;
    for (let count = fuzzCount(200_000); count > 0; count -= 1) {
      const data = mutations.next();
      const fast = quickly(data);
      if (fast === undefined) continue;
      quick += 1;
      const careful = carefully(data);
      const agree = isDeepStrictEqual(fast, careful);
      expect(agree, `FUZZ_SEED=${FUZZ_SEED}: ${data.toString('latin1')}`).toBe(true);
    }
    expect(quick).toBeGreaterThan(fuzzedAtLeast(2_000));
  });
});

/** Whether values are in their ranges, and the event may come before or after `start`. */
function isInOrder(read: CarrierMessage, isStarted: boolean): boolean {
  switch (read.event) {
    case 'anomaly':
      return CARRIER_ANOMALIES.includes(read.kind);
    case 'connected':
      return true;
    case 'start':
      return !isStarted;
    case 'media':
      return isStarted && read.timestampMs >= 0 && read.timestampMs < 1e15;
    case 'dtmf':
      return isStarted && /^[0-9A-D*#]$/.test(read.digit);
    default:
      return isStarted;
  }
}

describe('any carrier message', () => {
  it('is an event with sound values or a known anomaly, before start and after it', () => {
    const mutations = new Mutations(
      ['carrier-start.txt', 'carrier-media.txt', 'carrier-control.txt']
        .flatMap(readCorpus)
        .map(({ data }) => data),
      new Chance(FUZZ_SEED + 1),
    );
    for (let count = fuzzCount(20_000); count > 0; count -= 1) {
      const data = mutations.next();
      for (const sid of [undefined, SID]) {
        const read = parseCarrierMessage(data, sid);
        const isSound = isInOrder(read, sid !== undefined);
        expect(isSound, `FUZZ_SEED=${FUZZ_SEED}: ${data.toString('latin1').slice(0, 500)}`).toBe(true);
      }
    }
  });
});
