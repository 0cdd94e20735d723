import { describe, expect, it } from 'vitest';
import {
  REHEARSAL_HANDLE_LIFE_MS,
  REHEARSAL_HANDLES_MAX,
} from '../../../src/model/rehearsal/rehearsal-limits.js';
import { DIALOGUE_START } from '../../../src/model/rehearsal/dialogue-step.js';
import { type Lineage, ResumptionHandles } from '../../../src/model/rehearsal/resumption-handles.js';
import { VirtualClock } from '../../../src/replay/virtual-clock.js';
import { answerToSetup, eventually } from './rehearsal-client.js';
import { callsIn, declare, Stage } from './rehearsal-stage.js';

describe('a resumption handle', () => {
  it('is good until two hours after its connection ended, as often as wanted', () => {
    const clock = new VirtualClock();
    const handles = new ResumptionHandles(clock);
    const lineage = { resumptions: 0 };
    const holder: { endedMs: number | undefined; lineage: Lineage } = { endedMs: undefined, lineage };
    const handle = handles.offer(DIALOGUE_START, holder);
    clock.advance(2 * REHEARSAL_HANDLE_LIFE_MS);
    expect(handles.take(handle)).toEqual({ refused: 'in_use' });
    holder.endedMs = clock.nowMs();
    clock.advance(REHEARSAL_HANDLE_LIFE_MS);
    expect(handles.take(handle)).toEqual({ state: DIALOGUE_START, lineage });
    expect(handles.take(handle)).toEqual({ state: DIALOGUE_START, lineage });
    clock.advance(1);
    expect(handles.take(handle)).toEqual({ refused: 'unknown' });
    expect(handles.take('made up')).toEqual({ refused: 'unknown' });
  });

  it('is forgotten when there are too many', () => {
    const handles = new ResumptionHandles(new VirtualClock());
    const holder = { endedMs: 0, lineage: { resumptions: 0 } };
    const first = handles.offer(DIALOGUE_START, holder);
    for (let n = 0; n < REHEARSAL_HANDLES_MAX; n += 1) handles.offer(DIALOGUE_START, holder);
    expect(handles.take(first)).toEqual({ refused: 'unknown' });
  });

  it('is refused with 1011 while the old connection is open', async () => {
    const stage = await Stage.open({});
    const old = await stage.connect({ sessionResumption: {} });
    await eventually(() =>
      old.messages.some(({ sessionResumptionUpdate }) => sessionResumptionUpdate?.resumable),
    );
    const handle = old.messages.at(-1)?.sessionResumptionUpdate?.newHandle ?? '';
    const setup = { model: 'models/rehearsal', sessionResumption: { handle } };
    expect(await answerToSetup(stage.service.url, setup)).toMatch(/^1011 .*still connected/);
    old.session.close();
    expect(await answerToSetup(stage.service.url, setup)).toMatch(/^\{"setupComplete"/);
    await stage.close();
  });

  it('is not given out while speaking or while a function runs', async () => {
    const stage = await Stage.open({ texts: [{ contains: 'go', say: 'Yes.', call: { name: 'look_up' } }] });
    const client = await stage.connect({ sessionResumption: {}, ...declare(['look_up']) });
    const updates = () =>
      client.messages.flatMap(({ sessionResumptionUpdate }) => sessionResumptionUpdate ?? []);
    const messages = await stage.say(client, 'go');
    await eventually(() => updates().length === 3);
    expect(updates().map(({ resumable, newHandle }) => [resumable, newHandle !== ''])).toEqual([
      [true, true],
      [false, false],
      [false, false],
    ]);
    const { id = '' } = callsIn(messages)[0] ?? {};
    client.session.sendToolResponse({ functionResponses: [{ id, name: 'look_up', response: {} }] });
    await eventually(() => updates().at(-1)?.resumable === true);
    await stage.close();
  });
});
