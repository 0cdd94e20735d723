import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { WEB_IMAGE_MAX_BYTES } from '../../src/limits.js';
import { readClientMessage } from '../../src/web/client-message.js';
import { SOUND_FORMATS } from '../../src/web/sound-format.js';

const read = (value: unknown) => readClientMessage(JSON.stringify(value));
const start = { type: 'start', userId: 'u', sessionId: 's' };

describe('what a web client may send', () => {
  it('is a start, with one of the formats or none', () => {
    expect(read(start)).toEqual({ ...start, audio: undefined });
    for (const audio of SOUND_FORMATS) expect(read({ ...start, audio })).toMatchObject({ audio });
    expect(read({ ...start, audio: 'AUDIO/PCM; rate=16000' })).toMatchObject({
      audio: 'audio/pcm;rate=16000',
    });
  });

  it('is text, sound, a picture, and the end', () => {
    expect(read({ type: 'text', text: 'Hi' })).toEqual({ type: 'text', text: 'Hi' });
    expect(read({ type: 'audio', data: 'AQID' })).toEqual({ type: 'audio', sound: Buffer.of(1, 2, 3) });
    expect(read({ type: 'image', mimeType: 'image/png', data: '/w==' })).toEqual({
      type: 'image',
      mimeType: 'image/png',
      image: Buffer.of(255),
    });
    expect(read({ type: 'end' })).toEqual({ type: 'end' });
  });

  it.each([
    [{ ...start, audio: 'audio/opus' }, 'audio must be one of'],
    [{ ...start, audio: { format: 'pcm16' } }, 'audio must be one of'],
    [{ ...start, userId: '' }, 'userId'],
    [{ ...start, sessionId: 7 }, 'sessionId'],
    [{ ...start, token: 'x' }, 'a field that it cannot have'],
    [{ type: 'text', text: ' ' }, 'text'],
    [{ type: 'text', text: 'x'.repeat(20_001) }, 'text'],
    [{ type: 'audio', data: 'AQI' }, 'base64'],
    [{ type: 'audio', data: 'AQ_D' }, 'base64'],
    [{ type: 'audio', data: '' }, 'data'],
    [{ type: 'image', mimeType: 'image/svg+xml', data: 'AQID' }, 'mimeType'],
    [{ type: 'image', mimeType: 'image/png', data: 'AAAA'.repeat(WEB_IMAGE_MAX_BYTES / 3 + 1) }, 'data'],
    [{ type: 'delta' }, 'type must be'],
    [{}, 'type must be'],
    [[], 'type must be'],
    [null, 'type must be'],
  ])('refuses %j and names what is wrong', (value, named) => {
    const fault = read(value);
    expect(fault.type).toBe('fault');
    expect('message' in fault && fault.message).toContain(named);
  });

  it('never throws, and never repeats what was sent', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.json()), (text) => {
        expect(readClientMessage(text).type).toBeTypeOf('string');
      }),
    );
    const fault = read({ type: 'secret-word', [`__proto__`]: 1 });
    expect(JSON.stringify(fault)).not.toContain('secret-word');
  });
});
