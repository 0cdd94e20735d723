import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ActivityHandling } from '@google/genai';
import { systemClock } from '../../../src/clock.js';
import { readDialogue } from '../../../src/model/rehearsal/dialogue.js';
import {
  type RehearsalService,
  startRehearsalService,
} from '../../../src/model/rehearsal/rehearsal-service.js';
import { fromPcm16, resample, toPcm16 } from '../../../src/model/rehearsal/speech-sound.mjs';
import { FliteSynthesizer, SENTENCE_PAUSE_MS } from '../../../src/model/rehearsal/speech-synthesizer.js';
import { silentLog } from '../../../src/observe/log.js';
import { VirtualClock } from '../../../src/replay/virtual-clock.js';
import {
  chunks,
  connectClient,
  count,
  eventually,
  order,
  sendSound,
  spokenWords,
  until,
} from './rehearsal-client.js';

const synthesizer = new FliteSynthesizer({ clock: systemClock, log: silentLog });
afterAll(() => synthesizer.close());

const dialogue = readDialogue();
const firstAnswer = `${dialogue.disclosure} ${dialogue.turns[0]?.say}`;
const endCall = { functionDeclarations: [{ name: 'end_call', description: 'Hangs up.' }] };

let clock: VirtualClock;
let service: RehearsalService;
beforeEach(async () => {
  clock = new VirtualClock();
  service = await startRehearsalService({ clock, log: silentLog, synthesizer, seed: 7 });
});
afterEach(async () => {
  await service.close();
  if (clock.pendingTimers > 0)
    throw new Error(`${clock.pendingTimers} timers are left after the service closed`);
});

async function callerSound(text: string, silenceSeconds = 1): Promise<Int16Array> {
  const spoken = resample(fromPcm16(await synthesizer.speak('rms', text)), 2, 3);
  const whole = new Float64Array(spoken.length + silenceSeconds * 16_000);
  whole.set(spoken);
  return toPcm16(whole);
}

function greet(session: { sendClientContent(content: object): void }, greeting: string): void {
  const text = `The call has begun. Say this greeting now, word for word: ${JSON.stringify(greeting)}`;
  session.sendClientContent({ turns: [{ role: 'user', parts: [{ text }] }], turnComplete: true });
}

describe('a rehearsal conversation', () => {
  it('speaks a greeting word for word, sound and transcription alike', async () => {
    const { session, messages } = await connectClient(service.url);
    const greeting = 'Hello, you have reached "Harbour Goods". How can I help you?';
    greet(session, greeting);
    await until(clock, () => count(messages, 'turnComplete') === 1);
    expect(order(messages)).toEqual(['audio', 'generationComplete', 'turnComplete']);
    expect(spokenWords(messages)).toBe(greeting);
    const [first, second] = [
      await synthesizer.speak('slt', 'Hello, you have reached "Harbour Goods".'),
      await synthesizer.speak('slt', 'How can I help you?'),
    ];
    const pause = new Int16Array(SENTENCE_PAUSE_MS * 24);
    const expected = Buffer.concat([first, pause, second].map((pcm) => new Uint8Array(pcm.buffer)));
    expect(Buffer.concat(chunks(messages)).equals(expected)).toBe(true);
    session.close();
  });

  it('sends faster than it is heard, in uneven chunks, and completes the turn when it has been heard', async () => {
    const { session, messages } = await connectClient(service.url);
    greet(
      session,
      'One moment please. I am looking for your order, and it may take a little while. Here it is.',
    );
    await until(clock, () => count(messages, 'audio') >= 1, 1);
    const beganMs = clock.nowMs();
    await until(clock, () => count(messages, 'generationComplete') === 1, 5);
    const sentMs = clock.nowMs() - beganMs;
    await until(clock, () => count(messages, 'turnComplete') === 1, 5);
    const heardMs = clock.nowMs() - beganMs;
    const sizes = chunks(messages).map(({ length }) => length);
    const soundMs = sizes.reduce((sum, size) => sum + size, 0) / 48;
    expect(soundMs).toBeGreaterThan(4_000);
    expect(heardMs).toBeGreaterThanOrEqual(soundMs - 5);
    expect(sentMs).toBeLessThan(heardMs);
    expect(new Set(sizes).size).toBeGreaterThan(5);
    expect(sizes.some((size) => size % 2 === 1)).toBe(true);
    expect(Math.max(...sizes)).toBeLessThanOrEqual(15_360);
    const words = messages.flatMap(({ serverContent }) => serverContent?.outputTranscription?.text ?? []);
    expect(words.length).toBeGreaterThan(5);
    session.close();
  });

  it('answers when the caller has finished speaking, and says honestly that it cannot transcribe', async () => {
    const { session, messages } = await connectClient(service.url);
    sendSound(session, await callerSound('Hello, I have a question about my order.'));
    await until(clock, () => count(messages, 'turnComplete') === 1);
    expect(order(messages)).toEqual(['inputTranscription', 'audio', 'generationComplete', 'turnComplete']);
    const heard = messages.flatMap(({ serverContent }) => serverContent?.inputTranscription?.text ?? []);
    expect(heard).toHaveLength(1);
    expect(heard[0]).toMatch(/^\(speech, [12]\.\d s\)$/);
    expect(spokenWords(messages)).toBe(firstAnswer);
    session.close();
  });

  it('reports usage with every turn: the whole context again, and the speech', async () => {
    const { session, messages } = await connectClient(service.url);
    greet(session, 'First.');
    await until(clock, () => count(messages, 'turnComplete') === 1);
    greet(session, 'Second.');
    await until(clock, () => count(messages, 'turnComplete') === 2);
    const [first, second] = messages.flatMap(({ usageMetadata }) => usageMetadata ?? []);
    expect(first?.responseTokenCount).toBeGreaterThan(5);
    expect(second?.promptTokenCount).toBeGreaterThan(
      (first?.promptTokenCount ?? 0) + (first?.responseTokenCount ?? 0),
    );
    expect(second?.totalTokenCount).toBe((second?.promptTokenCount ?? 0) + (second?.responseTokenCount ?? 0));
    session.close();
  });
});

