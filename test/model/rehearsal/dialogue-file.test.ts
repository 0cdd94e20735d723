import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { REHEARSAL_DIALOGUE_MAX_CHARS } from '../../../src/model/rehearsal/rehearsal-limits.js';
import { type Dialogue, parseDialogue, readDialogue } from '../../../src/model/rehearsal/dialogue.js';
import { MISBEHAVIOURS } from '../../../src/model/rehearsal/misbehaviour.js';
import { MODEL_PROFILES } from '../../../src/model/rehearsal/model-profile.js';
import { startRehearsalService } from '../../../src/model/rehearsal/rehearsal-service.js';
import { silentLog } from '../../../src/observe/log.js';
import { namedRows } from '../../tidy/document-rules.js';
import { callerSound } from './live-wire.js';
import { VirtualClock } from '../../../src/replay/virtual-clock.js';
import { connectClient, count, sendSound, until } from './rehearsal-client.js';
import { saidBy, Stage, toneSynthesizer } from './rehearsal-stage.js';

const least = {
  disclosure: 'I rehearse.',
  turns: [{ say: 'One.' }],
  interruptions: [{ say: 'Stopped.' }],
  otherText: { say: 'Other.' },
};

describe('a dialogue file', () => {
  it('needs only what every conversation needs', () => {
    expect(parseDialogue(least, 'x.json').turns).toEqual([{ say: 'One.' }]);
  });

  it.each([
    [{ turns: [{}] }, /turns\.0: needs one of say, call, calls, misbehave, messages/],
    [{ turns: [{ hears: 'x', thought: 'y' }] }, /turns\.0: needs one of/],
    [{ texts: [{ say: 'x' }] }, /texts\.0: needs either contains or matches/],
    [{ texts: [{ say: 'x', contains: 'a', matches: 'b' }] }, /texts\.0: needs either/],
    [{ texts: [{ say: 'x', matches: '(' }] }, /texts\.0\.matches: is not a regular expression/],
    [{ keys: [{ say: 'x', keys: '12x' }] }, /keys\.0\.keys: needs keys out of/],
    [{ profile: '4.0' }, /profile/],
    [{ profile: { like: '3.8', tools: 1 } }, /profile/],
    [{ turns: [{ say: 'x', misbehave: [{ do: 'explode' }] }] }, /turns\.0\.misbehave\.0\.do/],
    [{ turns: [{ misbehave: [{ do: 'close', code: 1002 }] }] }, /turns\.0\.misbehave\.0\.code/],
    [{ turns: [{ misbehave: [{ do: 'stutter', at: 'start' }] }] }, /turns\.0\.misbehave\.0.*at/],
    [{ chaos: { seed: 7, rate: 2 } }, /chaos\.rate/],
    [
      { turns: [{ messages: [{ message: { serverContents: {} } }] }] },
      /turns\.0\.messages\.0\.message.*serverContents/,
    ],
    [{ turns: [{ messages: [{ message: {} }] }] }, /turns\.0\.messages\.0\.message: needs a key/],
    [{ turns: [{ messages: [{ message: { goAway: 5 } }] }] }, /turns\.0\.messages\.0\.message\.goAway/],
    [{ turns: [{ messages: [{ message: 'goAway' }] }] }, /turns\.0\.messages\.0\.message/],
    [{ frames: 'none' }, /frames/],
    [{ silences: [{ say: 'x' }] }, /silences\.0\.afterSeconds/],
    [{ results: [{ of: 'f', say: 'x', where: { a: {} } }] }, /results\.0\.where\.a/],
    [{ setup: { misbehave: [{ do: 'stutter' }] } }, /setup\.misbehave\.0\.do/],
    [{ setup: { from: 2 } }, /setup: needs one of delayMs, misbehave/],
    [{ setup: { delayMs: 10_001 } }, /setup\.delayMs/],
    [{ resumption: {} }, /resumption: needs one of handles, refuse, misbehave/],
    [{ resumption: { refuse: 1002 } }, /resumption\.refuse/],
  ])('is refused with place and reason: %j', (change, reason) => {
    expect(() => parseDialogue({ ...least, ...change }, 'desk.rehearsal.json')).toThrow(reason);
    expect(() => parseDialogue({ ...least, ...change }, 'desk.rehearsal.json')).toThrow(
      /^desk\.rehearsal\.json /,
    );
  });

  it('is read by its path, with the name and the reason where it cannot be', () => {
    const folder = mkdtempSync(join(tmpdir(), 'dialogue-'));
    const path = join(folder, 'desk.rehearsal.json');
    writeFileSync(path, `\uFEFF${JSON.stringify(least)}`);
    expect(readDialogue(path).disclosure).toBe('I rehearse.');
    writeFileSync(path, '{ "turns": ');
    expect(() => readDialogue(path)).toThrow(/^desk\.rehearsal\.json cannot be read: .*JSON/);
    writeFileSync(path, ' '.repeat(REHEARSAL_DIALOGUE_MAX_CHARS + 1));
    expect(() => readDialogue(path)).toThrow(/longer than/);
    rmSync(folder, { recursive: true });
    expect(() => readDialogue(path)).toThrow(/cannot be read: ENOENT/);
  });
});

