/**
 * A million hostile frames: bytes of a carrier through the real media socket, texts of a model through the real
 * connection. What reaches the call is compared, in order, with what a plain reading of each frame says must reach it,
 * and what the process holds afterwards with what it held at the start.
 */
import assert from 'node:assert/strict';
import { createHash, type Hash } from 'node:crypto';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseStreamSid, type StreamSid } from '../../src/ids.js';
import { CARRIER_MESSAGES_PER_SECOND_MAX } from '../../src/limits.js';
import { parseCarrierMessage } from '../../src/telephony/carrier-message.js';
import { MediaFrameReader } from '../../src/telephony/media-frame-reader.js';
import type { MediaStreamListener } from '../../src/telephony/media-stream.js';
import { CarrierDoor, STREAM_SID, turn, type Wire } from './carrier-line.js';
import { Mutations, readCorpus, type CorpusEntry } from './corpus.js';
import { ModelLine } from './model-line.js';
import { assertOneMessage } from './model-order.js';
import { Chance, fuzzCount, FUZZ_SEED, withSeedOnFailure } from './seed.js';
import { BINARY, wireFrame } from './wire-frames.js';

const CARRIER_FRAMES = 700_000;
const MODEL_FRAMES = 300_000;
/** Frames that go into the socket at once. */
const BATCH_FRAMES = 200;
const SID = parseStreamSid(STREAM_SID) as StreamSid;

/** Huge messages are for the other tests: here they would be all of the time. */
function smallOf(...names: string[]): CorpusEntry[] {
  return names.flatMap(readCorpus).filter(({ data }) => data.length < 1_000);
}

/** Everything that reached the call, or should have, as one hash. */
class Account implements MediaStreamListener {
  readonly #hash: Hash = createHash('sha1');
  events = 0;
  closes = 0;
  stopped = false;

  onMedia(mulaw: Uint8Array, timestampMs: number): void {
    this.events += 1;
    this.#hash.update(`media ${timestampMs} `).update(mulaw);
  }
  onDtmf(digit: string): void {
    this.#note(`dtmf ${digit}`);
  }
  onMark(name: string): void {
    this.#note(`mark ${name}`);
  }
  onStop(): void {
    this.stopped = true;
    this.#note('stop');
  }
  onClose(): void {
    this.closes += 1;
  }

  digest(): string {
    return this.#hash.copy().digest('hex');
  }

  #note(line: string): void {
    this.events += 1;
    this.#hash.update(line);
  }
}

/** The plain reading: the careful parser alone, a message at a time. */
class PlainReading {
  readonly account = new Account();
  readonly #reader = new MediaFrameReader();

