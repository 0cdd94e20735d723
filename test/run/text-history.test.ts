/** What the text model is given of a session: contents in an order that Gemini takes. */
import { expect, it } from 'vitest';
import type { Event, Part } from '../../src/event/event.js';
import { NO_ACTIONS } from '../../src/event/event.js';
import { historyFault } from '../../src/model/rehearsal/text-generation-history.js';
import { historyOf } from '../../src/run/text-history.js';

let ids = 0;

function event(role: 'user' | 'model', parts: readonly Part[], invocationId = 'r1'): Event {
  const author = role === 'user' && parts[0]?.text !== undefined ? 'user' : 'support';
  return {
    id: `e${(ids += 1)}`,
    invocationId,
    author,
    timestamp: 0,
    content: { role, parts },
    actions: NO_ACTIONS,
  };
}
const words = (role: 'user' | 'model', text: string): Event => event(role, [{ text }]);
const called = (id: string, run?: string): Event =>
  event('model', [{ functionCall: { id, name: 'f', args: {} } }], run);
const answered = (id: string, response: object, run?: string): Event =>
  event('user', [{ functionResponse: { id, name: 'f', response: { ...response } } }], run);

it('a call stands with the words in front of it, and answers of one group together', () => {
  const two = event('model', [
    { functionCall: { id: 'a', name: 'f', args: {} } },
    { functionCall: { id: 'b', name: 'f', args: {} } },
  ]);
  const history = historyOf([
    words('user', 'Hello'),
    words('model', 'Let me see.'),
    two,
    answered('a', { n: 1 }),
    answered('b', { n: 2 }),
    words('model', 'Found.'),
    words('user', 'Thanks'),
  ]);
  expect(history.map(({ role, parts }) => [role, parts.length])).toEqual([
    ['user', 1],
    ['model', 3],
    ['user', 2],
    ['model', 1],
    ['user', 1],
  ]);
  expect(historyFault(JSON.parse(JSON.stringify(history)) as never, 'gemini-2.5-flash')).toBeUndefined();
});

it('a call that waited is answered by its last result, and one that nobody answered is left out', () => {
  const history = historyOf([
    words('user', 'Hello'),
    called('a'),
    answered('a', { status: 'pending' }),
    words('model', 'Somebody looks.'),
    answered('a', { status: 'sent' }),
    words('user', 'And?'),
    called('b'),
  ]);
  expect(JSON.stringify(history)).not.toContain('pending');
  expect(history.map(({ role }) => role)).toEqual(['user', 'model', 'user', 'model', 'user']);
  expect(history[2]?.parts).toMatchObject([{ functionResponse: { response: { status: 'sent' } } }]);
});

it('the same id in another run is another call', () => {
  const history = historyOf([
    words('user', 'One'),
    called('a', 'r1'),
    answered('a', { n: 1 }, 'r1'),
    words('user', 'Two'),
    called('a', 'r2'),
    answered('a', { n: 2 }, 'r2'),
  ]);
  expect(
    history.flatMap(({ parts }) => parts).filter((part) => part['functionResponse'] !== undefined),
  ).toHaveLength(2);
});
