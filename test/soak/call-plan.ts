/**
 * What one call of the soak is going to do, drawn from the seed and the call's number alone: caller and model each read
 * their part in it, wherever they run, and the same seed makes the same calls.
 */
import { Chance } from '../fuzz/seed.js';
import { chosenFaults, type Fault } from './fault-catalogue.js';

export const AGENTS = ['support', 'monitor', 'concierge'] as const;
export type AgentName = (typeof AGENTS)[number];

export interface PlannedTool {
  readonly name: string;
  readonly args: Readonly<Record<string, unknown>>;
}

/** One thing that the caller says, and what the model does about it. */
export interface PlannedTurn {
  /** The caller thinks for so long before speaking, and then speaks for so long. */
  readonly pauseMs: number;
  readonly callerMs: number;
  readonly answerMs: number;
  readonly tool: PlannedTool | undefined;
}

export interface CallPlan {
  readonly number: number;
  readonly agent: AgentName;
  readonly from: string;
  readonly greetingMs: number;
  readonly turns: readonly PlannedTurn[];
  readonly fault: Fault;
  /** The turn that the fault strikes, from 0. */
  readonly faultTurn: number;
  /** A caller cuts in there as well, unless the fault is already the caller's. */
  readonly bargesInAt: number | undefined;
  /** Who ends the call when all turns are over. */
  readonly endsBy: 'caller' | 'agent';
}

export interface Draw {
  readonly seed: number;
  readonly calls: number;
  /** Words of fault names; empty: all faults. */
  readonly only: string;
}

/** Quick tools of the agents that ship. */
const TOOLS: Readonly<Record<AgentName, readonly PlannedTool[]>> = {
  support: [{ name: 'lookup_order', args: { order_id: 'A-10293' } }],
  monitor: [{ name: 'monitor_caller_audio', args: {} }],
  concierge: [
    { name: 'get_time', args: { city: 'London' } },
    { name: 'get_weather', args: { city: 'London' } },
    { name: 'search', args: { query: 'breakfast' } },
  ],
};

/** The tool that the soak gives to every agent. */
export const WAITING_TOOL = 'soak_wait';

/** Which faults the calls get: all of them in a drawn order, and again. */
function dealtFault({ seed, calls, only }: Draw, number: number): Fault {
  const chance = new Chance(seed);
  const faults = chosenFaults(only);
  const dealt: Fault[] = [];
  while (dealt.length < Math.max(calls, number + 1)) dealt.push(...shuffled(faults, chance));
  return dealt[number]!;
}

function shuffled<T>(items: readonly T[], chance: Chance): T[] {
  const mixed = [...items];
  for (let at = mixed.length - 1; at > 0; at -= 1) {
    const other = chance.below(at + 1);
    [mixed[at], mixed[other]] = [mixed[other]!, mixed[at]!];
  }
  return mixed;
}

export function planCall(draw: Draw, number: number): CallPlan {
  const fault = dealtFault(draw, number);
  const chance = new Chance(Math.imul(draw.seed, 0x9e37_79b1) ^ (number + 1));
  chance.word();
  const between = (least: number, most: number): number => least + chance.below(most - least + 1);
  const agent = chance.pick(AGENTS);
  const count = between(2, 4);
  const faultTurn = chance.below(count);
  const turns = Array.from({ length: count }, (_, index): PlannedTurn => {
    const isStruck = index === faultTurn;
    const drawn = chance.once(5) ? chance.pick(TOOLS[agent]) : undefined;
    const slow = isStruck && fault.toolMs !== undefined;
    return {
      pauseMs: between(300, 1_500),
      callerMs: between(700, 2_200),
      answerMs: between(1_200, 3_500),
      tool: slow ? { name: WAITING_TOOL, args: { ms: fault.toolMs } } : isStruck ? undefined : drawn,
    };
  });
  const bargeIn = chance.once(4) ? chance.below(count) : undefined;
  return {
    number,
    agent,
    // Numbers kept for fiction: 555-0100 to 555-0199.
    from: `+120255501${String(number % 100).padStart(2, '0')}`,
    greetingMs: between(1_500, 3_500),
    turns,
    fault,
    faultTurn,
    bargesInAt: fault.caller === undefined && bargeIn !== faultTurn ? bargeIn : undefined,
    endsBy: chance.once(5) ? 'agent' : 'caller',
  };
}

/** The names of the calls: the number and the seed are in them, so that whoever sees a CallSid knows its plan. */
export function idsOf(seed: number, number: number): () => string {
  let count = 0;
  const hex = (value: number, digits: number): string => (value >>> 0).toString(16).padStart(digits, '0');
  return () => {
    count += 1;
    return `${hex(number, 8)}-${hex(seed, 8).slice(0, 4)}-${hex(seed, 8).slice(4)}-0000-${hex(count, 12)}`;
  };
}

/** The number of the call in a text that has its CallSid. */
export function numberIn(text: string): number | undefined {
  const [, digits] = /CA([0-9a-f]{8})[0-9a-f]{24}/.exec(text) ?? [];
  return digits === undefined ? undefined : Number.parseInt(digits, 16);
}
