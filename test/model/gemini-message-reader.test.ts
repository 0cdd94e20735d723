import { describe, expect, it } from 'vitest';
import { GeminiAudioDecoder } from '../../src/model/gemini-audio-decoder.js';
import {
  GeminiMessageReader,
  parseDurationMs,
  type GeminiOddity,
} from '../../src/model/gemini-message-reader.js';
import { RecordingLiveListener } from '../support/recording-live-listener.js';

function readerOf(turnEnd: 'turnComplete' | 'interactionIdle' = 'turnComplete') {
  const listener = new RecordingLiveListener();
  const oddities: GeminiOddity[] = [];
  const reader = new GeminiMessageReader({
    listener,
    turnEnd,
    audioDecoder: new GeminiAudioDecoder(),
    reportOddity: (oddity) => oddities.push(oddity),
  });
  return { reader, listener, oddities };
}

function audioPart(bytes: number[], mimeType: unknown = 'audio/pcm;rate=24000') {
  return { inlineData: { mimeType, data: Buffer.from(bytes).toString('base64') } };
}

/** Each thing a message can hold, in the order in which it must be handled: where it sits and what is heard. */
const PIECES = [
  { kind: 'interrupted', content: { interrupted: true } },
  { kind: 'audio', content: { modelTurn: { parts: [audioPart([1, 0])] } } },
  { kind: 'inputTranscription', content: { inputTranscription: { text: 'in' } } },
  { kind: 'outputTranscription', content: { outputTranscription: { text: 'out' } } },
  { kind: 'generationComplete', content: { generationComplete: true } },
  { kind: 'turnComplete', content: { turnComplete: true } },
  { kind: 'toolCall', top: { toolCall: { functionCalls: [{ id: '1', name: 'f', args: {} }] } } },
  { kind: 'toolCallCancellation', top: { toolCallCancellation: { ids: ['1'] } } },
  { kind: 'goAway', top: { goAway: { timeLeft: '50s' } } },
  { kind: 'resumption', top: { sessionResumptionUpdate: { newHandle: 'h', resumable: true } } },
  { kind: 'usage', top: { usageMetadata: { totalTokenCount: 3 } } },
];

/** A message of these pieces; the keys are put in backwards, so that their order in the JSON helps nobody. */
function bundle(pieces: readonly (typeof PIECES)[number][]): object {
  const message: Record<string, unknown> = {};
  const serverContent: Record<string, unknown> = {};
  for (const piece of pieces.toReversed()) {
    Object.assign(message, piece.top);
    Object.assign(serverContent, piece.content);
  }
  if (Object.keys(serverContent).length > 0) message['serverContent'] = serverContent;
  return message;
}

describe('the order within a message', () => {
  it('is the same for every combination of what a message can hold', () => {
    for (let chosen = 1; chosen < 2 ** PIECES.length; chosen += 1) {
      const pieces = PIECES.filter((_piece, index) => (chosen & (1 << index)) !== 0);
      const { reader, listener, oddities } = readerOf();
      reader.read(bundle(pieces));
      expect(listener.kinds).toEqual(pieces.map(({ kind }) => kind));
      expect(oddities).toEqual([]);
    }
  });

  it('keeps several parts of sound in their order', () => {
    const { reader, listener } = readerOf();
    reader.read({
      serverContent: { modelTurn: { parts: [audioPart([1]), audioPart([2, 3, 4]), audioPart([5])] } },
    });
    expect([...listener.audio]).toEqual([1, 2, 3, 4, 5]);
  });

  it('goes no further once the reader is stopped in the middle of a message', () => {
    for (const [index, { kind }] of PIECES.entries()) {
      const { reader, listener } = readerOf();
      listener.onEvent = (event) => {
        if (event.kind === kind) reader.stop();
      };
      reader.read(bundle(PIECES));
      expect(listener.kinds).toEqual(PIECES.slice(0, index + 1).map((piece) => piece.kind));
    }
  });
});

