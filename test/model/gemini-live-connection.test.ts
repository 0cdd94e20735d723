import { GoogleGenAI } from '@google/genai';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { scopeOn } from '../support/scopes.js';
import { MODEL_CLOSE_MAX_MS, MODEL_PAYLOAD_MAX_BYTES, MODEL_UNSENT_MAX_BYTES } from '../../src/limits.js';
import { LISTENER_FAILED_CODE } from '../../src/model/gemini-live-connection.js';
import type { LiveConnection } from '../../src/model/live-connection.js';
import { RecordingLiveListener } from '../support/recording-live-listener.js';
import type { ScriptedConnection } from '../support/scripted-gemini.js';
import { GeminiFixture, PLAIN_SETUP } from './gemini-fixture.js';

let fixture: GeminiFixture;

beforeEach(async () => {
  fixture = await GeminiFixture.start();
});
afterEach(() => fixture.stop());

const audioMessage = (base64: string): object => ({
  serverContent: {
    modelTurn: { parts: [{ inlineData: { mimeType: 'audio/pcm;rate=24000', data: base64 } }] },
  },
});

describe('before the caller holds the connection', () => {
  it('the listener hears nothing; then it hears all, in order, ahead of what comes later', async () => {
    fixture.server.script.setup = (peer) => {
      peer.send(
        { goAway: { timeLeft: '60s' } },
        { setupComplete: {}, sessionResumptionUpdate: { newHandle: 'h0', resumable: true } },
        { serverContent: { outputTranscription: { text: 'a' } } },
        { serverContent: { outputTranscription: { text: 'b' } } },
      );
    };
    const listener = new RecordingLiveListener();
    let held: LiveConnection | undefined;
    let heldWhenFirstHeard: boolean | undefined;
    listener.onEvent = () => {
      heldWhenFirstHeard ??= held !== undefined;
    };
    // However many functions hand the promise on, the last one has it before the first event.
    const connectLive = fixture.connectLive();
    const layered = async (depth: number): Promise<LiveConnection> =>
      depth === 0
        ? await connectLive(PLAIN_SETUP, listener, new AbortController().signal, scopeOn(fixture.clock))
        : await layered(depth - 1);
    held = await layered(20);
    expect(listener.events).toEqual([]);
    const peer = await fixture.server.connection();
    peer.sendOutputTranscription('c');
    await listener.waitFor('outputTranscription', 3);
    expect(heldWhenFirstHeard).toBe(true);
    expect(listener.kinds).toEqual([
      'goAway',
      'resumption',
      'outputTranscription',
      'outputTranscription',
      'outputTranscription',
    ]);
    expect(
      listener.events.slice(2).map((event) => event.kind === 'outputTranscription' && event.text),
    ).toEqual(['a', 'b', 'c']);
    held.close();
  });

  it('a caller that closes at once hears only the close', async () => {
    fixture.server.script.setup = (peer) => {
      peer.send(
        { setupComplete: {} },
        { serverContent: { interrupted: true } },
        { goAway: { timeLeft: '1s' } },
      );
    };
    const { connection, listener } = await fixture.open();
    connection.close();
    await listener.waitFor('close');
    expect(listener.kinds).toEqual(['close']);
  });

  it('a close right behind setupComplete comes after the messages before it', async () => {
    fixture.server.script.setup = (peer) => {
      peer.send({ setupComplete: {} }, { serverContent: { interrupted: true } });
      peer.close(1011, 'deadline');
    };
    const { listener } = await fixture.open();
    await listener.waitFor('close');
    expect(listener.kinds).toEqual(['interrupted', 'close']);
    expect(listener.closes).toEqual([{ code: 1011, reason: 'deadline', local: false }]);
  });
});

