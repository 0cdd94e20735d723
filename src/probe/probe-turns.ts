/**
 * What the probe says to the agents that ship, and what must come of it. Each sentence is plain enough for a real model, and
 * has an answer in the rehearsal's dialogues.
 */
import type { Answer } from './probe-conversation.js';

export interface ProbeTurn {
  readonly agent: string;
  readonly name: string;
  /** One after the other by one user, each in a session of its own, and the functions that each leads to. */
  readonly says: readonly { readonly text: string; readonly calls: readonly string[] }[];
  /** What is wrong with the answers beside; undefined for nothing. A real model words its answers itself, and is not asked. */
  readonly fault?: (answers: readonly Answer[]) => string | undefined;
}

const REFUND = {
  text: 'Refund order A-10293 because it arrived broken. Yes, I am sure.',
  calls: ['process_refund'],
};
const DENIED = {
  text: 'Refund order A-30158 because it takes too long. I know that it is not here yet, please try all the same.',
  calls: ['process_refund'],
};

export const PROBE_TURNS: readonly ProbeTurn[] = [
  {
    agent: 'concierge',
    name: 'one tool',
    says: [{ text: 'What is the weather in London?', calls: ['get_weather'] }],
    fault: ([answer]) => lacks(answer, 'London'),
  },
  {
    agent: 'concierge',
    name: 'two tools at once, answered once',
    says: [{ text: 'Weather and time in London, please.', calls: ['get_weather', 'get_time'] }],
    fault: ([answer]) =>
      answer?.callGroups === 1 && answer.messages === 1
        ? lacks(answer, 'London')
        : `${answer?.callGroups} messages with calls, ${answer?.messages} answers`,
  },
  {
    agent: 'concierge',
    name: 'calculator',
    says: [{ text: 'What is 15 + 25?', calls: ['calculate'] }],
    fault: ([answer]) => lacks(answer, '40'),
  },
  {
    agent: 'support',
    name: 'look an order up',
    says: [{ text: 'Where is order A-10293?', calls: ['lookup_order'] }],
    fault: ([answer]) => lacks(answer, 'delivered'),
  },
  {
    agent: 'support',
    name: 'a refund asked for twice is one',
    says: [REFUND, REFUND],
    fault: (answers) => {
      const [first, again] = answers.map(({ responses }) => responses[0]?.response['refund_id']);
      return typeof first === 'string' && first === again ? undefined : 'the refund ids differ';
    },
  },
  {
    agent: 'support',
    name: 'a refund that the policy denies',
    says: [DENIED],
    fault: ([answer]) => {
      const error = answer?.responses[0]?.response['error'];
      return typeof error === 'string' && error.includes('refused') ? undefined : 'it was not refused';
    },
  },
  {
    agent: 'support',
    name: 'remembered in the next conversation',
    says: [
      { text: 'Please remember that I prefer mornings', calls: ['remember'] },
      { text: 'What do you remember of me?', calls: [] },
    ],
    fault: ([, recalled]) => lacks(recalled, 'prefer mornings'),
  },
];

function lacks(answer: Answer | undefined, words: string): string | undefined {
  return answer?.text.includes(words) === true ? undefined : `the answer does not say "${words}"`;
}
