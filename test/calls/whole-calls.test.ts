/** Whole calls through the real sockets, parsers and HTTP of the server, a few lines each. */
import { describe, expect, it } from 'vitest';
import { model, phone, playedCall, rest } from '../support/played-call.js';

const GREETING = 'Hello, how can I help you today?';

describe('a caller', () => {
  it('hears the greeting and hangs up', async () => {
    const call = await playedCall([model(420).says(GREETING, 2000), phone(4000).hangsUp()]);
    expect(call.heard).toEqual([{ role: 'model', text: GREETING, interrupted: false }]);
    expect(call.ended).toBe('caller_hangup');
  });

  it('who cuts in has heard only what was played', async () => {
    const call = await playedCall([
      model(420).says(GREETING, 2000),
      phone(2600).isSilent(2000),
      model(3000).says('One two three four five six seven eight nine ten.', 5000, { end: 'nothing' }),
      phone(4600).plays('barge-in.wav', 1600),
      model(5000).sends({ serverContent: { interrupted: true } }),
      model(5010).sends({ serverContent: { turnComplete: true } }),
      phone(7000).hangsUp(),
    ]);
    const cut = call.heard.at(-1);
    expect(cut?.interrupted).toBe(true);
    expect(cut?.text).toMatch(/^One two three( four)?( five)?$/);
    const clears = call.lines.filter((line) => line.leg === 'phone' && line.message?.['event'] === 'clear');
    expect(clears.map(({ at, dir }) => [at, dir])).toEqual([[5000, 'out']]);
  });

  it('whose agent says goodbye hears it whole before the line is cut', async () => {
    const goodbye = 'Thank you for calling. Goodbye.';
    const call = await playedCall([
      model(420).says(GREETING, 2000),
      phone(2600).isSilent(6000),
      model(3000).says(goodbye, 2000, { end: 'nothing' }),
      model(3600).sends({ toolCall: { functionCalls: [{ id: 'c1', name: 'end_call', args: {} }] } }),
      model(3700).sends({ serverContent: { generationComplete: true } }),
      model(3710).sends({ serverContent: { turnComplete: true } }),
      rest(6000),
    ]);
    const cut = call.lines.find((line) => line.leg === 'rest' && line.dir === 'out');
    expect(cut?.at).toBeGreaterThanOrEqual(3000 + 2000);
    expect(call.heard.at(-1)).toEqual({ role: 'model', text: goodbye, interrupted: false });
    expect(call.ended).toBe('agent_ended');
  });

  it('is told when the model is lost', async () => {
    const call = await playedCall([
      model(420).says(GREETING, 2000),
      model(3000).closes(1011),
      phone(32_000).hangsUp(),
    ]);
    expect(call.heard.at(-1)?.text).toMatch(/technical problem/);
    expect(call.ended).toBe('model_lost');
  });
});
