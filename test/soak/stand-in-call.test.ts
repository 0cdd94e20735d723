import { describe, expect, test } from 'vitest';
import { VirtualClock } from '../../src/replay/virtual-clock.js';
import { type CallPlan, planCall } from './call-plan.js';
import { type Fault, FAULTS } from './fault-catalogue.js';
import { callerSound } from './model-sound.js';
import { type ModelLine, StandInCall } from './stand-in-call.js';

/** What the server of one connection sees, a word a message. */
class SeenLine implements ModelLine {
  isOpen = true;
  soundMs = 0;
  readonly seen: string[] = [];
  readonly handles: string[] = [];
  readonly calls: string[] = [];

  send(message: object | Buffer): void {
    const { serverContent, sessionResumptionUpdate, toolCall, ...rest } = JSON.parse(
      Buffer.isBuffer(message) ? message.toString() : JSON.stringify(message),
    ) as {
      serverContent?: { modelTurn?: { parts: { inlineData: { data: string } }[] } };
      sessionResumptionUpdate?: { newHandle: string };
      toolCall?: { functionCalls: { name: string }[] };
    };
    if (sessionResumptionUpdate !== undefined) this.handles.push(sessionResumptionUpdate.newHandle);
    for (const { name } of toolCall?.functionCalls ?? []) this.calls.push(name);
    const sound = serverContent?.modelTurn?.parts[0]?.inlineData.data;
    if (sound !== undefined) this.soundMs += Buffer.from(sound, 'base64').length / 48;
    else this.seen.push(...Object.keys(serverContent ?? rest));
  }
  close(code: number): void {
    this.#end(`closed ${code}`);
  }
  cut(): void {
    this.#end('cut');
  }
  reset(): void {
    this.#end('reset');
  }

  #end(how: string): void {
    if (!this.isOpen) return;
    this.isOpen = false;
    this.seen.push(how);
  }
}

function stage(name: string, turns: Partial<CallPlan> = {}) {
  const fault: Fault = FAULTS.find((each) => each.name === name)!;
  const plain = { pauseMs: 300, callerMs: 800, answerMs: 2_000, tool: undefined };
  const drawn = planCall({ seed: 1, calls: 1, only: 'none' }, 0);
  const plan = {
    ...drawn,
    fault,
    faultTurn: 0,
    greetingMs: 1_000,
    endsBy: 'caller',
    turns: [plain, plain],
    ...turns,
  };
  const clock = new VirtualClock();
  const call = new StandInCall({ plan: plan as CallPlan, clock, tell: () => {} });
  const dial = (handle?: string): SeenLine => {
    const line = new SeenLine();
    call.open(line, handle);
    clock.advance(50);
    return line;
  };
  const speak = (line: SeenLine, ms: number, quietMs = 800): void => {
    for (let at = 0; at < ms + quietMs; at += 20) {
      call.onSound(line, { ms: 20, isLoud: at < ms });
      clock.advance(20);
    }
  };
  const greet = (line: SeenLine): void => {
    call.onText(line, 'Say this greeting now, word for word: "Hello."');
    clock.advance(3_000);
  };
  return { call, clock, dial, speak, greet };
}

describe('the model of a soak’s call', () => {
  test('greets, answers the caller, and takes a barge-in for what it is', () => {
    const { clock, dial, speak, greet } = stage('none');
    const line = dial();
    greet(line);
    expect(line.soundMs).toBe(1_000);
    speak(line, 500);
    clock.advance(100);
    expect(line.soundMs).toBeGreaterThan(1_200);
    speak(line, 500);
    clock.advance(4_000);
    expect(line.seen.filter((each) => each !== 'outputTranscription')).toEqual([
      'setupComplete',
      'generationComplete',
      'turnComplete',
      'inputTranscription',
      // What was made is not yet played.
      'generationComplete',
      'interrupted',
      'turnComplete',
      'inputTranscription',
      'generationComplete',
      'turnComplete',
    ]);
    expect(line.handles).toHaveLength(2);
  });

  test('calls a function and answers when its result has come', () => {
    const { call, clock, dial, speak, greet } = stage('slow-tool-3000');
    const line = dial();
    greet(line);
    speak(line, 500);
    expect(line.calls).toEqual(['soak_wait']);
    expect(line.soundMs).toBe(1_000);
    call.onToolResponse(line);
    clock.advance(3_000);
    expect(line.soundMs).toBe(3_000);
  });

  test.each([
    ['close-1008.before-setup', ['closed 1008']],
    ['close-reset.after-setup', ['setupComplete', 'reset']],
  ])('strikes %s, once', (name, seen) => {
    const { dial } = stage(name);
    expect(dial().seen).toEqual(seen);
    expect(dial().seen).toEqual(['setupComplete']);
  });

  test.each([
    'close-cut.greeting',
    'close-1011.mid-speech',
    'close-1007.listening',
    'close-1000.caller-speaks',
    'close-reset.tool-runs',
    'close-1011.after-tool-response',
    'goaway-5s-drop.mid-speech',
  ])('strikes %s where it says', (name) => {
    const { call, clock, dial, speak, greet } = stage(name);
    const line = dial();
    greet(line);
    speak(line, 500);
    if (name.includes('after-tool')) call.onToolResponse(line);
    clock.advance(8_000);
    expect(call.hasStruck).toBe(true);
    expect(line.isOpen).toBe(false);
    const again = dial('soak-0-1');
    call.onText(again, 'Are you there?');
    clock.advance(4_000);
    expect(again.soundMs).toBeGreaterThan(0);
  });

  test('dies twice, is mute behind a death, and refuses what it gave before', () => {
    for (const name of [
      'two-deaths.mid-speech',
      'mute-after-resume.mid-speech',
      'refused-resume-1007.mid-speech',
    ]) {
      const { call, clock, dial, speak, greet } = stage(name);
      const line = dial();
      greet(line);
      speak(line, 500);
      clock.advance(3_000);
      expect(line.isOpen).toBe(false);
      const second = dial(line.handles.at(-1));
      call.onText(second, 'Are you there?');
      clock.advance(3_000);
      expect(second.seen.at(-1)).toMatch(/^closed 10(07|11)$|^setupComplete$/);
      expect(second.soundMs).toBeLessThan(1_000);
      const third = dial();
      call.onText(third, 'Are you there?');
      clock.advance(3_000);
      expect(third.soundMs).toBe(2_000);
    }
  });

  test('is mute until it is nudged, or to the end of the connection', () => {
    for (const name of ['mute.nudged', 'mute.caller']) {
      const { call, clock, dial, speak, greet } = stage(name);
      const line = dial();
      greet(line);
      speak(line, 500);
      clock.advance(3_000);
      expect(line.soundMs).toBe(1_000);
      call.onText(line, 'Are you there?');
      clock.advance(3_000);
      expect(line.soundMs).toBe(name === 'mute.nudged' ? 3_000 : 1_000);
    }
  });
});

test('a caller’s sound is told by its loudness, and by nothing else', () => {
  const message = (amplitude: number): Buffer => {
    const pcm = Int16Array.from({ length: 320 }, (_, at) => amplitude * Math.sin(at / 5));
    const data = Buffer.from(pcm.buffer).toString('base64');
    return Buffer.from(
      JSON.stringify({ realtimeInput: { audio: { mimeType: 'audio/pcm;rate=16000', data } } }),
    );
  };
  expect(callerSound(message(6_000))).toEqual({ ms: 20.0625, isLoud: true });
  expect(callerSound(message(20))?.isLoud).toBe(false);
  expect(callerSound(Buffer.from('{"clientContent":{"turns":[]}}'))).toBeUndefined();
});
