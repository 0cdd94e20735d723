import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { type AgentCatalog, loadAgents } from '../../src/agent/agent-catalog.js';
import { systemClock } from '../../src/clock.js';
import {
  CALL_MUST_END,
  CALLER_IS_BACK,
  callerSilent,
  keyPressed,
  TRANSFER_FAILED,
} from '../../src/call/line-texts.js';
import { type Dialogue, readDialogue } from '../../src/model/rehearsal/dialogue.js';
import {
  DIALOGUE_START,
  type DialogueEvent,
  type DialogueState,
  dialogueStep,
} from '../../src/model/rehearsal/dialogue-step.js';
import { silentLog } from '../../src/observe/log.js';
import { PACKAGE_ROOT } from '../../src/package-root.js';

const folder = join(PACKAGE_ROOT, 'agents');
const names = ['concierge', 'monitor', 'support'];
/** Built in: not of the agent's own. */
const BUILT_IN = new Set(['end_call', 'stop_streaming']);

let catalog: AgentCatalog;
beforeAll(async () => {
  catalog = await loadAgents({ selected: 'support', folder, clock: systemClock, log: silentLog });
});

const dialogueOf = (name: string): Dialogue => readDialogue(join(folder, `${name}.rehearsal.json`));

/** What is called and said in turn, when the disclosure has been heard. */
function played(dialogue: Dialogue, events: readonly DialogueEvent[]) {
  let state: DialogueState = { ...DIALOGUE_START, disclosed: true };
  return events.map((event) => {
    const step = dialogueStep(dialogue, state, event);
    state = step.state;
    const calls = (step.reply?.calls ?? []).map(({ name, args }) => ({ name, args }));
    return { calls, say: step.reply?.say ?? '', isOther: step.isOther };
  });
}

const text = (words: string): DialogueEvent => ({ type: 'text', text: words });
const keys = (pressed: string): DialogueEvent[] => pressed.split('').map((key) => text(keyPressed(key)));
const spoken: DialogueEvent = { type: 'caller_finished', cutIn: false };

function callsOf(name: string, words: string) {
  const [answer] = played(dialogueOf(name), [text(words)]);
  return answer?.calls;
}

describe('the agents that ship', () => {
  it('load as they do in the server, and nothing in the folders beside them is one', () => {
    expect(catalog.names).toEqual(names);
    for (const name of names) expect(existsSync(join(folder, `${name}.rehearsal.json`))).toBe(true);
    expect(readdirSync(folder).filter((file) => file.endsWith('.ts'))).toHaveLength(names.length);
  });

  it.each(names)(
    '%s: its dialogue calls every tool that it has, with arguments it takes, and no other',
    (name) => {
      const dialogue = dialogueOf(name);
      const agent = catalog.find(name);
      const answers = [...dialogue.turns, ...dialogue.interruptions, ...dialogue.keys, ...dialogue.texts];
      const withoutDigits = dialogue.keys.flatMap(({ callWithoutDigits }) => callWithoutDigits ?? []);
      const calls = [
        ...answers.flatMap(({ call, calls: several = [] }) => [
          ...(call === undefined ? [] : [call]),
          ...several,
        ]),
        ...withoutDigits,
      ];
      const own = (agent?.tools ?? []).map((tool) => tool.name);
      const called = new Set(calls.map((call) => call.name).filter((one) => !BUILT_IN.has(one)));
      expect(called).toEqual(new Set(own));
      for (const { name: tool, args } of calls) {
        const read = agent?.tools?.find((one) => one.name === tool)?.readArguments(args);
        expect(read ?? {}).not.toHaveProperty('error');
      }
    },
  );

  it.each(names)('%s: its dialogue knows what the line tells it', (name) => {
    const told = [
      callerSilent(15),
      CALL_MUST_END,
      CALLER_IS_BACK,
      'Your connection to the caller was lost for a moment. Say so in a few words and go on.',
      'The caller has finished speaking and hears nothing. Answer now.',
    ].map(text);
    expect(played(dialogueOf(name), told).filter(({ isOther }) => isOther)).toEqual([]);
  });

  it.each(names)('%s: on the telephone every tool is reached by keys and turns', (name) => {
    const pressed = name === 'support' ? keys('#10293#*') : keys('12345678');
    const turns = Array.from({ length: 6 }, () => spoken);
    const called = played(dialogueOf(name), [...pressed, ...turns]).flatMap(({ calls }) =>
      calls.map((call) => call.name),
    );
    const own = (catalog.find(name)?.tools ?? []).map((tool) => tool.name);
    expect(own.filter((tool) => !called.includes(tool))).toEqual([]);
    expect(called).toContain('end_call');
  });
});

