/** The whole way with the embedded model: greeted, answered by typing, and heard. */
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
});