describe('docs/rehearsal.md', () => {
  const text = readFileSync(new URL('../../../docs/rehearsal.md', import.meta.url), 'utf8');

  it('shows a dialogue that is one', () => {
    const [, json = ''] = /```json\n([\s\S]*?)```/.exec(text) ?? [];
    expect(() => parseDialogue(JSON.parse(json), 'docs/rehearsal.md')).not.toThrow();
  });

  it('lists every misbehaviour and every profile', () => {
    const names = namedRows({ path: 'docs/rehearsal.md', text }).flatMap(({ names: [name = ''] }) => name);
    expect(names).toEqual(expect.arrayContaining([...MISBEHAVIOURS, ...Object.keys(MODEL_PROFILES)]));
  });
});

describe('what a dialogue answers to', () => {
  let stage: Stage;
  afterEach(() => stage.close());

  it('is a text that an expression fits, whose groups it can speak', async () => {
    stage = await Stage.open({
      texts: [{ matches: 'my name is (?<name>\\p{L}+)', say: 'Hello {name}, {nothing}.' }],
    });
    const client = await stage.connect();
    expect(saidBy(await stage.say(client, 'MY NAME IS Ada.'))).toBe('Hello Ada, {nothing}.');
    client.session.close();
  });

  it('is the caller’s silence, one line after the other, anew when something happened', async () => {
    const silences = [
      { afterSeconds: 10, say: 'Hello?' },
      { afterSeconds: 5, say: 'Goodbye.' },
    ];
    stage = await Stage.open({ silences });
    const client = await stage.connect();
    const passes = async (ms: number) => {
      const endMs = stage.clock.nowMs() + ms;
      await stage.until(() => stage.clock.nowMs() >= endMs, 50);
    };
    await passes(9_000);
    expect(client.messages).toHaveLength(1);
    await passes(60_000);
    expect(saidBy(client.messages)).toBe('Hello?I rehearse. Goodbye.'.replace('I rehearse. ', ''));
    await stage.say(client, 'word for word: "Yes."');
    await passes(60_000);
    expect(saidBy(client.messages)).toBe('Hello?Goodbye.Yes.Hello?Goodbye.');
    client.session.close();
  });

  it('writes down what the caller is said to have said, in fragments', async () => {
    stage = await Stage.open({ turns: [{ hears: 'Where is my order, please?', say: 'Here.' }] });
    const client = await stage.connect();
    sendSound(client.session, callerSound('order-question', 26_000, 31_500));
    await stage.until(() => count(client.messages, 'turnComplete') === 1);
    const heard = client.messages.flatMap(
      ({ serverContent }) => serverContent?.inputTranscription?.text ?? [],
    );
    expect(heard.length).toBeGreaterThan(2);
    expect(heard.join('')).toBe('Where is my order, please?');
    client.session.close();
  });
});

describe('the dialogues of a service', () => {
  it('are picked by the agent’s name in the model’s, and the default for every other', async () => {
    const clock = new VirtualClock();
    const saying = (say: string): Dialogue => parseDialogue({ ...least, otherText: { say } }, 'x.json');
    const service = await startRehearsalService({
      clock,
      log: silentLog,
      synthesizer: toneSynthesizer,
      dialogue: saying('The default.'),
      dialogues: new Map([
        ['desk', saying('The desk.')],
        ['sales-desk', saying('The sales desk.')],
      ]),
    });
    const models = [
      'rehearsal-desk',
      'rehearsal-sales-desk',
      'rehearsal-nobody',
      'rehearsal',
      'gemini-3.8-live',
    ];
    const said: string[] = [];
    for (const model of models) {
      const { session, messages } = await connectClient(service.url, {}, model);
      session.sendRealtimeInput({ text: 'Hello?' });
      await until(clock, () => count(messages, 'turnComplete') === 1);
      said.push(saidBy(messages));
      session.close();
    }
    const other = 'The default.';
    expect(said).toEqual(['The desk.', 'The sales desk.', other, other, other]);
    await service.close();
  });
});
