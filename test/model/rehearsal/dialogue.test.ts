import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { said as saidLine, SAID_BEFORE } from '../../../src/call/line-texts.js';
import { ConfigError } from '../../../src/errors.js';
import {
  DIALOGUE_START,
  type DialogueEvent,
  type DialogueState,
  dialogueStep,
} from '../../../src/model/rehearsal/dialogue-step.js';
import { parseDialogue, readDialogue } from '../../../src/model/rehearsal/dialogue.js';
import { rememberedFacts, wasSaidBefore } from '../../../src/model/rehearsal/remembered-facts.js';

const dialogue = readDialogue();

/** What is said to each event in turn, when the disclosure has been heard. */
function replies(events: readonly DialogueEvent[]): (string | undefined)[] {
  let state: DialogueState = { ...DIALOGUE_START, disclosed: true };
  return events.map((event) => {
    const step = dialogueStep(dialogue, state, event);
    state = step.state;
    return step.reply?.say;
  });
}

const finished: DialogueEvent = { type: 'caller_finished', cutIn: false };
const cutIn: DialogueEvent = { type: 'caller_finished', cutIn: true };
const text = (words: string): DialogueEvent => ({ type: 'text', text: words });
const key = (name: string): DialogueEvent => text(`The caller pressed the key "${name}" on the phone.`);

describe('the rehearsal dialogue', () => {
  it('discloses what it is and that it understands no speech, and promises no listening', () => {
    expect(dialogue.disclosure).toMatch(/rehearsal voice/);
    expect(dialogue.disclosure).toMatch(/not understand speech/);
    const { turns, interruptions, keys, texts, otherText } = dialogue;
    const said = [...turns, ...interruptions, ...keys, ...texts, otherText].map(({ say }) => say);
    expect(said.filter((say) => /listening|I can do for you|help you|I will answer/.test(say))).toEqual([]);
  });

  it.each([
    ['a turn', finished],
    ['an interruption', cutIn],
    ['a key', key('5')],
    ['a pound key without digits', key('#')],
    ['a key that no rule knows', key('D')],
    ['a text that a rule knows', text('The caller has said nothing for 15 seconds.')],
    ['the end of the call', text('The call must end now. Say goodbye in one short sentence.')],
    ['a greeting in its own words', text('The call has begun. Greet the caller.')],
    ['any other text', text('What is the capital of France?')],
  ])('puts the disclosure in front of the answer to %s until it was heard', (_, event) => {
    const first = dialogueStep(dialogue, DIALOGUE_START, event);
    expect(first.disclosure).toBe(dialogue.disclosure);
    expect(first.state.disclosed).toBe(false);
    const again = dialogueStep(dialogue, first.state, event);
    expect(again.disclosure).toBe(dialogue.disclosure);
    const heard = dialogueStep(dialogue, { ...first.state, disclosed: true }, event);
    expect(heard.disclosure).toBeUndefined();
    expect(heard.reply).toEqual(again.reply);
    expect(heard.state.disclosed).toBe(true);
  });

  it.each([
    ['a request word for word', text('Say this greeting now, word for word: "Hello."')],
    ['an empty request word for word', text('word for word: ""')],
    ['no text', text(' ')],
  ])('puts no disclosure in front of the answer to %s', (_, event) => {
    expect(dialogueStep(dialogue, DIALOGUE_START, event).disclosure).toBeUndefined();
  });

  it('speaks its turns in order, ends with the function call, and stays there', () => {
    const said = replies([...dialogue.turns.map(() => finished), finished, finished]);
    expect(said.slice(0, dialogue.turns.length)).toEqual(dialogue.turns.map(({ say }) => say));
    expect(said.slice(dialogue.turns.length)).toEqual([
      dialogue.turns.at(-1)?.say,
      dialogue.turns.at(-1)?.say,
    ]);
    expect(dialogue.turns.at(-1)?.call?.name).toBe('end_call');
  });

  it('tells a caller who cut in that it has stopped, and then goes on where it was', () => {
    expect(replies([finished, cutIn, finished])).toEqual([
      dialogue.turns[0]?.say,
      dialogue.interruptions[0]?.say,
      dialogue.turns[1]?.say,
    ]);
    const many = replies(Array.from({ length: dialogue.interruptions.length + 1 }, () => cutIn));
    expect(many.at(-1)).toBe(many[0]);
  });

  it('speaks text exactly when asked for it word for word', () => {
    const greeting = 'Hello, "friend"!\nHow are you?';
    expect(replies([text(`Greet the caller, word for word: ${JSON.stringify(greeting)}`)])).toEqual([
      greeting,
    ]);
    expect(replies([text('Say this word for word: "a" and then stop')])).toEqual(['a']);
    expect(replies([text('Say this WORD FOR WORD: no quotes')])).toEqual(['no quotes']);
    expect(replies([text('Say this word for word: "broken')])).toEqual(['broken']);
    expect(replies([text('word for word: ""'), text('word for word:')])).toEqual([undefined, undefined]);
  });

  it('collects the digits of an order number and reads them back at the pound key', () => {
    const said = replies([key('1'), key('0'), key('2'), key('#'), key('#')]);
    expect(said.slice(0, 3)).toEqual(['1.', '0.', '2.']);
    expect(said[3]).toContain('order number 1 0 2.');
    expect(said[4]).toContain('digits of your order number first');
  });

  it('starts the number again at the star key and knows the letter keys', () => {
    expect(replies([key('7'), key('*'), key('4'), key('#')]).at(-1)).toContain('number 4.');
    expect(replies([key('A')])).toEqual(['I heard the key A.']);
  });

  it('knows a key in both forms and no key in other words', () => {
    expect(replies([text('[The caller pressed 5]'), text('The caller pressed ahead.')])).toEqual([
      '5.',
      dialogue.otherText.say,
    ]);
  });

  it('asks a silent caller, says goodbye when told, and admits that it does not understand the rest', () => {
    const [silent, end, other] = replies([
      text('The caller has said nothing for 15 seconds. Ask whether they are still there.'),
      text('The call must end now. Say goodbye in one short sentence.'),
      text('What is the capital of France?'),
    ]);
    expect(silent).toMatch(/still there/);
    expect(end).toMatch(/goodbye/);
    expect(
      replies([
        text('Your connection to the caller was lost for a moment. Say so, and go on.'),
        text('The caller has finished speaking and hears nothing. Answer now.'),
      ]),
    ).toEqual(['Sorry, I am back. Please go on.', 'Sorry, please say that again.']);
    expect(other).toBe(dialogue.otherText.say);
  });

  it('takes any events without falling over and never says nothing aloud', () => {
    const anyEvent = fc.oneof(
      fc.constant(finished),
      fc.constant(cutIn),
      fc.string({ unit: 'binary' }).map(text),
      fc.constantFrom('', ' ', '\n\t', 'word for word: "\\', 'pressed ""', 'pressed "#"').map(text),
    );
    const saidNothing: unknown[] = [];
    const property = fc.property(fc.array(anyEvent), (events) => {
      if (replies(events).some((said) => said?.trim() === '')) saidNothing.push(events);
    });
    expect(() => fc.assert(property)).not.toThrow();
    expect(saidNothing).toEqual([]);
  });
});