describe('the rehearsal of support', () => {
  it('looks up the number that was pressed, refunds it, and begins a new one with the next digit', () => {
    const calls = played(dialogueOf('support'), keys('10293#*20417#')).flatMap((answer) => answer.calls);
    expect(calls.map(({ name, args }) => [name, args['order_id']])).toEqual([
      ['lookup_order', '10293'],
      ['process_refund', '10293'],
      ['lookup_order', '20417'],
    ]);
  });

  it('has an answer where nobody could be reached', () => {
    expect(played(dialogueOf('support'), [text(TRANSFER_FAILED)])[0]?.isOther).toBe(false);
  });

  it.each([
    ['Where is my order A-10293?', 'lookup_order', { order_id: 'A-10293' }],
    ['A-10293', 'lookup_order', { order_id: 'A-10293' }],
    ['Please look up 10293', 'lookup_order', { order_id: '10293' }],
    [
      'Refund order A-10293 because it arrived broken.',
      'process_refund',
      { order_id: 'A-10293', reason: 'it arrived broken.' },
    ],
    ['I want to talk to a person', 'connect_to_human', { reason: 'asked for a person' }],
    [
      'Please remember that I prefer mornings',
      'remember',
      { entity: 'caller', facts: ['I prefer mornings'] },
    ],
    ['Max is my dog', 'relate', { source: 'Max', relation: 'dog of', target: 'caller' }],
    ['Bye!', 'end_call', {}],
  ])('%s', (words, name, args) => {
    expect(callsOf('support', words)).toEqual([{ name, args }]);
  });

  it('leaves calls that are written out to the text model', () => {
    const written = 'process_refund {"order_id":"A-30158","reason":"late"}';
    expect(played(dialogueOf('support'), [text(written)])[0]).toMatchObject({ calls: [], isOther: true });
  });

  it('tells the outcome of what was pending', () => {
    const told = (result: object) =>
      text(`Your tool process_refund, which was pending, has come to a result: ${JSON.stringify(result)}`);
    const events = [
      told({ status: 'approved', message: 'It is approved.' }),
      told({ error: 'A person denied it.' }),
    ];
    expect(played(dialogueOf('support'), events).map(({ say }) => say)).toEqual([
      'There is news. It is approved.',
      'There is news, but not good. A person denied it.',
    ]);
  });
});

describe('the rehearsal of monitor', () => {
  it.each([
    ['Monitor the price of $XYZ', 'monitor_stock_price', { stock_symbol: 'XYZ' }],
    ['Listen to my line', 'monitor_caller_audio', {}],
    ['How many people are in the picture?', 'monitor_video_stream', {}],
    ['Stop watching the stock', 'stop_streaming', { function_name: 'monitor_stock_price' }],
    ['stop listening', 'stop_streaming', { function_name: 'monitor_caller_audio' }],
    ['stop the video', 'stop_streaming', { function_name: 'monitor_video_stream' }],
  ])('%s', (words, name, args) => {
    expect(callsOf('monitor', words)).toEqual([{ name, args }]);
  });

  it('speaks the reports, and starts nothing again', () => {
    const events = [
      text('monitor_stock_price reports: The price for XYZ is 300'),
      text('monitor_caller_audio reports: {"sound":"noisy","message":"There is a steady noise."}'),
      text('monitor_video_stream has failed and is over.'),
    ];
    expect(played(dialogueOf('monitor'), events)).toEqual([
      { calls: [], say: 'The price for XYZ is 300.', isOther: false },
      { calls: [], say: 'There is a steady noise.', isOther: false },
      { calls: [], say: 'I can no longer watch that.', isOther: false },
    ]);
  });
});

describe('the rehearsal of concierge', () => {
  it.each([
    ['What is the weather in New York?', [['get_weather', { city: 'New York' }]]],
    ['What time is it in Tokyo?', [['get_time', { city: 'Tokyo' }]]],
    [
      'Weather and time in London, please',
      [
        ['get_weather', { city: 'London' }],
        ['get_time', { city: 'London' }],
      ],
    ],
    ['What is 15 + 25?', [['calculate', { expression: '15 + 25' }]]],
    ['When is breakfast?', [['search', { query: 'When is breakfast?' }]]],
    ['I prefer a quiet room', [['set_preference', { name: 'room', value: 'quiet' }]]],
    ['Do you know me?', [['review_conversation', {}]]],
    ['remember that I drink tea', [['remember', { entity: 'caller', facts: ['I drink tea'] }]]],
  ] as const)('%s', (words, calls) => {
    expect(callsOf('concierge', words)).toEqual(calls.map(([name, args]) => ({ name, args })));
  });
});