describe('sound', () => {
  it('is only inline sound: text, thoughts and other parts are not speech', () => {
    const { reader, listener, oddities } = readerOf();
    reader.read({
      serverContent: {
        modelTurn: {
          parts: [
            { text: 'I should greet', thought: true },
            { text: 'call:lookup{}' },
            { executableCode: { code: '1' } },
            audioPart([7, 8]),
            'nonsense',
            null,
          ],
        },
      },
    });
    expect(listener.kinds).toEqual(['audio']);
    expect([...listener.audio]).toEqual([7, 8]);
    expect(oddities).toEqual([]);
  });

  it('is handed on as it comes, odd lengths too', () => {
    const { reader, listener } = readerOf();
    for (const length of [1, 2, 3, 7679, 15_361]) {
      const bytes = Array.from({ length }, (_unused, index) => (index * 7) & 0xff);
      reader.read({ serverContent: { modelTurn: { parts: [audioPart(bytes)] } } });
      expect([...(listener.events.at(-1) as { pcm: Buffer }).pcm]).toEqual(bytes);
    }
  });

  it.each(['audio/pcm;rate=24000', 'audio/pcm; rate=24000', 'audio/PCM;RATE=24000', 'audio/pcm'])(
    'is taken as %s',
    (mimeType) => {
      const { reader, listener, oddities } = readerOf();
      reader.read({ serverContent: { modelTurn: { parts: [audioPart([1, 2], mimeType)] } } });
      expect(listener.kinds).toEqual(['audio']);
      expect(oddities).toEqual([]);
    },
  );

  it.each([
    'audio/pcm;rate=16000',
    'audio/pcm;rate=240000',
    'audio/mpeg',
    'image/png',
    'video/mp4',
    undefined,
    7,
  ])('is dropped and reported as %s', (mimeType) => {
    const { reader, listener, oddities } = readerOf();
    const wrong = audioPart([1, 2], mimeType);
    if (mimeType === undefined) delete (wrong.inlineData as { mimeType?: unknown }).mimeType;
    reader.read({ serverContent: { modelTurn: { parts: [wrong, audioPart([3, 4])] } } });
    expect([...listener.audio]).toEqual([3, 4]);
    expect(oddities).toEqual(['audio_other_format']);
  });

  it.each(['%%%%', 'AAA?', 'AAAA AAAA!', 'A', '====', 'not base64 at all', '\u0141AAA', 'AAA\u0141'])(
    'is dropped and reported when its base64 is junk: %s',
    (data) => {
      const { reader, listener, oddities } = readerOf();
      const junk = { inlineData: { mimeType: 'audio/pcm;rate=24000', data } };
      reader.read({ serverContent: { modelTurn: { parts: [junk, audioPart([3, 4])] } } });
      expect([...listener.audio]).toEqual([3, 4]);
      expect(oddities).toEqual(['audio_not_base64']);
    },
  );

  it('without data is nothing', () => {
    const { reader, listener, oddities } = readerOf();
    for (const data of ['', null, 5, {}]) {
      reader.read({
        serverContent: { modelTurn: { parts: [{ inlineData: { mimeType: 'audio/pcm', data } }] } },
      });
    }
    expect(listener.events).toEqual([]);
    expect(oddities).toEqual([]);
  });
});

describe('the end of a turn', () => {
  it('carries its reason', () => {
    const { reader, listener } = readerOf();
    reader.read({ serverContent: { turnComplete: true, turnCompleteReason: 'RESPONSE_REJECTED' } });
    expect(listener.events).toEqual([{ kind: 'turnComplete', reason: 'RESPONSE_REJECTED' }]);
  });

  it('is every turnComplete of a model that sends one a turn, whatever its status', () => {
    const { reader, listener } = readerOf();
    reader.read({ serverContent: { turnComplete: true, interactionStatus: 'IN_PROGRESS' } });
    reader.read({ serverContent: { turnComplete: true, interactionStatus: 'IDLE' } });
    reader.read({ serverContent: { turnComplete: true } });
    expect(listener.kinds).toEqual(['turnComplete', 'turnComplete', 'turnComplete']);
  });

  it('waits for IDLE where a model sends several, and comes once', () => {
    const { reader, listener } = readerOf('interactionIdle');
    reader.read({ serverContent: { turnComplete: true, interactionStatus: 'IN_PROGRESS' } });
    reader.read({ serverContent: { turnComplete: true, interactionStatus: 'REQUIRES_ACTION' } });
    expect(listener.events).toEqual([]);
    reader.read({ serverContent: { turnComplete: true, interactionStatus: 'IDLE' } });
    expect(listener.events).toEqual([{ kind: 'turnComplete', reason: undefined }]);
    reader.read({ serverContent: { interactionStatus: 'IDLE' } });
    expect(listener.events).toHaveLength(1);
  });

  it('comes with an IDLE that follows alone, and keeps the reason told before', () => {
    const { reader, listener } = readerOf('interactionIdle');
    const held = {
      turnComplete: true,
      interactionStatus: 'IN_PROGRESS',
      turnCompleteReason: 'NEED_MORE_INPUT',
    };
    reader.read({ serverContent: held });
    reader.read({ serverContent: { interactionStatus: 'IDLE' } });
    expect(listener.events).toEqual([{ kind: 'turnComplete', reason: 'NEED_MORE_INPUT' }]);
  });

  it('is not held for ever by a server that tells no status', () => {
    const { reader, listener } = readerOf('interactionIdle');
    reader.read({ serverContent: { turnComplete: true } });
    expect(listener.kinds).toEqual(['turnComplete']);
  });
});