describe('what is sent', () => {
  it('caller sound is exactly what the SDK would send', async () => {
    const { connection, peer } = await fixture.open();
    const session = await new GoogleGenAI({
      apiKey: 'k',
      vertexai: false,
      apiVersion: 'v1beta',
      httpOptions: { baseUrl: fixture.server.url },
    }).live.connect({ model: 'gemini-3.8-live', callbacks: { onmessage: () => {} } });
    const sdkPeer = await fixture.server.connection(1);
    const whole = new Uint8Array(1_000).map((_unused, index) => (index * 31) & 0xff);
    // A view into the middle of a buffer, odd lengths, a Buffer and one byte.
    const chunks = [whole.subarray(100, 740), whole.subarray(1, 4), Buffer.from(whole), whole.subarray(7, 8)];
    for (const chunk of chunks) {
      connection.sendAudio(chunk);
      const data = Buffer.from(chunk).toString('base64');
      session.sendRealtimeInput({ audio: { mimeType: 'audio/pcm;rate=16000', data } });
    }
    await peer.waitUntil(() => peer.received.length === chunks.length);
    await sdkPeer.waitUntil(() => sdkPeer.received.length === chunks.length);
    expect(peer.received).toEqual(sdkPeer.received);
    expect(peer.receivedAudio.equals(Buffer.concat(chunks))).toBe(true);
    session.close();
  });

  it('no sound is no message', async () => {
    const { connection, peer } = await fixture.open();
    connection.sendAudio(new Uint8Array(0));
    connection.sendText('after');
    await peer.waitFor((frame) => 'clientContent' in frame);
    expect(peer.received).toHaveLength(1);
  });

  it('sound is copied before sendAudio returns', async () => {
    const { connection, peer } = await fixture.open();
    const frame = new Uint8Array(640).fill(1);
    for (let value = 1; value <= 50; value += 1) {
      frame.fill(value);
      connection.sendAudio(frame);
    }
    frame.fill(99);
    await peer.waitUntil(() => peer.received.length === 50);
    expect([...new Set(peer.receivedAudio)]).toEqual(
      Array.from({ length: 50 }, (_unused, index) => index + 1),
    );
  });

  it('text goes as a complete user turn, or as realtime input where the model wants that', async () => {
    const content = await fixture.open({ modelName: 'gemini-3.8-live' });
    content.connection.sendText('The caller pressed 5.');
    await content.peer.waitUntil(() => content.peer.received.length === 1);
    expect(content.peer.received).toEqual([
      {
        clientContent: {
          turns: [{ role: 'user', parts: [{ text: 'The caller pressed 5.' }] }],
          turnComplete: true,
        },
      },
    ]);
    const realtime = await fixture.open({ modelName: 'models/gemini-3.1-flash-live-preview' });
    realtime.connection.sendText('The caller pressed 5.');
    await realtime.peer.waitUntil(() => realtime.peer.received.length === 1);
    expect(realtime.peer.received).toEqual([{ realtimeInput: { text: 'The caller pressed 5.' } }]);
  });

  it('tool responses go together in one message, and none is no message', async () => {
    const { connection, peer } = await fixture.open();
    connection.sendToolResponse([]);
    connection.sendToolResponse([
      { id: 'a', name: 'f', response: { output: 1 } },
      { id: 'b', name: 'g', response: { error: 'refused' }, scheduling: 'SILENT' },
    ]);
    await peer.waitUntil(() => peer.received.length === 1);
    expect(peer.received).toEqual([
      {
        toolResponse: {
          functionResponses: [
            { id: 'a', name: 'f', response: { output: 1 } },
            { id: 'b', name: 'g', response: { error: 'refused' }, scheduling: 'SILENT' },
          ],
        },
      },
    ]);
  });

  it('piles up visibly in front of a server that has stalled', async () => {
    const { connection, peer } = await fixture.open();
    expect(connection.bufferedAmount).toBe(0);
    peer.pause();
    const second = new Uint8Array(32_000);
    for (let sent = 0; sent < 2_000 && connection.bufferedAmount === 0; sent += 1) {
      connection.sendAudio(second);
      await new Promise((resolve) => {
        setImmediate(resolve);
      });
    }
    expect(connection.bufferedAmount).toBeGreaterThan(0);
  });

  it('is no more than a bound and one message, text and tool responses too: then the connection is lost', async () => {
    const { connection, peer, listener } = await fixture.open();
    peer.pause();
    const name = 'x'.repeat(500_000);
    let sent = 0;
    for (; sent < 200 && listener.closes.length === 0; sent += 1) {
      connection.sendToolResponse([{ id: String(sent), name, response: {} }]);
      expect(connection.bufferedAmount).toBeLessThan(MODEL_UNSENT_MAX_BYTES + 2 * name.length);
      await new Promise((resolve) => {
        setImmediate(resolve);
      });
    }
    await listener.waitFor('close');
    expect(sent).toBeLessThan(200);
    expect(listener.closes).toEqual([{ code: 1006, reason: '', local: false }]);
  });
});

