/** What a web client is sent of the agent's voice, when its marks come back, and when nothing is sent. On a virtual clock. */
import { describe, expect, it } from 'vitest';
import { CallClock } from '../../src/call/call-clock.js';
import { WEB_SOUND_UNSENT_MAX_BYTES } from '../../src/limits.js';
import { VirtualClock } from '../../src/replay/virtual-clock.js';
import type { MediaStreamListener } from '../../src/telephony/media-stream.js';
import type { SoundFormat } from '../../src/web/sound-format.js';
import { WebMediaStream } from '../../src/web/web-media-stream.js';

function opened(format: SoundFormat | undefined) {
  const clock = new VirtualClock(0);
  const time = new CallClock(clock);
  const socket = {
    bufferedAmount: 0,
    readyState: 1,
    sent: [] as string[],
    send: (text: string) => void socket.sent.push(text),
  };
  const stream = new WebMediaStream({ socket, format, clock });
  const heard: [string, number][] = [];
  const note = (what: string) => void heard.push([what, time.nowMs()]);
  const listener: MediaStreamListener = {
    onMedia: () => {},
    onDtmf: () => {},
    onMark: note,
    onStop: () => note('stop'),
    onClose: (code) => note(`close ${code}`),
  };
  stream.begin(listener, time);
  return { clock, time, socket, stream, heard };
}

const frames = (count: number) => new Uint8Array(160 * count).fill(0x20);

describe('the stream of a web client', () => {
  it('sends sound as it comes and returns each mark when it can have been played', () => {
    const { clock, socket, stream, heard } = opened('audio/x-mulaw;rate=8000');
    stream.sendMedia(frames(2), 'a');
    stream.sendMedia(frames(2));
    stream.sendMark('b');
    expect(socket.sent.map((text) => JSON.parse(text) as unknown)).toEqual(
      [0, 1].map(() => ({ type: 'audio', data: Buffer.from(frames(2)).toString('base64') })),
    );
    clock.advance(100);
    stream.sendMark('c');
    clock.advance(100);
    expect(heard).toEqual(
      [
        ['a', 40],
        ['b', 80],
        ['c', 80],
      ].map(([name, at]) => [name, name === 'c' ? expect.any(Number) : at]),
    );
  });

  it('returns no mark of what was cleared', () => {
    const { clock, socket, stream, heard } = opened('audio/pcm;rate=8000');
    stream.sendMedia(frames(5), 'a');
    clock.advance(50);
    stream.sendClear();
    stream.sendMedia(frames(1), 'b');
    expect(socket.sent.slice(-2).map((text) => (JSON.parse(text) as { type: string }).type)).toEqual([
      'clear',
      'audio',
    ]);
    clock.advance(500);
    expect(heard.map(([name]) => name)).toEqual(['b']);
  });

  it('is full before its sound could keep frames waiting', () => {
    const { socket, stream } = opened('audio/pcm;rate=24000');
    socket.bufferedAmount = WEB_SOUND_UNSENT_MAX_BYTES;
    expect(stream.bufferedAmount).toBe(WEB_SOUND_UNSENT_MAX_BYTES);
    socket.bufferedAmount += 1;
    expect(stream.bufferedAmount).toBe(Number.POSITIVE_INFINITY);
  });

  it('without a format sends nothing, and with a socket that has gone neither', () => {
    const { socket, stream } = opened(undefined);
    expect(stream.isSilent).toBe(true);
    stream.sendMedia(frames(1), 'a');
    const gone = opened('audio/pcm;rate=8000');
    gone.socket.readyState = 3;
    gone.stream.sendMedia(frames(1));
    expect([...socket.sent, ...gone.socket.sent]).toEqual([]);
  });

  it('ends once, after what is being done, and leaves no timer', () => {
    const { clock, time, stream, heard } = opened('audio/pcm;rate=16000');
    stream.sendMedia(frames(5), 'a');
    stream.close();
    stream.terminate();
    stream.lost(1006);
    expect(heard).toEqual([]);
    clock.advance(1_000);
    expect(heard.map(([what]) => what)).toEqual(['close 1000']);
    stream.sendMedia(frames(5), 'b');
    stream.sendMark('c');
    clock.advance(1_000);
    expect(heard).toHaveLength(1);
    expect(time.pendingTimers).toBe(0);
  });
});
