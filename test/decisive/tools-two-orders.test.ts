/**
 * Decisive script 1: two tools of one message, in every order in which a model may end its turn, as each live model behaves. Rows
 * A2, A3, A6, A7, A8, A9, A10, A18, A21, X1, X2, X30.
 */
import { describe, expect, it } from 'vitest';
import { PROMPT_TEXTS } from '../../src/call/prompts.js';
import { systemClock } from '../../src/clock.js';
import { functionCalls, functionResponses } from '../../src/event/event.js';
import { answersTo, desk, HeldTool, linesOf, LIVE_MODELS, toolFrames } from '../support/probe-agents.js';
import { says, Stage } from '../support/stage.js';
import { tone } from '../support/call-rig.js';

/** When the model ends the turn in which it called. */
type TurnEnd = 'before its tools are done' | 'only with its answer' | 'behind its tools';

async function twoTools(modelName: string, turnEnd: TurnEnd, toolResponses: 'group' | 'each') {
  const fast = new HeldTool('fast');
  const slow = new HeldTool('slow');
  const agent = desk({ tools: [fast.tool, slow.tool], runConfig: { toolResponses } });
  const stage = await Stage.open({ GEMINI_MODEL: modelName }, systemClock, [agent]);
  try {
    const call = await stage.call();
    const { model, phone, callSid } = call;
    const watcher = await stage.watch(callSid);
    const texts = model.receivedTextInputs.length;
    model.sendInputTranscription('Where is my order?');
    model.sendAudio(tone(400));
    model.sendOutputTranscription('Let me check. ');
    const sound = model.receivedAudio.length;
    model.toolCall({ id: 'c1', name: 'fast' }, { id: 'c2', name: 'slow' });
    if (turnEnd === 'before its tools are done') model.turnComplete();
    await watcher.until(
      'both to run',
      () => fast.isWaiting && slow.isWaiting && watcher.of('tool').length === 2,
    );
    model.sendInputTranscription(' It is A-10293.');
    model.send({ usageMetadata: { promptTokenCount: 1, responseTokenCount: 1, totalTokenCount: 2 } });
    const soundBefore = model.receivedAudio.length;
    fast.letGo();
    await watcher.until('the fast one', () => toolFrames(watcher).includes('c1 fast done'));
    const whileSlow = { running: slow.running, answers: answersTo(model).length };
    // All of the first words have been heard by now.
    await watcher.until('a while', () => phone.record().durationMs > 2_500);
    const soundWhileSlow = model.receivedAudio.length;
    slow.letGo();
    await model.waitUntil(() => answersTo(model).flat().length === 2);
    if (turnEnd === 'behind its tools') model.turnComplete();
    await watcher.until('the end of the tools', () => toolFrames(watcher).includes('c2 slow done'));
    says(model, 'It is on its way.', { ms: 400 });
    await watcher.until('the answer', ({ sealed }) => sealed.some((text) => text.includes('way.')));
    await model.waitUntil(() => model.receivedAudio.length > soundWhileSlow);
    phone.hangUp();
    await call.over;
    await watcher.ended();
    const events = await stage.events(callSid);
    await stage.idle();
    return {
      answers: answersTo(model),
      texts: model.receivedTextInputs.slice(texts),
      watcher,
      events,
      whileSlow,
      soundKeptFlowing: soundWhileSlow > soundBefore + 6_400,
      soundHeld: soundWhileSlow <= sound + 6_400,
    };
  } finally {
    await stage.close();
  }
}

/** Where a function takes long enough, the caller is asked to wait. */
const isClip = (text: string): boolean => text.endsWith(PROMPT_TEXTS.hold);

describe.each(LIVE_MODELS)('two tools of one message, %s', (modelName) => {
  const takesSound = modelName === 'gemini-3.8-live';

  it.each<TurnEnd>(['before its tools are done', 'only with its answer', 'behind its tools'])(
    'A2 A3 A6 A7 A8 A9 A10 A18 A21: the model ends its turn %s',
    async (turnEnd) => {
      const seen = await twoTools(modelName, turnEnd, 'group');
      // One frame with each id once, and nothing else that would make the model speak.
      expect(seen.answers).toEqual([
        [
          { id: 'c1', name: 'fast', response: { message: 'fast is done.' } },
          { id: 'c2', name: 'slow', response: { message: 'slow is done.' } },
        ],
      ]);
      expect(seen.texts).toEqual([]);
      // Each result was told as it came.
      expect(seen.whileSlow).toEqual({ running: 1, answers: 0 });
      expect(toolFrames(seen.watcher)).toEqual([
        'c1 fast running',
        'c2 slow running',
        'c1 fast done',
        'c2 slow done',
      ]);
      if (takesSound) expect(seen.soundKeptFlowing).toBe(true);
      else expect(seen.soundHeld).toBe(true);
      // One message of the agent's across the gap.
      const deltas = seen.watcher.of('delta').filter(({ role, text }) => role === 'model' && !isClip(text));
      expect(deltas.map(({ text }) => text).join('')).toBe('Let me check. It is on its way.');
      const msgs = new Set([...deltas, ...seen.watcher.of('tool')].map(({ msg }) => msg));
      expect([...msgs]).toHaveLength(1);
      const done = seen.watcher.of('done').filter(({ role, text }) => role === 'model' && !isClip(text));
      expect(done.map(({ msg, text }) => [msg, text])).toEqual([
        [[...msgs][0], 'Let me check. It is on its way.'],
      ]);
      expect(linesOf(seen.events).filter((line) => !isClip(line))).toEqual([
        'user: Where is my order? It is A-10293.',
        'desk: Let me check. It is on its way.',
        'call c1 c2',
        'response c1',
        'response c2',
      ]);
      expect(seen.events.flatMap((event) => functionCalls(event)).map(({ id }) => id)).toEqual(['c1', 'c2']);
      expect(seen.events.flatMap((event) => functionResponses(event)).map(({ id }) => id)).toEqual([
        'c1',
        'c2',
      ]);
    },
  );

  it('X1: with toolResponses "each" every result goes as it comes', async () => {
    const seen = await twoTools(modelName, 'only with its answer', 'each');
    expect(seen.answers.map((answers) => answers.map(({ id }) => id))).toEqual([['c1'], ['c2']]);
    expect(seen.whileSlow).toEqual({ running: 1, answers: 1 });
    expect(seen.texts).toEqual([]);
  });
});