describe('cutting in on the rehearsal model', () => {
  it('is answered by interrupted and turnComplete alone, and then by words of its own', async () => {
    const { session, messages } = await connectClient(service.url);
    sendSound(session, await callerSound('Hello there.'));
    await until(clock, () => count(messages, 'audio') >= 3);
    sendSound(session, await callerSound('Wait, stop, I have another question.'));
    await eventually(() => count(messages, 'interrupted') === 1);
    const cut = messages.findIndex(({ serverContent }) => serverContent?.interrupted);
    await until(clock, () => count(messages, 'turnComplete') === 2);
    expect(order(messages.slice(0, cut))).toEqual(['inputTranscription', 'audio']);
    expect(order(messages.slice(cut))).toEqual([
      'interrupted',
      'turnComplete',
      'inputTranscription',
      'audio',
      'generationComplete',
      'turnComplete',
    ]);
    const { disclosure, interruptions } = dialogue;
    expect(spokenWords(messages.slice(cut))).toBe(`${disclosure} ${interruptions[0]?.say}`);
    session.close();
  });

  it('also works when everything is generated but not yet heard', async () => {
    const { session, messages } = await connectClient(service.url);
    greet(session, 'This is a greeting that takes some seconds to be heard by anybody.');
    await until(clock, () => count(messages, 'generationComplete') === 1);
    sendSound(session, await callerSound('Wait, stop.'));
    await eventually(() => count(messages, 'turnComplete') === 1);
    expect(order(messages).slice(0, 4)).toEqual([
      'audio',
      'generationComplete',
      'interrupted',
      'turnComplete',
    ]);
    session.close();
  });

  it('is not done by line noise', async () => {
    const { session, messages } = await connectClient(service.url);
    greet(session, 'A greeting.');
    await until(clock, () => count(messages, 'audio') >= 1);
    const noise = Int16Array.from({ length: 32_000 }, (_, n) => ((n * 7919) % 611) - 305);
    sendSound(session, noise);
    await until(clock, () => count(messages, 'turnComplete') === 1);
    expect(order(messages)).toEqual(['audio', 'generationComplete', 'turnComplete']);
    session.close();
  });

  it('does not happen with NO_INTERRUPTION', async () => {
    const { session, messages } = await connectClient(service.url, {
      realtimeInputConfig: { activityHandling: ActivityHandling.NO_INTERRUPTION },
    });
    greet(session, 'A greeting that goes on.');
    await until(clock, () => count(messages, 'audio') >= 1);
    sendSound(session, await callerSound('Wait, stop.'));
    await until(clock, () => count(messages, 'turnComplete') === 1);
    expect(order(messages)).not.toContain('interrupted');
    session.close();
  });

  it('is done by typed text, which is answered', async () => {
    const { session, messages } = await connectClient(service.url);
    greet(session, 'A greeting that goes on for a while, so that a key can cut it.');
    await until(clock, () => count(messages, 'audio') >= 2);
    const cut = messages.length;
    session.sendRealtimeInput({ text: 'The caller pressed the key "5" on the phone.' });
    await until(clock, () => count(messages, 'turnComplete') === 2);
    const after = messages.slice(cut);
    expect(order(after).slice(-5)).toEqual([
      'interrupted',
      'turnComplete',
      'audio',
      'generationComplete',
      'turnComplete',
    ]);
    expect(spokenWords(after)).toMatch(/5\.$/);
    session.close();
  });

  it('brings a turn again of which nothing was said', async () => {
    const { session, messages } = await connectClient(service.url);
    sendSound(session, await callerSound('Hello there.'));
    await eventually(() => count(messages, 'inputTranscription') === 1);
    sendSound(session, await callerSound('And one more thing.'));
    await eventually(() => count(messages, 'inputTranscription') === 2);
    await until(clock, () => count(messages, 'generationComplete') === 1);
    expect(order(messages).slice(0, 3)).toEqual(['inputTranscription', 'interrupted', 'turnComplete']);
    expect(spokenWords(messages)).toBe(firstAnswer);
    session.close();
  });
});

