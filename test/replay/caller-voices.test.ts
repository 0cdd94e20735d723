import { readdir, readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { afterAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/clock.js';
import { readDialogue } from '../../src/model/rehearsal/dialogue.js';
import { RehearsalConnection } from '../../src/model/rehearsal/rehearsal-connection.js';
import { ResumptionHandles } from '../../src/model/rehearsal/resumption-handles.js';
import { SeededRandom } from '../../src/model/rehearsal/seeded-random.js';
import { sentences } from '../../src/model/rehearsal/sentences.js';
import { activeLevelDb, fromPcm16, resample, toPcm16 } from '../../src/model/rehearsal/speech-sound.mjs';
import { FliteSynthesizer } from '../../src/model/rehearsal/speech-synthesizer.js';
import { silentLog } from '../../src/observe/log.js';
import { callerScripts } from '../../src/replay/caller-voices.js';
import { VirtualClock } from '../../src/replay/virtual-clock.js';

const { WaveFile } = createRequire(import.meta.url)('wavefile') as typeof import('wavefile');
const folder = new URL('../../fixtures/callers/', import.meta.url);
const dialogue = readDialogue();
const synthesizer = new FliteSynthesizer({ clock: systemClock, log: silentLog });
afterAll(() => synthesizer.close());

const files = callerScripts(dialogue).flatMap(({ name }) => [name, `${name}-noisy`]);
const greeting =
  'Hello, you have reached Harbour Goods. I am an automated assistant. How can I help you with your order today?';

async function readCaller(name: string): Promise<{ fmt: { sampleRate: number }; pcm: Int16Array }> {
  const wav = new WaveFile(await readFile(new URL(`${name}.wav`, folder)));
  const fmt = wav.fmt as { numChannels: number; sampleRate: number; bitsPerSample: number };
  expect(fmt).toMatchObject({ numChannels: 1, sampleRate: 8_000, bitsPerSample: 16 });
  return { fmt, pcm: Int16Array.from(wav.getSamples(false) as unknown as ArrayLike<number>) };
}

/** What the model says and hears while the file is played to it, each as one line. */
async function conversationWith(name: string): Promise<string[]> {
  const { pcm } = await readCaller(name);
  const replies = [...dialogue.turns, ...dialogue.interruptions].map(({ say }) => say);
  const said = [greeting, dialogue.disclosure, ...replies];
  for (const sentence of said.flatMap(sentences)) await synthesizer.speak('slt', sentence);
  const lines: string[] = [];
  const clock = new VirtualClock();
  let words = '';
  const connection = new RehearsalConnection({
    clock,
    log: silentLog,
    chooseDialogue: () => ({ dialogue, connection: 1, takesAnySetup: true }),
    synthesizer,
    random: new SeededRandom(1),
    handles: new ResumptionHandles(clock),
    sessionId: 'session',
    isOpen: () => true,
    bufferedAmount: () => 0,
    close: (_, reason) => void lines.push(`closed: ${reason}`),
    send: (message) => {
      const { serverContent, toolCall } = message as {
        serverContent?: Record<string, { text: string } | undefined>;
        toolCall?: { functionCalls: [{ id: string; name: string }] };
      };
      words += serverContent?.['outputTranscription']?.text ?? '';
      if (serverContent?.['inputTranscription']) lines.push('caller');
      if (serverContent?.['interrupted']) lines.push('interrupted');
      if (serverContent?.['turnComplete']) {
        if (lines.at(-1) !== 'interrupted') lines.push(words);
        words = '';
      }
      if (toolCall === undefined) return;
      const [{ id, name: functionName }] = toolCall.functionCalls;
      lines.push(functionName);
      connection.receive(
        JSON.stringify({ toolResponse: { functionResponses: [{ id, name: functionName }] } }),
      );
    },
  });
  const send = (frame: object) => connection.receive(JSON.stringify(frame));
  const tools = [{ functionDeclarations: [{ name: 'end_call' }] }];
  send({ setup: { model: 'm', tools, inputAudioTranscription: {}, outputAudioTranscription: {} } });
  send({ realtimeInput: { text: `Say this greeting now, word for word: ${JSON.stringify(greeting)}` } });
  const bytes = Buffer.from(toPcm16(resample(fromPcm16(pcm), 2, 1)).buffer);
  for (let at = 0; at < bytes.length; at += 640) {
    const data = bytes.subarray(at, at + 640).toString('base64');
    send({ realtimeInput: { audio: { mimeType: 'audio/pcm;rate=16000', data } } });
    clock.advance(20);
    // The synthesizer's cached answer is a promise.
    await new Promise((resolve) => setImmediate(resolve));
  }
  connection.stop();
  return lines;
}

describe('the shipped callers', () => {
  it('are all there, and small', async () => {
    const shipped = (await readdir(folder)).filter((name) => name.endsWith('.wav'));
    expect(shipped.sort()).toEqual(files.map((name) => `${name}.wav`).sort());
  });

  it.each(files)('%s is 8 kHz mono at a telephone level', async (name) => {
    const { pcm } = await readCaller(name);
    const noiseDb = activeLevelDb(fromPcm16(pcm.subarray(0, 8_000)), 8_000);
    const noisy = name.endsWith('-noisy');
    expect(noiseDb).toBeGreaterThan(noisy ? -36 : -64);
    expect(noiseDb).toBeLessThan(noisy ? -34 : -60);
    // Tenths of a second, the loudest first: vowels, where there is speech.
    const levels = Array.from({ length: Math.floor(pcm.length / 800) }, (_, n) =>
      activeLevelDb(fromPcm16(pcm.subarray(800 * n, 800 * (n + 1))), 8_000),
    ).sort((a, b) => b - a);
    const loudDb = levels[4] ?? -Infinity;
    if (name.startsWith('silent')) expect(loudDb - noiseDb).toBeLessThan(2);
    else expect(Math.abs(loudDb + 17)).toBeLessThan(4);
  });

  const [hello, longAnswer, goodbye] = dialogue.turns.map(({ say }) => say);
  const [stopped, stoppedAgain] = dialogue.interruptions.map(({ say }) => say);

  it.each(['order-question', 'order-question-noisy'])('%s talks in turns to the end', async (name) => {
    expect(await conversationWith(name)).toEqual([
      greeting,
      'caller',
      `${dialogue.disclosure} ${hello}`,
      'caller',
      longAnswer,
      'caller',
      'end_call',
      goodbye,
    ]);
  });

  // An answer that is cut off has no line here; had it been cut before the disclosure was heard, the next would begin
  // with it again.
  it.each(['barge-in', 'barge-in-noisy'])('%s hears the disclosure and cuts in twice', async (name) => {
    expect(await conversationWith(name)).toEqual([
      greeting,
      'caller',
      'interrupted',
      'caller',
      stopped,
      'caller',
      'interrupted',
      'caller',
      stoppedAgain,
      'caller',
      'end_call',
      goodbye,
    ]);
  });

  it.each(['short-answers', 'short-answers-noisy'])('%s is heard at every word', async (name) => {
    const lines = await conversationWith(name);
    expect(lines.filter((line) => line === 'caller')).toHaveLength(3);
    expect(lines.filter((line) => line === 'interrupted')).toHaveLength(1);
  });

  it.each(['silent', 'silent-noisy'])('%s never takes a turn', async (name) => {
    expect(await conversationWith(name)).toEqual([greeting]);
  });
});
