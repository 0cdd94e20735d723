import { describe, expect, it } from 'vitest';
import { Mailbox } from '../../src/call/mailbox.js';

/** A mailbox that notes what it handles; an event may bring others, or throw. */
function notedMailbox(options: { brings?: Record<string, readonly string[]>; eventsMax?: number } = {}) {
  const handled: string[] = [];
  let overflows = 0;
  const mailbox = new Mailbox<string>({
    eventsMax: options.eventsMax ?? 100,
    onOverflow: () => (overflows += 1),
    handle: (event) => {
      for (const next of options.brings?.[event] ?? []) mailbox.post(next);
      if (event.startsWith('broken')) throw new Error(event);
      handled.push(event);
    },
  });
  return { mailbox, handled, overflows: () => overflows };
}

describe('Mailbox', () => {
  it('handles an event to its end before those that it brings, in the order they were brought', () => {
    const { mailbox, handled } = notedMailbox({ brings: { first: ['second', 'third'], second: ['fourth'] } });
    mailbox.post('first');
    expect(handled).toEqual(['first', 'second', 'third', 'fourth']);
  });

  it('does not lose the hang-up that waits behind an event whose handling throws', () => {
    const { mailbox, handled } = notedMailbox({ brings: { start: ['broken', 'hang-up'] } });
    expect(() => mailbox.post('start')).toThrow('broken');
    expect(handled).toEqual(['start', 'hang-up']);
  });

  it('throws the first failure of several and handles the next event as if nothing had been', () => {
    const { mailbox, handled } = notedMailbox({ brings: { start: ['broken one', 'broken two'] } });
    expect(() => mailbox.post('start')).toThrow('broken one');
    mailbox.post('next');
    expect(handled).toEqual(['start', 'next']);
  });

  it('takes no more than its bound at once and says so', () => {
    const events = Array.from({ length: 10 }, (_, index) => `event ${index}`);
    const { mailbox, handled, overflows } = notedMailbox({ brings: { start: events }, eventsMax: 4 });
    mailbox.post('start');
    expect(handled.length).toBeLessThanOrEqual(1 + 4);
    expect(handled.length + overflows()).toBe(1 + events.length);
    mailbox.post('next');
    expect(handled.at(-1)).toBe('next');
  });
});
