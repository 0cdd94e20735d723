/** Every message of the corpus, by the doors that it comes through. */
import { describe, expect, it } from 'vitest';
import { parseStreamSid, type StreamSid } from '../../src/ids.js';
import { parseCarrierMessage, type CarrierMessage } from '../../src/telephony/carrier-message.js';
import { MediaFrameReader } from '../../src/telephony/media-frame-reader.js';
import type { HeardEvent } from '../support/recording-live-listener.js';
import { CarrierDoor, STREAM_SID, turn, Wire } from './carrier-line.js';
import { readCorpus, type CorpusEntry } from './corpus.js';
import { ModelLine } from './model-line.js';
import { wireFrame } from './wire-frames.js';

const SID = parseStreamSid(STREAM_SID) as StreamSid;
const reader = new MediaFrameReader();
const NO_LISTENER = { onMedia() {}, onDtmf() {}, onMark() {}, onStop() {}, onClose() {} };

function carrierVerdict(message: CarrierMessage): string {
  switch (message.event) {
    case 'anomaly':
      return message.kind;
    case 'media':
      return reader.decode(message.payload) ? `media:${reader.mulaw.length}` : 'badPayload';
    case 'dtmf':
      return `dtmf:${message.digit}`;
    case 'mark':
      return `mark:${message.name}`;
    default:
      return message.event;
  }
}

/** `mark` in the corpus is any mark. */
function fits(said: string, verdict: string): boolean {
  return said === verdict || (verdict === 'mark' && said.startsWith('mark:'));
}

function modelVerdict(event: HeardEvent): string {
  if (event.kind === 'audio') return `audio:${event.pcm.length}`;
  if (event.kind === 'goAway') return `goAway:${event.timeLeftMs}`;
  return event.kind;
}

function table(entries: readonly CorpusEntry[]): [string, CorpusEntry][] {
  return entries.map((entry) => [`${entry.place} (${entry.verdict.slice(0, 60)})`, entry]);
}

const begun = [...readCorpus('carrier-media.txt'), ...readCorpus('carrier-control.txt')];
const spoken = [...readCorpus('model-speech.txt'), ...readCorpus('model-control.txt')];

describe('a hostile message of the carrier', () => {
  it.each(table(readCorpus('carrier-start.txt')))(
    'is judged right before start: %s',
    (_, { verdict, data }) => {
      expect(carrierVerdict(parseCarrierMessage(data, undefined))).toBe(verdict);
    },
  );

  it.each(table(begun))('is judged right after start: %s', (_, { verdict, data }) => {
    const said = carrierVerdict(parseCarrierMessage(data, SID));
    expect(fits(said, verdict), `${said.slice(0, 80)} is ${verdict}`).toBe(true);
    if (reader.read(data, Buffer.from(SID))) expect(`media:${reader.mulaw.length}`).toBe(verdict);
  });

  it('never gets past the socket, before start or after it', async () => {
    const door = new CarrierDoor(NO_LISTENER);
    const wires: Wire[] = [];
    for (const { data } of [...readCorpus('carrier-start.txt'), ...begun]) {
      const fresh = door.dial();
      fresh.feed(wireFrame(data));
      const { wire } = await door.open();
      wire.feed(wireFrame(data));
      wires.push(fresh, wire);
      await turn();
    }
    await door.shut(wires);
    expect(door.clock.pendingTimers).toBe(0);
  });
});

describe('a hostile message of the model', () => {
  it.each(table(spoken))('is heard as far as it makes sense: %s', (_, { verdict, data }) => {
    const line = new ModelLine();
    line.receive(data.toString('utf8'));
    const oddities = line.oddities.map((oddity) => `!${oddity}`);
    const heard = [...oddities, ...line.listener.events.map(modelVerdict)];
    expect(heard.join(',') || '-').toBe(verdict);
  });
});
