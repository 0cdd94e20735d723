/**
 * What a run is begun with: its session, which is there before anything is heard; what was said and done in it before; and the
 * configuration it goes by. Rows D2, D5, D15.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/clock.js';
import { defineTool, type ToolContext } from '../../src/index.js';
import { DEFAULT_FROM } from '../../src/replay/webhook-params.js';
import { answerTo, desk, linesOf } from '../support/probe-agents.js';
import { says, Stage } from '../support/stage.js';

/** What the tool saw of each run, as it was then. */
const seen: { invocationId: string; lines: string[]; ids: string[]; earlier: number }[] = [];
let config: ToolContext['runConfig'] | undefined;

const look = defineTool({
  name: 'look',
  description: 'Looks around.',
  execute(_args, { events, invocationId, runConfig }) {
    const earlier = events.filter((event) => event.invocationId !== invocationId).length;
    const ids = events.map(({ id }) => id);
    seen.push({ invocationId, lines: linesOf(events), ids, earlier });
    config = runConfig;
    return { looked: true };
  },
});

const runConfig = {
  speechConfig: { voiceConfig: { prebuiltVoiceConfig: { voiceName: 'Kore' } }, languageCode: 'en-GB' },
  maxConcurrentTools: 2,
  toolResponses: 'each',
  limits: { maxTurns: 40, maxTokens: 90_000, maxMinutes: 12 },
  getSecret: () => null,
} as const;
const agent = desk({ tools: [look], runConfig });

let stage: Stage;
beforeAll(async () => {
  stage = await Stage.open({}, systemClock, [agent]);
  stage.textModel.answer = (asked) => {
    if (asked.told.at(-1)?.includes('[response]') === true) asked.answers('I have looked.');
    else asked.calls('look', `c${stage.textModel.asked.length}`);
  };
});
afterAll(() => stage.close());

describe('D2: the events of a session', () => {
  it('are none at the first contact, and later all of every run before; the last five are the last that were stored', async () => {
    seen.length = 0;
    for (const words of ['One.', 'Two.', 'Three.']) await stage.run('long', words);
    const [first, second, third] = seen;
    expect(seen.map(({ earlier }) => earlier)).toEqual([0, 4, 8]);
    expect(new Set(seen.map(({ invocationId }) => invocationId)).size).toBe(3);
    expect(first!.lines).toEqual(['user: One.', 'call c1']);
    expect(second!.lines).toEqual([
      'user: One.',
      'call c1',
      'response c1',
      'desk: I have looked.',
      'user: Two.',
      'call c3',
    ]);
    const stored = (await stage.events('long')).map(({ id }) => id);
    // Of the third run, the result and the answer came later.
    expect(third!.ids).toEqual(stored.slice(0, -2));
    expect(third!.ids.slice(-5)).toEqual(stored.slice(-7, -2));
    expect(third!.lines.slice(-5)).toEqual([
      'call c3',
      'response c3',
      'desk: I have looked.',
      'user: Three.',
      'call c5',
    ]);
  });

  it('are those of this session and user alone', async () => {
    seen.length = 0;
    await stage.run('long', 'Me, too.', 'somebody else');
    await stage.run('another', 'Me, too.');
    expect(seen.map(({ earlier }) => earlier)).toEqual([0, 0]);
  });
});

describe('D5: the configuration of a run', () => {
  it('is what the agent says, whole and for reading only, live and in text', async () => {
    const call = await stage.call();
    call.model.toolCall({ id: 'c1', name: 'look' });
    await answerTo(call.model, 'c1');
    call.phone.hangUp();
    await call.over;
    await stage.idle();
    const live = config;
    config = undefined;
    await stage.run('configured', 'Look.');
    for (const given of [live, config]) {
      expect(given).toMatchObject(runConfig);
      expect(() => Object.assign(given!, { maxConcurrentTools: 99 })).toThrow(TypeError);
      expect(() => Object.assign(given!.limits!, { maxMinutes: 99 })).toThrow(TypeError);
      expect(given).toMatchObject(runConfig);
    }
  });
});

describe('D15: a session', () => {
  it('is made when the call’s stream opens, before anything is heard of it', async () => {
    const { phone, model, over, callSid } = await stage.call();
    // The model is asked to greet, and has said nothing.
    await stage.begun(callSid);
    const session = await stage.session(callSid);
    expect(session).toMatchObject({ id: callSid, appName: 'desk', userId: DEFAULT_FROM });
    expect(linesOf(session.events)).toEqual([]);
    expect(phone.record().stretches).toEqual([]);
    says(model, 'Hello.', { ms: 200 });
    phone.hangUp();
    await over;
    await stage.ended(callSid);
    await stage.idle();
  });
});