describe('typed text', () => {
  it('is kept until turnComplete, stops the speech meanwhile, and may be empty', async () => {
    const { session, messages } = await connectClient(service.url);
    greet(session, 'A greeting.');
    await until(clock, () => count(messages, 'audio') >= 1);
    const pieces = ['Say this word', 'for word: "in two pieces"'];
    session.sendClientContent({
      turns: [{ role: 'user', parts: [{ text: pieces[0]! }] }],
      turnComplete: false,
    });
    await eventually(() => count(messages, 'interrupted') === 1);
    const cut = messages.length;
    session.sendClientContent({
      turns: [{ role: 'user', parts: [{ text: pieces[1]! }] }],
      turnComplete: true,
    });
    await until(clock, () => count(messages, 'generationComplete') === 1);
    expect(spokenWords(messages.slice(cut))).toBe('in two pieces');
    await until(clock, () => count(messages, 'turnComplete') === 2);
    session.sendClientContent({ turnComplete: true });
    session.sendRealtimeInput({ text: '  \n' });
    await eventually(() => count(messages, 'turnComplete') === 4);
    expect(count(messages, 'generationComplete')).toBe(1);
    session.close();
  });
});

describe('the end of the rehearsal', () => {
  async function goodbye(tools: object[]) {
    const client = await connectClient(service.url, { tools });
    for (const [index, { say }] of dialogue.turns.entries()) {
      const from = client.messages.length;
      sendSound(client.session, await callerSound('Yes, thank you.'));
      const isLast = index === dialogue.turns.length - 1;
      const awaited = isLast && tools.length > 0 ? 'toolCall' : 'turnComplete';
      await until(clock, () => count(client.messages.slice(from), awaited) === 1, 50);
      expect(spokenWords(client.messages.slice(from))).toBe(index === 0 ? firstAnswer : say);
    }
    return client;
  }

  it('says goodbye, calls end_call, waits for the response, and completes without another word', async () => {
    const { session, messages } = await goodbye([endCall]);
    const [functionCall] = messages.at(-1)?.toolCall?.functionCalls ?? [];
    expect(functionCall).toMatchObject({ name: 'end_call', args: {} });
    const from = messages.length;
    session.sendToolResponse({ functionResponses: [{ id: 'another', name: 'end_call', response: {} }] });
    session.sendToolResponse({
      functionResponses: [{ id: functionCall!.id!, name: 'end_call', response: { status: 'ending' } }],
    });
    await until(clock, () => count(messages, 'turnComplete') === dialogue.turns.length);
    expect(order(messages.slice(from))).toEqual(['generationComplete', 'turnComplete']);
    session.close();
  });

  it('cancels the call when the caller cuts in before the response', async () => {
    const { session, messages } = await goodbye([endCall]);
    const id = messages.at(-1)?.toolCall?.functionCalls?.[0]?.id;
    const from = messages.length;
    sendSound(session, await callerSound('Oh, one more thing.'));
    await eventually(() => count(messages.slice(from), 'turnComplete') === 1);
    expect(order(messages.slice(from)).slice(0, 3)).toEqual([
      'toolCallCancellation',
      'interrupted',
      'turnComplete',
    ]);
    expect(messages.flatMap(({ toolCallCancellation }) => toolCallCancellation?.ids ?? [])).toEqual([id]);
    session.close();
  });

  it('goes on when no response ever comes', async () => {
    const { session, messages } = await goodbye([endCall]);
    await until(clock, () => count(messages, 'turnComplete') === dialogue.turns.length, 500);
    expect(count(messages, 'generationComplete')).toBe(dialogue.turns.length);
    session.close();
  });

  it('calls no function that was not declared', async () => {
    const { session, messages } = await goodbye([]);
    expect(order(messages)).not.toContain('toolCall');
    session.close();
  });
});
