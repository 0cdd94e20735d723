import { describe, expect, test } from 'vitest';
import { AGENTS, idsOf, numberIn, planCall, WAITING_TOOL } from './call-plan.js';
import { chosenFaults, FAULTS } from './fault-catalogue.js';

const DRAW = { seed: 7, calls: 200, only: '' };
const plans = Array.from({ length: DRAW.calls }, (_, number) => planCall(DRAW, number));

describe('the calls of a soak', () => {
  test('are the same from the same seed, however many there are, and others from another', () => {
    expect(plans.map((_, number) => planCall(DRAW, number))).toEqual(plans);
    expect(planCall({ ...DRAW, calls: 10 }, 150)).toEqual(plans[150]);
    expect(planCall({ ...DRAW, seed: 8 }, 0)).not.toEqual(plans[0]);
  });

  test('have every fault and every agent among two hundred', () => {
    expect(new Set(plans.map(({ fault }) => fault.name))).toEqual(new Set(FAULTS.map(({ name }) => name)));
    expect(new Set(plans.map(({ agent }) => agent))).toEqual(new Set(AGENTS));
    expect(FAULTS.length).toBeLessThanOrEqual(150);
  });

  test('have a tool that takes time where the fault needs one', () => {
    const struck = plans.filter(({ fault }) => fault.toolMs !== undefined);
    expect(struck.length).toBeGreaterThan(10);
    for (const { turns, faultTurn } of struck) expect(turns[faultTurn]?.tool?.name).toBe(WAITING_TOOL);
  });

  test('can be told by their CallSid', () => {
    const ids = idsOf(20_260_101, 199);
    const callSid = `CA${ids().replaceAll('-', '')}`;
    expect(callSid).toMatch(/^CA[0-9a-f]{32}$/);
    expect(ids()).not.toBe(ids());
    expect(numberIn(`You are in the call ${callSid}.`)).toBe(199);
    expect(numberIn('You are in a call.')).toBeUndefined();
  });
});

test('faults are chosen by words of their names', () => {
  expect(chosenFaults('two-deaths, watcher').map(({ name }) => name)).toEqual([
    'two-deaths.greeting',
    'two-deaths.mid-speech',
    'two-deaths.caller-speaks',
    'two-deaths.tool-runs',
    'watcher-stalled',
    'watcher-slow',
  ]);
  expect(() => chosenFaults('weather')).toThrow('no fault is named weather');
  expect(new Set(FAULTS.map(({ name }) => name)).size).toBe(FAULTS.length);
});
