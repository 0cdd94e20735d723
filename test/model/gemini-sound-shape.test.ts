/** Whatever comes in whatever order, the short way through messages of sound tells the listener what the long one tells. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { GeminiAudioDecoder } from '../../src/model/gemini-audio-decoder.js';
import { GeminiSoundShape } from '../../src/model/gemini-sound-shape.js';
import { ModelLine } from '../fuzz/model-line.js';

const base64 = fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes).toString('base64'));
const data = fc.oneof(
  { weight: 4, arbitrary: base64 },
  fc.constantFrom(
    '',
    '=',
    '====',
    'A',
    'AAAA"',
    'AA\\u0041A',
    'AA\\/A',
    'AA\nAA',
    'AAA-',
    'AAAé',
    'QUFB"}}]},"x":{"y":"QUFB',
  ),
);
/** Messages around `data`, written as text, so that spacing, order, repeats and escapes are ours to choose. */
const around = fc.constantFrom<(sound: string) => string>(
  (sound) => message(`{"inlineData":{"mimeType":"audio/pcm;rate=24000","data":"${sound}"}}`),
  (sound) => message(`{"inlineData":{"data":"${sound}","mimeType":"audio/pcm"}}`),
  (sound) => message(`{ "inlineData": {\n "mimeType": "audio/pcm;rate=24000",\n "data": "${sound}"\n} }`),
  (sound) => message(`{"inlineData":{"mimeType":"audio/pcm;rate=16000","data":"${sound}"}}`),
  (sound) => message(`{"inlineData":{"mimeType":"image/png","data":"${sound}"}}`),
  (sound) =>
    message(
      `{"inlineData":{"mimeType":"audio/pcm","data":"QUFB"}},{"inlineData":{"mimeType":"audio/pcm","data":"${sound}"}}`,
    ),
  (sound) =>
    message(`{"thought":true,"text":"${sound}","inlineData":{"mimeType":"audio/pcm","data":"${sound}"}}`),
  (sound) => message(`{"inlineData":{"mimeType":"audio/pcm","data":"${sound}"}}`, ',"turnComplete":true'),
  (sound) =>
    message(
      `{"inlineData":{"mimeType":"audio/pcm","data":"${sound}"}}`,
      '',
      ',"usageMetadata":{"totalTokenCount":3}',
    ),
  (sound) => `{"toolCall":{"functionCalls":[{"id":"1","name":"f","args":{"data":"${sound}"}}]}}`,
  (sound) => `{"serverContent":{"outputTranscription":{"text":"${sound}"}}}`,
  () => '{"serverContent":{"interrupted":true}}',
);

function message(part: string, content = '', top = ''): string {
  return `{"serverContent":{"modelTurn":{"parts":[${part}]}${content}}${top}}`;
}

describe('the short way through messages of sound', () => {
  it('tells what the long way tells', () => {
    fc.assert(
      fc.property(
        fc.array(around, { minLength: 1, maxLength: 3 }),
        fc.array(fc.tuple(fc.nat(), data), { maxLength: 12 }),
        (shapes, sent) => {
          const short = new ModelLine();
          const long = new ModelLine();
          for (const [shape, sound] of sent) {
            const text = shapes[shape % shapes.length]!(sound);
            short.receive(text);
            long.receiveText(Buffer.from(text).toString('utf8'));
          }
          expect(short.listener.events).toEqual(long.listener.events);
          expect(short.oddities).toEqual(long.oddities);
        },
      ),
      { numRuns: 2_000 },
    );
  });

  it('is taken from the second message of a kind on', () => {
    const shape = new GeminiSoundShape(new GeminiAudioDecoder());
    const text = (sound: string): Buffer =>
      Buffer.from(message(`{"inlineData":{"mimeType":"audio/pcm;rate=24000","data":"${sound}"}}`));
    const first = text('AQIDBAUG');
    expect(shape.read(first)).toBeUndefined();
    shape.learn(first, JSON.parse(first.toString()));
    expect(shape.read(text('BwgJ'))).toEqual(Buffer.from([7, 8, 9]));
    expect(shape.read(text('Bwg"'))).toBeUndefined();
    expect(shape.read(Buffer.from(`${text('BwgJ').toString()} `))).toBeUndefined();
  });
});
