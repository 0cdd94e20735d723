import type { LiveServerMessage } from '@google/genai';
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { said as saidLine, SAID_BEFORE } from '../../../src/call/line-texts.js';
import { systemClock } from '../../../src/clock.js';
import { readDialogue } from '../../../src/model/rehearsal/dialogue.js';
import {
  type RehearsalService,
  startRehearsalService,
} from '../../../src/model/rehearsal/rehearsal-service.js';
import { sentences } from '../../../src/model/rehearsal/sentences.js';
import {
  FliteSynthesizer,
  SPEECH_RATE_HZ,
  type SpeechSynthesizer,
} from '../../../src/model/rehearsal/speech-synthesizer.js';
import { silentLog } from '../../../src/observe/log.js';
import { VirtualClock } from '../../../src/replay/virtual-clock.js';
import {
  connectClient,
  count,
  eventually,
  type RehearsalClient,
  spokenWords,
  until,
} from './rehearsal-client.js';

const flite = new FliteSynthesizer({ clock: systemClock, log: silentLog });
afterAll(() => flite.close());

const dialogue = readDialogue();
const { disclosure } = dialogue;
const silent = 'The caller has said nothing for 15 seconds. Ask whether they are still there.';
const silentAnswer = dialogue.texts.find(({ contains = '' }) => silent.includes(contains))?.say ?? '';

/** Pieces of text that the synthesizer refuses to speak. */
const unspeakable = new Set<string>();
const synthesizer: SpeechSynthesizer = {
  speak: (voice, text) =>
    unspeakable.has(text) ? Promise.reject(new Error('no voice')) : flite.speak(voice, text),
  close: () => Promise.resolve(),
};

let clock: VirtualClock;
let service: RehearsalService;
beforeEach(async () => {
  unspeakable.clear();
  clock = new VirtualClock();
  service = await startRehearsalService({ clock, log: silentLog, synthesizer });
});
afterEach(async () => {
  await service.close();
});

function keyText(key: string): string {
  return `The caller pressed the key "${key}" on the phone.`;
}

/** What is said to each text when each answer is heard to its end. */
async function answers({ session, messages }: RehearsalClient, texts: readonly string[]): Promise<string[]> {
  const said: string[] = [];
  for (const text of texts) {
    const from = messages.length;
    session.sendRealtimeInput({ text });
    await until(clock, () => count(messages.slice(from), 'turnComplete') === 1, 50);
    said.push(spokenWords(messages.slice(from)));
  }
  return said;
}

/** What is said to a key that cuts off the answer being given. */
async function answerAfterCut({ session, messages }: RehearsalClient): Promise<string> {
  session.sendRealtimeInput({ text: keyText('5') });
  await eventually(() => count(messages, 'interrupted') === 1);
  const from = messages.length;
  await until(clock, () => count(messages.slice(from), 'generationComplete') === 1, 50);
  return spokenWords(messages.slice(from));
}

function lastHandle(messages: readonly LiveServerMessage[]): string {
  const updates = messages.flatMap(({ sessionResumptionUpdate }) => sessionResumptionUpdate ?? []);
  return updates.at(-1)?.newHandle ?? '';
}

async function disclosureMs(): Promise<number> {
  let samples = 0;
  for (const sentence of sentences(disclosure)) samples += (await flite.speak('slt', sentence)).length;
  return (samples / SPEECH_RATE_HZ) * 1_000;
}

