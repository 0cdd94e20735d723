/** The whole way with the embedded model: greeted, answered by typing, and heard. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { soundMs } from '../../src/web/sound-format.js';
import { LiveServer, until } from './live-server.js';

let running: LiveServer | undefined;
afterEach(async () => {
  await running?.close();
  running = undefined;
});

describe('a conversation with the rehearsal model', () => {
  it('greets, is cut by typing, answers, and ends', async () => {
    running = await LiveServer.start({ GEMINI_API_KEY: '', GOOGLE_GEMINI_BASE_URL: '', MODEL: 'rehearsal' });
    const { live, sound, page, state } = running.connect({ audio: 'audio/pcm;rate=24000' });
    await until('some of the greeting', () => sound.reduce((sum, { length }) => sum + length, 0) > 48 * 500);
    live.sendText('Where is my order?');
    await until('the question', () => page().includes('user: Where is my order?'));
    await until('an answer', () => state().messages.at(-1)?.role === 'model' && page().length === 3);
    expect(
      state()
        .messages.map(({ status }) => status)
        .slice(0, 2),
    ).toEqual(['cut', 'done']);
    const before = sound.length;
    await until('its sound', () => sound.length > before);
    expect(soundMs('audio/pcm;rate=24000', sound[0]!.length) % 20).toBe(0);
    live.end();
    expect(await live.ended).toMatchObject({ reason: 'finished' });
    await running.nothingLeft();
  });

  it('is told of a turn that the model refuses, is not left without a word, and goes on', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'earshot-refusing-'));
    writeFileSync(
      join(folder, 'desk.mjs'),
      "import { defineAgent } from 'earshot';\nexport default defineAgent({ name: 'desk', instruction: 'Serve.', greeting: 'Hello.' });\n",
    );
    const dialogue = {
      disclosure: 'I rehearse.',
      turns: [{ say: 'One.' }],
      interruptions: [{ say: 'Stopped.' }],
      texts: [
        { contains: 'forbidden', misbehave: [{ do: 'emptyTurn', reason: 'PROHIBITED_INPUT_CONTENT' }] },
        { contains: 'could not be given', say: 'I cannot answer that.' },
      ],
      otherText: { say: 'A normal turn.' },
    };
    writeFileSync(join(folder, 'desk.rehearsal.json'), JSON.stringify(dialogue));
    running = await LiveServer.start({
      GEMINI_API_KEY: '',
      GOOGLE_GEMINI_BASE_URL: '',
      MODEL: 'rehearsal',
      AGENT: join(folder, 'desk.mjs'),
    });
    const { live, frames, state } = running.connect();
    const told = (): string[] =>
      frames.flatMap((frame) => (frame.type === 'done' ? [frame.text.trim()] : []));
    await until('the greeting', () => told().includes('Hello.'));
    live.sendText('Something forbidden');
    await until('the explanation', () => told().some((text) => text.endsWith('I cannot answer that.')));
    expect(state().failures).toMatchObject([{ code: 'PROHIBITED_INPUT_CONTENT', fatal: false }]);
    live.sendText('Something else');
    await until('a normal turn', () => told().some((text) => text.endsWith('A normal turn.')));
    expect(state().isOver).toBe(false);
    live.end();
    await live.ended;
    await running.nothingLeft();
    rmSync(folder, { recursive: true });
  });
});