describe('dialogue data', () => {
  it('is refused with every fault and its place', () => {
    const broken = {
      ...dialogue,
      disclosure: '',
      turns: [{ say: ' ' }],
      keys: [{ keys: '12x', say: 'yes' }],
      jokes: [],
    };
    expect(() => parseDialogue(broken, 'my-dialogue.json')).toThrow(ConfigError);
    expect(() => parseDialogue(broken, 'my-dialogue.json')).toThrow(
      /my-dialogue\.json.*disclosure.*turns\.0\.say.*keys\.0\.keys.*jokes/s,
    );
    expect(() => parseDialogue('nothing', 'x.json')).toThrow(/x\.json.*the file/s);
  });

  it('is refused by name when the file cannot be read', () => {
    expect(() => readDialogue(new URL('file:///nowhere/missing.json'))).toThrow(
      /missing\.json cannot be read/,
    );
  });
});

describe('a number that is pressed', () => {
  const call = (name: string) => ({ name, args: { id: '{digits}' } });
  const keypad = parseDialogue(
    {
      disclosure: 'I rehearse.',
      turns: [{ say: 'Hello.' }],
      interruptions: [{ say: 'Go on.' }],
      otherText: { say: 'What?' },
      keys: [
        { keys: '0123456789', collect: true, say: '{key}.' },
        { keys: '#', whole: true, call: call('look_up'), callWithoutDigits: { name: 'ask_human' } },
        { keys: '*', clear: true, call: call('refund'), sayWithoutDigits: 'Digits first.' },
      ],
    },
    'keypad.rehearsal.json',
  );
  const pressed = (keys: string) => {
    let state = DIALOGUE_START;
    return keys.split('').flatMap((name) => {
      const step = dialogueStep(keypad, state, key(name));
      state = step.state;
      const said = name === '*' && step.reply?.say ? [[step.reply.say]] : [];
      return [...said, ...(step.reply?.calls ?? []).map((one) => [one.name, one.args['id']])];
    });
  };

  it('stands for the keys behind it once it is whole, and the next digit begins another one', () => {
    expect(pressed('12#*')).toEqual([
      ['look_up', '12'],
      ['refund', '12'],
    ]);
    expect(pressed('12#34#')).toEqual([
      ['look_up', '12'],
      ['look_up', '34'],
    ]);
    expect(pressed('12##')).toEqual([
      ['look_up', '12'],
      ['look_up', '12'],
    ]);
  });

  it('has a call and a sentence for when there is none', () => {
    expect(pressed('#')).toEqual([['ask_human', undefined]]);
    expect(pressed('12#**#')).toEqual([
      ['look_up', '12'],
      ['refund', '12'],
      ['Digits first.'],
      ['ask_human', undefined],
    ]);
  });
});

