import { describe, expect, test } from 'vitest';
import {
  eventSchema,
  functionCalls,
  functionResponses,
  isFinalResponse,
  NO_ACTIONS,
  type Event,
  type Part,
} from '../../src/event/event.js';

function event(change: Partial<Event>): Event {
  return { id: 'e1', invocationId: 'i1', author: 'support', timestamp: 1.5, actions: NO_ACTIONS, ...change };
}

function modelSays(...parts: Part[]): Partial<Event> {
  return { content: { role: 'model', parts } };
}

const call = (name: string): Part => ({ functionCall: { id: name, name, args: { at: 1 } } });
const answer = (name: string): Part => ({ functionResponse: { id: name, name, response: { ok: true } } });

describe('an event', () => {
  test('tells its calls and its answers in order', () => {
    const mixed = event(modelSays({ text: 'one moment' }, call('a'), answer('c'), call('b'), answer('d')));
    expect(functionCalls(mixed).map(({ name }) => name)).toEqual(['a', 'b']);
    expect(functionResponses(mixed).map(({ name }) => name)).toEqual(['c', 'd']);
    expect(functionCalls(event({}))).toEqual([]);
    expect(functionResponses(event({ content: {} }))).toEqual([]);
  });

  test.each<[string, Partial<Event>, boolean]>([
    ['a text', modelSays({ text: 'Good day.' }), true],
    ['an empty event', {}, true],
    ['a fragment', { ...modelSays({ text: 'Good' }), partial: true }, false],
    ['a call', modelSays({ text: 'let me look' }, call('lookup')), false],
    ['an answer', { content: { role: 'user', parts: [answer('lookup')] } }, false],
    [
      'a call whose answer comes later',
      { ...modelSays(call('approve')), longRunningToolIds: ['approve'] },
      true,
    ],
    [
      'a call with an empty list of later ones',
      { ...modelSays(call('lookup')), longRunningToolIds: [] },
      false,
    ],
    [
      "a program's result at the end",
      modelSays({ text: 'so' }, { codeExecutionResult: { output: '40' } }),
      false,
    ],
    ["a program's result before the words", modelSays({ codeExecutionResult: {} }, { text: '40' }), true],
    ['what was cut off', { ...modelSays({ text: 'Good' }), interrupted: true }, true],
    ['an error', { errorCode: 'SAFETY', errorMessage: 'refused' }, true],
    ['a change of state', { actions: { stateDelta: { a: 1 }, artifactDelta: {} } }, true],
  ])('that is %s has its finality', (_, change, isFinal) => {
    expect(isFinalResponse(event(change))).toBe(isFinal);
  });

  test('comes back from JSON with every field', () => {
    const whole: Event = {
      ...event(modelSays({ text: 'a', thought: true }, call('b'), answer('c'))),
      partial: false,
      turnComplete: true,
      interrupted: true,
      longRunningToolIds: ['b'],
      actions: {
        stateDelta: { 'user:a': null },
        artifactDelta: { photo: 3 },
        transferToAgent: 'sales',
        escalate: true,
      },
      inputTranscription: { text: 'hello', finished: true },
      outputTranscription: { text: 'good day', finished: false },
      usageMetadata: { totalTokenCount: 12, details: [{ modality: 'AUDIO' }] },
      errorCode: 'X',
      errorMessage: 'y',
      finishReason: 'STOP',
    };
    expect(eventSchema.parse(JSON.parse(JSON.stringify(whole)))).toEqual(whole);
  });

  test('keeps fields of a part that only Gemini knows, and drops unknown ones of its own', () => {
    const stored = { ...event(modelSays({ text: 'a', videoMetadata: { fps: 1 } } as Part)), later: 1 };
    expect(eventSchema.parse(stored)).toEqual(
      event(modelSays({ text: 'a', videoMetadata: { fps: 1 } } as Part)),
    );
  });

  test('keeps keys that mean something to the language', () => {
    const delta = JSON.parse('{"__proto__":{"a":1},"constructor":2}') as Record<string, unknown>;
    const read = eventSchema.parse(event({ actions: { stateDelta: delta, artifactDelta: {} } }));
    expect(JSON.stringify(read.actions.stateDelta)).toBe('{"__proto__":{"a":1},"constructor":2}');
  });

  test.each([
    ['no id', { id: '' }],
    ['no time', { timestamp: 'now' }],
    ['an unknown role', { content: { role: 'system' } }],
    ['a call without a name', { content: { parts: [{ functionCall: { args: {} } }] } }],
    ['a state that is a list', { actions: { stateDelta: [], artifactDelta: {} } }],
    ['a version below 0', { actions: { stateDelta: {}, artifactDelta: { a: -1 } } }],
    ['a version that is no number', { actions: { stateDelta: {}, artifactDelta: { a: '1' } } }],
    ['no actions', { actions: undefined }],
    ['an undefined field', { errorCode: undefined }],
  ])('is not read with %s', (_, change) => {
    expect(eventSchema.safeParse({ ...event({}), ...change }).success).toBe(false);
  });
});