describe('what arrives', () => {
  it('is read from text and from binary frames', async () => {
    for (const frames of ['text', 'binary'] as const) {
      fixture.server.script.frames = frames;
      const { listener, peer } = await fixture.open();
      peer.sendInputTranscription('grüß Gott');
      await listener.waitFor('inputTranscription');
      expect(listener.events).toEqual([{ kind: 'inputTranscription', text: 'grüß Gott' }]);
    }
  });

  it('is handled in one go per message, and messages in their order', async () => {
    const { listener, peer } = await fixture.open();
    peer.sendAudio(Uint8Array.of(1, 2, 3));
    peer.send({
      serverContent: { turnComplete: true, interrupted: true, outputTranscription: { text: 'x' } },
      toolCall: { functionCalls: [{ id: '1', name: 'f' }] },
    });
    peer.sendAudio(Uint8Array.of(4));
    await listener.waitFor('audio', 2);
    expect(listener.kinds).toEqual([
      'audio',
      'interrupted',
      'outputTranscription',
      'turnComplete',
      'toolCall',
      'audio',
    ]);
    expect([...listener.audio]).toEqual([1, 2, 3, 4]);
  });

  it('may be a minute of sound in one message', async () => {
    const { listener, peer } = await fixture.open();
    const minute = Buffer.alloc(60 * 48_000, 3);
    peer.sendAudio(minute);
    await listener.waitFor('audio');
    expect(listener.audio.equals(minute)).toBe(true);
  });

  it('ends the connection when it is larger than that, and not the process', async () => {
    const { listener, peer } = await fixture.open();
    peer.sendRaw(JSON.stringify(audioMessage('A'.repeat(MODEL_PAYLOAD_MAX_BYTES))));
    await listener.waitFor('close');
    expect(listener.kinds).toEqual(['close']);
    expect(listener.closes[0]).toMatchObject({ local: false });
    await fixture.server.waitForNoSockets();
  });

  it('is skipped and counted when it is odd, logged once, and the call goes on', async () => {
    const { listener, peer } = await fixture.open();
    peer.sendRaw('not json', '{"truncated":', '', JSON.stringify(audioMessage('%%')), '[]', '{"error":{}}');
    peer.sendAudio(Uint8Array.of(1, 2), 'audio/pcm;rate=16000');
    peer.interrupt();
    await listener.waitFor('interrupted');
    expect(listener.kinds).toEqual(['interrupted']);
    expect(fixture.oddities).toEqual([
      'frame_not_json',
      'frame_not_json',
      'frame_not_json',
      'audio_not_base64',
      'message_unknown',
      'message_unknown',
      'audio_other_format',
    ]);
    expect(fixture.logLines.map(({ fields }) => (fields as { oddity: string }).oddity)).toEqual([
      'frame_not_json',
      'audio_not_base64',
      'message_unknown',
      'audio_other_format',
    ]);
  });
});

describe('an observer that throws', () => {
  it('is logged, and the call goes on', async () => {
    const connectLive = fixture.connectLive('gemini-3.8-live', {
      observe: () => {
        throw new Error('metrics are down');
      },
    });
    const listener = new RecordingLiveListener();
    const connection = await connectLive(
      PLAIN_SETUP,
      listener,
      new AbortController().signal,
      scopeOn(fixture.clock),
    );
    const peer = await fixture.server.connection();
    peer.sendRaw('not json');
    peer.interrupt();
    await listener.waitFor('interrupted');
    expect(fixture.logLines.map(({ level }) => level)).toEqual(['error', 'warn']);
    connection.close();
  });
});

describe('a listener that throws', () => {
  const EVENTS = [
    ['interrupted', { serverContent: { interrupted: true } }],
    ['audio', audioMessage('AAAA')],
    ['inputTranscription', { serverContent: { inputTranscription: { text: 'x' } } }],
    ['outputTranscription', { serverContent: { outputTranscription: { text: 'x' } } }],
    ['generationComplete', { serverContent: { generationComplete: true } }],
    ['turnComplete', { serverContent: { turnComplete: true } }],
    ['toolCall', { toolCall: { functionCalls: [{ id: '1', name: 'f' }] } }],
    ['toolCallCancellation', { toolCallCancellation: { ids: ['1'] } }],
    ['goAway', { goAway: { timeLeft: '5s' } }],
    ['resumption', { sessionResumptionUpdate: {} }],
    ['usage', { usageMetadata: {} }],
  ] as const;

  it.each(EVENTS)('on %s ends its own call only, told as a loss', async (kind, message) => {
    const { connection, listener, peer } = await fixture.open();
    const other = await fixture.open();
    listener.onEvent = (event) => {
      if (event.kind === kind) throw new Error('heard +15550100 say no');
    };
    peer.send(message, { serverContent: { outputTranscription: { text: 'more' } } });
    await listener.waitFor('close');
    expect(listener.kinds).toEqual([kind, 'close']);
    expect(listener.closes).toEqual([
      { code: LISTENER_FAILED_CODE, reason: 'the listener threw', local: false },
    ]);
    connection.sendText('nobody hears this');
    const error = fixture.logLines.find(({ level }) => level === 'error');
    expect(error?.message).not.toContain('15550100');
    expect(Object.keys(error?.fields ?? {})).toEqual(['pii']);
    other.peer.interrupt();
    await other.listener.waitFor('interrupted');
  });

  it('on the close is logged, and that is all', async () => {
    const { listener, peer } = await fixture.open();
    listener.onEvent = () => {
      throw new Error('late');
    };
    peer.close(1011, 'gone');
    await listener.waitFor('close');
    await fixture.server.waitForNoSockets();
    expect(listener.kinds).toEqual(['close']);
    expect(fixture.logLines.map(({ level }) => level)).toEqual(['error']);
  });

  it.each([
    ['from a server that stays', () => {}],
    ['from a server that is gone already', (peer: ScriptedConnection) => peer.terminate()],
  ])('among early messages %s hears no more of them', async (_name, afterwards) => {
    fixture.server.script.setup = (peer) => {
      peer.send(
        { setupComplete: {} },
        { serverContent: { interrupted: true } },
        { goAway: { timeLeft: '5s' } },
      );
      afterwards(peer);
    };
    const listener = new RecordingLiveListener();
    listener.onEvent = (event) => {
      if (event.kind === 'interrupted') throw new Error('early');
    };
    await fixture.open({ listener });
    await listener.waitFor('close');
    expect(listener.kinds).toEqual(['interrupted', 'close']);
  });
});

