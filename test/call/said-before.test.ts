import { describe, expect, it } from 'vitest';
import { defineAgent } from '../../src/agent/agent.js';
import { LINE_RULES, WEB_RULES } from '../../src/call/line-texts.js';
import { liveSetup } from '../../src/call/live-setup.js';
import { saidBefore } from '../../src/call/said-before.js';
import { type Event, NO_ACTIONS, type Part } from '../../src/event/event.js';
import { LIVE_HISTORY_MAX_CHARS, LIVE_HISTORY_VALUE_MAX_CHARS } from '../../src/limits.js';

let count = 0;

function event(author: string, parts: readonly Part[], changed: Partial<Event> = {}): Event {
  const id = `e${(count += 1)}`;
  return {
    id,
    invocationId: 'i1',
    author,
    timestamp: 1,
    content: { parts },
    actions: NO_ACTIONS,
    ...changed,
  };
}

const CALL = { functionCall: { id: 'c1', name: 'process_refund', args: { order_id: 'A-10293' } } };
const answer = (response: Record<string, unknown>): Part => ({
  functionResponse: { id: 'c1', name: 'process_refund', response },
});

describe('what a live model is told of the past', () => {
  it('is nothing where nothing was said', () => {
    expect(saidBefore([])).toBeUndefined();
    expect(
      saidBefore([event('user', [{ text: ' ' }]), event('support', [{ text: 'Hm', thought: true }])]),
    ).toBe(undefined);
  });

  it('is what was heard, and what functions came to, in order', () => {
    const told = saidBefore([
      event('support', [{ text: 'Hello.' }]),
      event('user', [{ text: 'Refund it, "now".' }]),
      event('support', [{ text: 'One moment.' }, CALL]),
      event('support', [answer({ status: 'pending' })]),
      event('support', [answer({ refund_id: 'R-1' })]),
      event('support', [{ text: 'It is' }], { interrupted: true }),
    ]);
    expect(told?.split('\n').slice(1)).toEqual([
      'You: "Hello."',
      'User: "Refund it, \\"now\\"."',
      'You: "One moment."',
      'You called process_refund({"order_id":"A-10293"}), and the result was {"refund_id":"R-1"}',
      'You: "It is"',
    ]);
  });

  it('says of a function whose result is missing that nobody knows, whatever another run called by that id', () => {
    const told = saidBefore([
      event('support', [CALL]),
      event('support', [answer({ refund_id: 'R-1' })], { invocationId: 'i2' }),
    ]);
    expect(told).toContain(
      'You called process_refund({"order_id":"A-10293"}); what came of it is not known.',
    );
    expect(told).not.toContain('R-1');
  });

  it('leaves out that a conversation was ended', () => {
    expect(saidBefore([event('support', [{ functionCall: { id: 'c1', name: 'end_call', args: {} } }])])).toBe(
      undefined,
    );
  });

  it('is bounded: the newest lines, and of a long result its beginning', () => {
    const long = 'x'.repeat(3 * LIVE_HISTORY_VALUE_MAX_CHARS);
    const events = Array.from({ length: 100 }, (_, at) => [
      event('user', [{ text: `Question ${at}.` }]),
      event('support', [CALL], { invocationId: `r${at}` }),
      event('support', [answer({ long })], { invocationId: `r${at}` }),
    ]).flat();
    const told = saidBefore(events)!;
    expect(told.length).toBeLessThan(LIVE_HISTORY_MAX_CHARS + 200);
    expect(told).toContain('Question 99.');
    expect(told).not.toContain('Question 1.');
    expect(told.match(/Question/g)!.length).toBeGreaterThan(5);
  });

  it('stands behind the rules of the line, whichever it is', () => {
    const agent = defineAgent({ name: 'support', instruction: 'Be brief.' });
    const ctx = {
      invocationId: 'i',
      callSid: 'CA1',
      appName: 'support',
      userId: 'u',
      sessionId: 'CA1',
      callerVerified: false,
    };
    const history = [event('user', [{ text: 'Well?' }])];
    for (const [isWeb, rules] of [
      [false, LINE_RULES],
      [true, WEB_RULES],
    ] as const) {
      const { instruction } = liveSetup(agent, ctx, { isWeb, history });
      expect(instruction).toBe(`Be brief.\n\n${rules}\n\n${saidBefore(history)!}`);
      expect(liveSetup(agent, ctx, { isWeb }).instruction).toBe(`Be brief.\n\n${rules}`);
    }
  });
});