describe('the other messages', () => {
  it('gives a function call its arguments, and an empty object where there are none', () => {
    const { reader, listener } = readerOf();
    const functionCalls = [
      { id: 'a', name: 'f', args: { x: 1 } },
      { id: 'b', name: 'g' },
    ];
    reader.read({ toolCall: { functionCalls } });
    expect(listener.events).toEqual([
      {
        kind: 'toolCall',
        functionCalls: [
          { id: 'a', name: 'f', args: { x: 1 } },
          { id: 'b', name: 'g', args: {} },
        ],
      },
    ]);
  });

  it('reports a function call that cannot be read; one that has an id is passed on, to be answered', () => {
    const { reader, listener, oddities } = readerOf();
    reader.read({
      toolCall: {
        functionCalls: [
          { name: 'f' },
          { id: 'b' },
          'x',
          { id: 'c', name: 'h', args: [] },
          { id: 'd', name: 'h' },
        ],
      },
    });
    expect(listener.events).toEqual([
      {
        kind: 'toolCall',
        functionCalls: [
          { id: 'b', name: 'unnamed', args: {}, unreadable: 'The call names no function.' },
          { id: 'c', name: 'h', args: {}, unreadable: 'The arguments of h are no object.' },
          { id: 'd', name: 'h', args: {} },
        ],
      },
    ]);
    expect(oddities).toEqual([
      'function_call_malformed',
      'function_call_malformed',
      'function_call_malformed',
      'function_call_malformed',
    ]);
    reader.read({ toolCall: { functionCalls: [] } });
    reader.read({ toolCallCancellation: { ids: [3] } });
    expect(listener.events).toHaveLength(1);
  });

  it.each([
    ['50s', 50_000],
    ['1.5s', 1_500],
    ['0.250000000s', 250],
    ['0s', 0],
    ['50', 0],
    ['-5s', 0],
    ['5m', 0],
    ['', 0],
    [50, 0],
    [undefined, 0],
    ['9999999999999999s', 0],
  ])('reads the time left %j as %d ms', (timeLeft, expectedMs) => {
    expect(parseDurationMs(timeLeft)).toBe(expectedMs);
    const { reader, listener } = readerOf();
    reader.read({ goAway: { timeLeft } });
    expect(listener.events).toEqual([{ kind: 'goAway', timeLeftMs: expectedMs }]);
  });

  it('reads resumption handles, and none where the session cannot be resumed', () => {
    const { reader, listener } = readerOf();
    reader.read({ sessionResumptionUpdate: { newHandle: 'h1', resumable: true } });
    reader.read({ sessionResumptionUpdate: { newHandle: '', resumable: false } });
    reader.read({ sessionResumptionUpdate: {} });
    expect(listener.events).toEqual([
      { kind: 'resumption', newHandle: 'h1', resumable: true },
      { kind: 'resumption', newHandle: undefined, resumable: false },
      { kind: 'resumption', newHandle: undefined, resumable: false },
    ]);
  });

  it('counts tokens by modality, in the words of both services', () => {
    const { reader, listener } = readerOf();
    reader.read({
      usageMetadata: {
        promptTokenCount: 30,
        promptTokensDetails: [
          { modality: 'AUDIO', tokenCount: 20 },
          { modality: 'TEXT', tokenCount: 10 },
        ],
        responseTokenCount: 8,
        responseTokensDetails: [{ modality: 'AUDIO', tokenCount: 8 }],
        thoughtsTokenCount: 5,
        totalTokenCount: 43,
      },
    });
    reader.read({
      usageMetadata: {
        candidatesTokenCount: 4,
        candidatesTokensDetails: [{ modality: 'SMELL', tokenCount: 4 }],
      },
    });
    reader.read({ usageMetadata: { promptTokenCount: 9, responseTokenCount: -1, totalTokenCount: 'many' } });
    expect(listener.events.map((event) => event.kind === 'usage' && event.usage)).toEqual([
      { promptTokens: { AUDIO: 20, TEXT: 10 }, responseTokens: { AUDIO: 8, TEXT: 5 }, totalTokenCount: 43 },
      { promptTokens: {}, responseTokens: { MODALITY_UNSPECIFIED: 4 }, totalTokenCount: 0 },
      { promptTokens: { MODALITY_UNSPECIFIED: 9 }, responseTokens: {}, totalTokenCount: 0 },
    ]);
  });

  it('counts no tokens whose sum would not be a number that a counter takes', () => {
    const { reader, listener } = readerOf();
    const huge = { modality: 'AUDIO', tokenCount: 1.7e308 };
    reader.read({
      usageMetadata: { promptTokensDetails: [huge, huge], responseTokensDetails: [huge, huge] },
    });
    reader.read({
      usageMetadata: { responseTokenCount: 1.7e308, thoughtsTokenCount: 1.7e308, totalTokenCount: 2.5 },
    });
    const nothing = { promptTokens: {}, responseTokens: {}, totalTokenCount: 0 };
    expect(listener.events.map((event) => event.kind === 'usage' && event.usage)).toEqual([nothing, nothing]);
  });

  it.each([null, 7, 'text', [], {}, { error: { code: 500 } }])('reports %j as unknown', (message) => {
    const { reader, listener, oddities } = readerOf();
    reader.read(message);
    expect(listener.events).toEqual([]);
    expect(oddities).toEqual(['message_unknown']);
  });

  it('never throws, whatever stands where an object is expected', () => {
    const strange = [null, 0, '', 'x', true, [], [null], [[]], {}, { parts: 3 }, { ids: {} }, { text: 5 }];
    const keys = ['toolCall', 'toolCallCancellation', 'goAway', 'sessionResumptionUpdate', 'usageMetadata'];
    const contentKeys = [
      'modelTurn',
      'inputTranscription',
      'outputTranscription',
      'interrupted',
      'turnComplete',
    ];
    const { reader } = readerOf();
    for (const value of strange) {
      for (const key of keys) expect(() => reader.read({ [key]: value })).not.toThrow();
      for (const key of contentKeys) {
        expect(() => reader.read({ serverContent: { [key]: value } })).not.toThrow();
      }
      for (const key of ['functionCalls', 'parts', 'promptTokensDetails']) {
        expect(() =>
          reader.read({ toolCall: { [key]: value }, usageMetadata: { [key]: value } }),
        ).not.toThrow();
        expect(() => reader.read({ serverContent: { modelTurn: { [key]: value } } })).not.toThrow();
      }
    }
  });

  it('lets through what the listener throws', () => {
    const { reader, listener } = readerOf();
    listener.onEvent = () => {
      throw new Error('listener');
    };
    expect(() => reader.read({ serverContent: { interrupted: true } })).toThrow('listener');
  });
});

describe('the audio decoder', () => {
  it('decodes every length, padded or not, and grows for large chunks without keeping huge ones', () => {
    const decoder = new GeminiAudioDecoder();
    for (const length of [1, 2, 3, 4, 5, 48_000, 48_001, 200_000, 1_048_576, 2_000_001, 3]) {
      const bytes = Buffer.alloc(length, length & 0xff);
      const base64 = bytes.toString('base64');
      expect(bytes.equals(decoder.decode(base64)!)).toBe(true);
      expect(bytes.equals(decoder.decode(base64.replaceAll('=', ''))!)).toBe(true);
    }
    expect(decoder.decode('AAAA')!.buffer.byteLength).toBeLessThanOrEqual(1024 * 1024);
  });

  it('uses one buffer for chunk after chunk', () => {
    const decoder = new GeminiAudioDecoder();
    const first = decoder.decode('AQID')!;
    expect(decoder.decode('BAUG')!.buffer).toBe(first.buffer);
    expect([...first]).toEqual([4, 5, 6]);
  });
});
