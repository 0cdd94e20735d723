/**
 * What the probe says to the agents that ship, and what must come of it: each tool of each is asked for in every mode in which
 * it can answer. Each sentence is plain enough for a real model, and has an answer in the rehearsal's dialogues.
 */
import {
  type Answer,
  type Conversation,
  type Line,
  PROBE_MODES,
  type ProbeMode,
} from './probe-conversation.js';

export interface ProbeTurn {
  readonly agent: string;
  readonly name: string;
  /** Conversations of one user, one after the other. */
  readonly says: readonly (readonly Line[])[];
  /** Without it, all. */
  readonly modes?: readonly ProbeMode[];
  readonly shows?: Conversation['shows'];
  /** Its answers belong to the result. */
  readonly isTold?: boolean;
  /** What is wrong with the answers beside; undefined for nothing. A real model words its answers itself, and is not asked. */
  readonly fault?: (answers: readonly Answer[]) => string | undefined;
}

/** Those in which the turn is asked. */
export function modesOf({ modes = PROBE_MODES }: ProbeTurn): readonly ProbeMode[] {
  return modes;
}

const IN_TEXT = ['run', 'sse'] as const;
const LIVE = ['live'] as const;

const REFUND = {
  text: 'Refund order A-10293 because it arrived broken. Yes, I am sure.',
  calls: ['process_refund'],
};
const DENIED = {
  text: 'Refund order A-30158 because it takes too long. I know that it is not here yet, please try all the same.',
  calls: ['process_refund'],
};
const RECALL = { text: 'What do you remember of me?', calls: [] };
const STOCK = { text: 'Monitor the price of $XYZ.', calls: ['monitor_stock_price'] };

const CONCIERGE: readonly ProbeTurn[] = [
  {
    agent: 'concierge',
    name: 'one tool',
    says: [[{ text: 'What is the weather in London?', calls: ['get_weather'] }]],
    fault: ([answer]) => lacks(answer, 'London'),
  },
  {
    agent: 'concierge',
    name: 'two tools at once, answered once',
    says: [[{ text: 'Weather and time in London, please.', calls: ['get_weather', 'get_time'] }]],
    fault: ([answer]) =>
      answer?.callGroups === 1 && answer.messages === 1
        ? lacks(answer, 'London')
        : `${answer?.callGroups} messages with calls, ${answer?.messages} answers`,
  },
  {
    agent: 'concierge',
    name: 'calculator',
    says: [[{ text: 'What is 15 + 25?', calls: ['calculate'] }]],
    fault: ([answer]) => lacks(answer, '40'),
  },
  {
    agent: 'concierge',
    name: 'search',
    says: [[{ text: 'When is breakfast?', calls: ['search'] }]],
    fault: ([answer]) => lacks(answer, 'seven to ten'),
  },
  {
    agent: 'concierge',
    name: 'what a tool knows of its conversation',
    says: [
      [
        { text: 'I prefer a quiet room.', calls: ['set_preference'] },
        { text: 'What do you know of me?', calls: ['review_conversation'] },
      ],
    ],
    fault([answer]) {
      const { recent, notes_version: version } = answer?.responses[1]?.response ?? {};
      if (!JSON.stringify(recent).includes('[result of set_preference]'))
        return 'it does not know what was done';
      return version === 0 ? lacks(answer, 'room: quiet') : 'its notes are not kept';
    },
  },
  {
    agent: 'concierge',
    name: 'kept for the next stay',
    says: [
      [
        { text: 'Please remember that I drink tea', calls: ['remember'] },
        { text: 'Max is my dog', calls: ['relate'] },
      ],
    ],
  },
];

const SUPPORT: readonly ProbeTurn[] = [
  {
    agent: 'support',
    name: 'look an order up',
    says: [[{ text: 'Where is order A-10293?', calls: ['lookup_order'] }]],
    fault: ([answer]) => lacks(answer, 'delivered'),
  },
  {
    agent: 'support',
    name: 'a refund asked for twice is one',
    says: [[REFUND], [REFUND]],
    fault: (answers) => {
      const [first, again] = answers.map(({ responses }) => responses[0]?.response['refund_id']);
      return typeof first === 'string' && first === again ? undefined : 'the refund ids differ';
    },
  },
  {
    agent: 'support',
    name: 'a refund that the policy denies',
    says: [[DENIED]],
    fault: ([answer]) => notRefused(answer, 'refused'),
  },
  {
    agent: 'support',
    name: 'remembered in the next conversation',
    says: [[{ text: 'Please remember that I prefer mornings', calls: ['remember'] }], [RECALL]],
    fault: ([, recalled]) => lacks(recalled, 'prefer mornings'),
  },
  {
    agent: 'support',
    name: 'related in the next conversation',
    says: [[{ text: 'Max is my dog', calls: ['relate'] }], [RECALL]],
    fault: ([, recalled]) => lacks(recalled, 'Max'),
  },
  {
    agent: 'support',
    name: 'a human, without a telephone',
    says: [[{ text: 'I want to speak with a human, please.', calls: ['connect_to_human'] }]],
    fault: ([answer]) => notRefused(answer, 'cannot be connected'),
  },
  {
    agent: 'support',
    name: 'the end',
    modes: LIVE,
    says: [[{ text: 'That is all. Goodbye.', calls: ['end_call'] }]],
    fault: ([answer]) => lacks(answer, 'Goodbye'),
  },
];

const MONITOR: readonly ProbeTurn[] = [
  {
    agent: 'monitor',
    name: 'a monitor is refused in text',
    modes: IN_TEXT,
    says: [[STOCK]],
    fault: ([answer]) => notRefused(answer, 'needs a live conversation'),
  },
  {
    agent: 'monitor',
    name: 'a stock, until it is stopped',
    modes: LIVE,
    says: [
      [
        { ...STOCK, reports: 1 },
        { text: 'Stop watching the price.', calls: ['stop_streaming'] },
      ],
    ],
    fault: ([answer]) => lacks(answer, 'XYZ is 300'),
  },
  {
    agent: 'monitor',
    name: 'the line, until it is stopped',
    modes: LIVE,
    shows: 'noise',
    says: [
      [
        { text: 'Listen to my line.', calls: ['monitor_caller_audio'], reports: 1 },
        { text: 'Stop listening to my line.', calls: ['stop_streaming'] },
      ],
    ],
    fault: ([answer]) => lacks(answer, 'a steady noise'),
  },
  {
    agent: 'monitor',
    name: 'pictures, until it is stopped',
    modes: LIVE,
    shows: 'picture',
    says: [
      [
        { text: 'Count the people in my pictures.', calls: ['monitor_video_stream'], reports: 1 },
        { text: 'Stop watching the pictures.', calls: ['stop_streaming'] },
      ],
    ],
    fault: ([answer]) => lacks(answer, '2 people'),
  },
];

export const PROBE_TURNS: readonly ProbeTurn[] = [...CONCIERGE, ...SUPPORT, ...MONITOR];

function lacks(answer: Answer | undefined, words: string): string | undefined {
  return answer?.text.includes(words) === true ? undefined : `the answer does not say "${words}"`;
}

function notRefused(answer: Answer | undefined, why: string): string | undefined {
  const error = answer?.responses[0]?.response['error'];
  return typeof error === 'string' && error.includes(why) ? undefined : 'it was not refused';
}