describe('the disclosure', () => {
  it('comes behind the greeting, in front of the first answer, and no more', async () => {
    const client = await connectClient(service.url);
    const greeting = 'Say this greeting now, word for word: "Hello."';
    expect(await answers(client, [greeting, keyText('5'), keyText('6'), greeting, silent])).toEqual([
      'Hello.',
      `${disclosure} 5.`,
      '6.',
      'Hello.',
      silentAnswer,
    ]);
    client.session.close();
  });

  it.each([
    ['a key', keyText('#'), dialogue.keys.find(({ keys }) => keys === '#')?.sayWithoutDigits],
    ['silence', silent, silentAnswer],
    ['other text', 'What is the capital of France?', dialogue.otherText.say],
  ])('is heard by a caller who has given only %s', async (_, text, answer) => {
    const client = await connectClient(service.url);
    expect(await answers(client, [text])).toEqual([`${disclosure} ${answer}`]);
    client.session.close();
  });

  it('comes again when it was sent whole and cut off before it was heard whole', async () => {
    const heardAfterMs = await disclosureMs();
    const client = await connectClient(service.url);
    client.session.sendRealtimeInput({ text: silent });
    await until(clock, () => spokenWords(client.messages).length > 0);
    const beganMs = clock.nowMs();
    await until(clock, () => spokenWords(client.messages).startsWith(`${disclosure} `));
    expect(clock.nowMs() - beganMs).toBeLessThan(heardAfterMs - 500);
    clock.advance(heardAfterMs - 500 - (clock.nowMs() - beganMs));
    expect(await answerAfterCut(client)).toBe(`${disclosure} 5.`);
    client.session.close();
  });

  it('does not come again when only the answer behind it was cut off', async () => {
    const heardAfterMs = await disclosureMs();
    const client = await connectClient(service.url);
    client.session.sendRealtimeInput({ text: silent });
    await until(clock, () => count(client.messages, 'generationComplete') === 1);
    clock.advance(heardAfterMs);
    expect(count(client.messages, 'turnComplete')).toBe(0);
    expect(await answerAfterCut(client)).toBe('5.');
    client.session.close();
  });

  it('comes again when it could not be spoken', async () => {
    const client = await connectClient(service.url);
    for (const sentence of sentences(disclosure)) unspeakable.add(sentence);
    expect(await answers(client, [keyText('5')])).toEqual(['5.']);
    unspeakable.clear();
    expect(await answers(client, [keyText('6')])).toEqual([`${disclosure} 6.`]);
    client.session.close();
  });

  it('is not repeated to a caller who is resumed, and is said on every new conversation', async () => {
    const first = await connectClient(service.url, { sessionResumption: {} });
    await answers(first, [keyText('5')]);
    await eventually(() => first.messages.at(-1)?.sessionResumptionUpdate?.resumable === true);
    first.session.close();
    const handle = lastHandle(first.messages);
    const resumed = await connectClient(service.url, { sessionResumption: { handle } });
    expect(await answers(resumed, [keyText('6')])).toEqual(['6.']);
    resumed.session.close();
    const another = await connectClient(service.url);
    expect(await answers(another, [keyText('6')])).toEqual([`${disclosure} 6.`]);
    another.session.close();
  });

  it.each([
    ['heard it', `${disclosure} 5.`, '6.'],
    ['had not heard it to its end', disclosure.slice(0, -6), `${disclosure} 6.`],
  ])('knows a caller who comes back with a fresh session and %s', async (_, heard, answer) => {
    const before = ['Serve.', SAID_BEFORE, saidLine('user', 'Hello?'), saidLine('model', heard)].join('\n');
    const fresh = await connectClient(service.url, { systemInstruction: before });
    expect(await answers(fresh, [keyText('6')])).toEqual([answer]);
    fresh.session.close();
  });

  it('still comes to a caller who is resumed and had not heard it', async () => {
    const first = await connectClient(service.url, { sessionResumption: {} });
    first.session.sendRealtimeInput({ text: silent });
    await until(clock, () => count(first.messages, 'audio') >= 2);
    first.session.sendRealtimeInput({ text: ' ' });
    await eventually(() => count(first.messages, 'turnComplete') === 2);
    await eventually(() => first.messages.at(-1)?.sessionResumptionUpdate?.resumable === true);
    first.session.close();
    const handle = lastHandle(first.messages);
    const resumed = await connectClient(service.url, { sessionResumption: { handle } });
    expect(await answers(resumed, [keyText('6')])).toEqual([`${disclosure} 6.`]);
    resumed.session.close();
  });
});

describe('keys pressed faster than they are answered', () => {
  it('are all collected', async () => {
    const client = await connectClient(service.url);
    for (const key of ['1', '0', '2', '#']) client.session.sendRealtimeInput({ text: keyText(key) });
    await eventually(() => count(client.messages, 'interrupted') === 3);
    await until(clock, () => count(client.messages, 'generationComplete') === 1, 50);
    expect(spokenWords(client.messages)).toContain('order number 1 0 2.');
    client.session.close();
  });
});