  take(data: Buffer): void {
    const { account } = this;
    const message = parseCarrierMessage(data, SID);
    if (account.stopped) return;
    if (message.event === 'media' && this.#reader.decode(message.payload)) {
      account.onMedia(this.#reader.mulaw, message.timestampMs);
    }
    if (message.event === 'dtmf') account.onDtmf(message.digit);
    if (message.event === 'mark') account.onMark(message.name);
    if (message.event === 'stop') account.onStop();
  }
}

/** A frame as Twilio sends it, of any sound. */
function plainMedia(chance: Chance): Buffer {
  const payload = chance.bytes(chance.once(20) ? 1 + chance.below(400) : 160).toString('base64');
  const timestamp = chance.below(1_000_000);
  return Buffer.from(
    `{"event":"media","sequenceNumber":"${timestamp}","media":{"track":"inbound","chunk":"1","timestamp":"${timestamp}","payload":"${payload}"},"streamSid":"${STREAM_SID}"}`,
    'latin1',
  );
}

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

/** The least of several collections: buffers are freed some turns behind the objects that held them. */
async function heldBytes(): Promise<number> {
  let leastBytes = Infinity;
  for (let round = 0; round < 10; round += 1) {
    collectGarbage();
    await turn();
    const { heapUsed, arrayBuffers } = process.memoryUsage();
    leastBytes = Math.min(leastBytes, heapUsed + arrayBuffers);
  }
  return leastBytes;
}

/** Coarse: what kept a tenth of the bytes that went through would exceed it. */
const GROWTH_MAX_BYTES = 16 * 1024 * 1024;

const DEAF: MediaStreamListener = { onMedia() {}, onDtmf() {}, onMark() {}, onStop() {}, onClose() {} };

/** A carrier that opens one stream after the other and says hostile things on it. */
class HostileCarrier {
  readonly door = new CarrierDoor(() => this.door.accepted(this.#accepted));
  streams = 0;
  heard = 0;
  broken = 0;
  #account = new Account();
  #accepted: MediaStreamListener = this.#account;
  #wire: Wire | undefined;
  #plain = new PlainReading();
  readonly #chance: Chance;
  readonly #mutations: Mutations;

  constructor(chance: Chance) {
    this.#chance = chance;
    const entries = smallOf('carrier-media.txt', 'carrier-control.txt', 'carrier-start.txt');
    this.#mutations = new Mutations(
      entries.map(({ data }) => data),
      chance,
    );
  }

  /** One batch in one piece, or in two with the border anywhere; now and then garbage in the place of frames behind it. */
  async batch(frames: number): Promise<void> {
    const wire = this.#wire ?? (await this.#open());
    const parts: Buffer[] = [];
    for (let count = frames; count > 0; count -= 1) {
      let data = this.#chance.once(3) ? plainMedia(this.#chance) : this.#mutations.next();
      // Behind a stop nothing is heard: most of them are left out.
      if (data.includes('"stop"') && this.#chance.below(20) > 0) data = plainMedia(this.#chance);
      const isBinary = this.#chance.once(100);
      if (!isBinary) this.#plain.take(data);
      const mask = this.#chance.once(50) ? this.#chance.bytes(4) : undefined;
      parts.push(wireFrame(data, { mask, ...(isBinary ? { opcode: BINARY } : {}) }));
    }
    const bytes = Buffer.concat(parts);
    const border = this.#chance.below(bytes.length);
    wire.feed(bytes.subarray(0, border));
    await turn();
    wire.feed(bytes.subarray(border));
    await turn();
    this.door.clock.advance((1_000 * frames) / CARRIER_MESSAGES_PER_SECOND_MAX);
    const { account } = this.#plain;
    assert.equal(this.#account.events, account.events, 'each good message reaches the call once');
    if (account.stopped || this.#chance.once(100)) await this.#end();
  }

  async finish(): Promise<void> {
    if (this.#wire !== undefined) await this.#end();
    assert.equal(this.door.server.openStreams, 0);
    assert.equal(this.door.clock.pendingTimers, 0);
  }

  /** Frames on a socket that has not started, or that one of them starts. */
  async knock(frames: number): Promise<void> {
    this.#accepted = DEAF;
    const wire = this.door.dial();
    for (let count = frames; count > 0; count -= 1) wire.feed(wireFrame(this.#mutations.next()));
    await turn();
    wire.destroy();
    while (this.door.server.unstartedSockets > 0) await turn();
  }

  async #open(): Promise<Wire> {
    this.#account = new Account();
    this.#accepted = this.#account;
    this.#plain = new PlainReading();
    const { wire } = await this.door.open();
    this.#wire = wire;
    this.streams += 1;
    return wire;
  }

  /** Ends the stream with bytes that are no frame, or without a word. */
  async #end(): Promise<void> {
    const wire = this.#wire!;
    this.#wire = undefined;
    // Before `garbage`, which may by chance hold a message.
    assert.equal(
      this.#account.digest(),
      this.#plain.account.digest(),
      'what reaches the call is right, and in order',
    );
    this.heard += this.#account.events;
    if (this.#chance.once(2)) {
      this.broken += 1;
      wire.feed(this.#chance.bytes(1 + this.#chance.below(300)));
      await turn();
    }
    wire.destroy();
    await this.door.shut([wire]);
    assert.equal(this.#account.closes, 1, 'one close for each stream');
  }
}

async function runCarrier(frames: number): Promise<HostileCarrier> {
  const carrier = new HostileCarrier(new Chance(FUZZ_SEED));
  for (let sent = 0; sent < frames; sent += BATCH_FRAMES) {
    if (sent % (20 * BATCH_FRAMES) === 0) await carrier.knock(BATCH_FRAMES);
    else await carrier.batch(BATCH_FRAMES);
  }
  await carrier.finish();
  return carrier;
}

class HostileModel {
  readonly line = new ModelLine();
  heard = 0;
  readonly #mutations: Mutations;

  constructor(chance: Chance) {
    const entries = smallOf('model-speech.txt', 'model-control.txt');
    this.#mutations = new Mutations(
      entries.map(({ data }) => data),
      chance,
    );
  }

  say(frames: number): void {
    const { listener, oddities } = this.line;
    for (let count = frames; count > 0; count -= 1) {
      const text = this.#mutations.next().toString('utf8');
      this.line.receive(text);
      if (listener.events.length > 0) {
        try {
          assertOneMessage(listener.events);
        } catch (cause) {
          throw new Error(`on ${text}: ${(cause as Error).message}`, { cause });
        }
        this.heard += listener.events.length;
        listener.events.length = 0;
      }
      if (oddities.length > 0) {
        assert.notEqual(oddities[0], 'listener_threw');
        oddities.length = 0;
      }
    }
  }
}

describe('a million hostile frames', () => {
  // Most frames are no JSON, and half of the time would go into stacks that nobody reads.
  const { stackTraceLimit } = Error;
  beforeAll(() => void (Error.stackTraceLimit = 1));
  afterAll(() => void (Error.stackTraceLimit = stackTraceLimit));

  it('of a carrier bring the call exactly what is good of them, and leave nothing behind', async () => {
    await withSeedOnFailure(async () => {
      await runCarrier(20_000);
      const before = await heldBytes();
      const carrier = await runCarrier(fuzzCount(CARRIER_FRAMES));
      expect(carrier.heard).toBeGreaterThan(fuzzCount(CARRIER_FRAMES) / 5);
      expect(carrier.streams).toBeGreaterThan(20);
      expect(carrier.broken).toBeGreaterThan(5);
      expect((await heldBytes()) - before).toBeLessThan(GROWTH_MAX_BYTES);
    });
  }, 120_000);

  it('of a model bring the call only sound events in order, and leave nothing behind', async () => {
    await withSeedOnFailure(async () => {
      const model = new HostileModel(new Chance(FUZZ_SEED + 1));
      model.say(20_000);
      const before = await heldBytes();
      model.say(fuzzCount(MODEL_FRAMES));
      expect(model.heard).toBeGreaterThan(fuzzCount(MODEL_FRAMES) / 10);
      expect((await heldBytes()) - before).toBeLessThan(GROWTH_MAX_BYTES);
    });
  }, 120_000);
});
