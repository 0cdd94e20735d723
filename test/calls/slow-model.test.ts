import { describe, expect, it } from 'vitest';
import {
  CALLER_BACKLOG_MAX_MS,
  FRAME_MS,
  MODEL_BUFFERED_MAX_BYTES,
  MULAW_FRAME_BYTES,
} from '../../src/limits.js';
import { CallRig, type FakeModel, type FakeStream } from '../support/call-rig.js';

/** What a message of caller sound is on the model's socket: base64 in a little JSON. */
const onTheWire = (pcm16k: Uint8Array): number => Math.ceil(pcm16k.length / 3) * 4 + 80;

/** Sends one frame of a constant level; `level` 0 is silence, 127 the loudest. */
async function sendLevel(rig: CallRig, stream: FakeStream, level: number): Promise<void> {
  await rig.frames(stream, FRAME_MS, new Uint8Array(MULAW_FRAME_BYTES).fill(0xff - level));
}

/** Notes the last sample of each message that `model` gets; its socket fills up with them. */
function noteLevels(model: FakeModel): { readonly levels: number[]; sentMs: () => number } {
  const levels: number[] = [];
  let bytes = 0;
  model.sendAudio = (pcm16k) => {
    model.bufferedAmount += onTheWire(pcm16k);
    bytes += pcm16k.length;
    levels.push(new Int16Array(Uint8Array.from(pcm16k).buffer).at(-1)!);
  };
  return { levels, sentMs: () => bytes / 32 };
}

const droppedMs = (rig: CallRig): number =>
  rig
    .seen('onAudioDropped')
    .filter(([direction]) => direction === 'inbound')
    .reduce((sum, [, , ms]) => sum + (ms as number), 0);

describe('a model that reads slowly', () => {
  it('gets a backlog that its socket does not take at once in the order in which it was spoken', async () => {
    const rig = new CallRig({ modelReadyMs: 3_000 });
    const { callSid, answer } = rig.ring();
    const stream = rig.open(callSid, answer);
    // Frames grow louder, two by two; so must what the model gets.
    let frames = 0;
    const speak = (): void => {
      const frame = new Uint8Array(MULAW_FRAME_BYTES).fill(0xff - Math.floor(frames / 2));
      stream.listener!.onMedia(frame, frames * FRAME_MS);
      frames += 1;
      rig.clock.advance(FRAME_MS);
    };
    while (rig.models.length === 0) speak();
    const model = rig.models[0]!;
    const { levels } = noteLevels(model);
    await rig.settle();
    for (let round = 0; round < 10; round += 1) {
      model.bufferedAmount = 0;
      speak();
      await rig.settle();
    }
    expect(levels).toHaveLength(frames);
    expect(levels).toEqual(levels.toSorted((a, b) => a - b));
  });

  it('or not at all for a minute costs five seconds of memory: older sound is dropped and counted, no key is lost', async () => {
    const rig = new CallRig({ deps: { idleRepromptMs: 0 } });
    const { stream, model } = await rig.greeted();
    await rig.frames(stream, 500);
    const { levels, sentMs } = noteLevels(model);
    model.bufferedAmount = MODEL_BUFFERED_MAX_BYTES + 1;
    const frames = 60_000 / FRAME_MS;
    const backlogFrames = CALLER_BACKLOG_MAX_MS / FRAME_MS;
    // The frames that can still be told grow louder, three by three.
    const levelOf = (frame: number): number => Math.floor(Math.max(0, frame - frames + backlogFrames) / 3);
    for (let frame = 0; frame < frames; frame += 1) {
      await sendLevel(rig, stream, levelOf(frame));
      const key = { 500: '1', 1_500: '2', 2_900: '#' }[frame];
      if (key !== undefined) stream.listener!.onDtmf(key);
      // It is not mute: that would be a reason to leave it.
      if (key !== undefined) model.say('Yes?', 100);
      expect(droppedMs(rig)).toBe(Math.max(0, frame + 1 - backlogFrames) * FRAME_MS);
    }
    expect(levels).toEqual([]);

    const more = 20;
    for (let frame = frames; frame < frames + more; frame += 1) {
      model.bufferedAmount = 0;
      await sendLevel(rig, stream, levelOf(frame));
    }
    expect(levels).toEqual(levels.toSorted((a, b) => a - b));
    expect(sentMs()).toBeGreaterThanOrEqual(CALLER_BACKLOG_MAX_MS);
    expect(sentMs() + droppedMs(rig)).toBe((frames + more) * FRAME_MS);
    expect(model.texts.slice(-3)).toEqual([
      expect.stringContaining('key "1"'),
      expect.stringContaining('key "2"'),
      expect.stringContaining('key "#"'),
    ]);
  });
});