describe('the close', () => {
  it('is local after close(), which is idempotent, with a close frame and nothing left behind', async () => {
    const { connection, listener, peer } = await fixture.open();
    connection.close();
    connection.close();
    expect(await peer.waitForClose()).toBe(1000);
    await listener.waitFor('close');
    connection.close();
    await fixture.server.waitForNoSockets();
    expect(listener.closes).toEqual([{ code: 1000, reason: '', local: true }]);
    expect(fixture.clock.pendingTimers).toBe(0);
  });

  it('silences the listener at once, whatever still arrives', async () => {
    const { connection, listener, peer } = await fixture.open();
    listener.onEvent = (event) => {
      if (event.kind === 'interrupted') connection.close();
    };
    peer.send({ serverContent: { interrupted: true, turnComplete: true } }, audioMessage('AAAA'));
    await listener.waitFor('close');
    expect(listener.kinds).toEqual(['interrupted', 'close']);
    expect(listener.closes).toMatchObject([{ local: true }]);
  });

  it('is cut after its time when the server does not answer', async () => {
    const { connection, listener, peer } = await fixture.open();
    peer.pause();
    connection.close();
    fixture.clock.advance(MODEL_CLOSE_MAX_MS);
    await listener.waitFor('close');
    expect(listener.closes).toEqual([{ code: 1006, reason: '', local: true }]);
    expect(fixture.clock.pendingTimers).toBe(0);
    peer.resume();
    await fixture.server.waitForNoSockets();
  });

  it.each([
    [1011, 'RESOURCE_EXHAUSTED'],
    [1008, 'Operation is not implemented'],
    [1000, ''],
  ])('by the server with %i tells code and reason', async (code, reason) => {
    const { listener, peer } = await fixture.open();
    peer.close(code, reason);
    await listener.waitFor('close');
    expect(listener.closes).toEqual([{ code, reason, local: false }]);
    await fixture.server.waitForNoSockets();
  });

  it('of a socket cut without a word is 1006', async () => {
    const { listener, peer } = await fixture.open();
    peer.terminate();
    await listener.waitFor('close');
    expect(listener.closes).toEqual([{ code: 1006, reason: '', local: false }]);
  });

  it('makes every send a silent no-op', async () => {
    const { connection, listener, peer } = await fixture.open();
    const sendAll = (): void => {
      connection.sendAudio(new Uint8Array(640));
      connection.sendText('text');
      connection.sendToolResponse([{ id: 'a', name: 'f', response: {} }]);
    };
    connection.close();
    sendAll();
    await listener.waitFor('close');
    sendAll();
    await peer.waitForClose();
    expect(peer.received).toEqual([]);
    expect(connection.bufferedAmount).toBe(0);
    expect(listener.kinds).toEqual(['close']);
  });

  it('comes once, after 20 connections closed in every way, and leaves no timer or socket', async () => {
    const opened = await Promise.all(Array.from({ length: 20 }, () => fixture.open()));
    for (const [index, { connection, peer }] of opened.entries()) {
      if (index % 4 === 0) connection.close();
      if (index % 4 === 1) peer.close(1011, 'bye');
      if (index % 4 === 2) peer.terminate();
      if (index % 4 === 3) {
        peer.close(1000);
        connection.close();
      }
    }
    await Promise.all(opened.map(({ listener }) => listener.waitFor('close')));
    await fixture.server.waitForNoSockets();
    expect(opened.map(({ listener }) => listener.kinds)).toEqual(opened.map(() => ['close']));
    expect(fixture.clock.pendingTimers).toBe(0);
  });
});