describe('what a tool reports by itself', () => {
  const call = { name: 'watch_taxi' };
  const rules = [
    { contains: 'taxi', call },
    { matches: 'result', calls: [call], say: 'Again.' },
    { contains: 'tram', say: 'A tram.' },
  ];
  const ruled = parseDialogue({ ...dialogue, texts: rules }, 'test.json');
  const stepOf = (words: string) => dialogueStep(ruled, { ...DIALOGUE_START, disclosed: true }, text(words));
  const NOTE = 'You were cut short, and the caller heard nothing of your last message.\n';

  it.each([
    ['Your tool watch_taxi reports: It is 6 minutes away.', 'It is 6 minutes away.'],
    ['Your tool watch_taxi reports: {"message":"It is there.","minutes":0}', 'It is there.'],
    [`${NOTE}Your tool watch_taxi reports: At the door: now.`, 'At the door: now.'],
    ['Your tool book_taxi: the taxi is booked', 'the taxi is booked'],
    [
      'Your tool book_taxi, which was pending, has come to a result: {"status":"booked"}',
      'The status is booked.',
    ],
    [
      'Your tool book_taxi, which was pending, has come to a result: {"error":"A person denied it."}',
      'That did not work: A person denied it.',
    ],
    ['Your tool watch_taxi has failed and is over.', 'watch_taxi has failed and is over.'],
    ['Your tool watch_tram reports: It is there.', 'A tram.'],
  ])('%s is said, and no rule calls a function for it', (words, said) => {
    const { reply, isOther } = stepOf(words);
    expect([reply?.say, reply?.calls, isOther]).toEqual([said, [], false]);
  });

  it('is told from what a caller says of a tool', () => {
    expect(stepOf('Where is my taxi?').reply?.calls).toHaveLength(1);
    expect(stepOf('What does your tool for the taxi say?').reply?.calls).toHaveLength(1);
  });
});

describe('what is remembered of the caller', () => {
  const instruction = [
    'Serve.',
    'This is what you remember of this caller from earlier calls; it may be out of date:',
    '- "caller" "prefers mornings"',
    '- "Max" "dog of" "caller"',
    '',
    '- not a fact',
  ].join('\n');

  it('is read in the instruction', () => {
    expect(rememberedFacts(instruction)).toBe('caller prefers mornings, Max dog of caller');
    expect(rememberedFacts('Serve.')).toBe('');
  });

  it('is no place to look for what was said before, and a caller who says a sentence is not the model', () => {
    const sentence = 'I am a "rehearsal".';
    const heard = (author: string) =>
      `${instruction}\n${SAID_BEFORE}\n${saidLine(author, `${sentence} Hi.`)}`;
    expect(wasSaidBefore(heard('model'), sentence)).toBe(true);
    expect(wasSaidBefore(heard('user'), sentence)).toBe(false);
    expect(wasSaidBefore(`${instruction}\n${saidLine('model', sentence)}`, sentence)).toBe(false);
  });

  it('is spoken, and nothing where nothing is', () => {
    const asked = { otherText: { say: 'I know: {remembered}.' }, disclosure: 'I rehearse.' };
    const lines = { ...asked, turns: [{ say: 'Hello.' }], interruptions: [{ say: 'Go on.' }] };
    const recalling = parseDialogue(lines, 'recalling.rehearsal.json');
    const said = (remembered: string) =>
      dialogueStep(recalling, { ...DIALOGUE_START, remembered }, text('Well?')).reply?.say;
    expect(said('caller prefers mornings')).toBe('I know: caller prefers mornings.');
    expect(said('')).toBe('I know: nothing.');
  });
});
