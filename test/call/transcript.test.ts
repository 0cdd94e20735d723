import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Transcript } from '../../src/call/transcript.js';
import { TRANSCRIPT_MAX_CHARS } from '../../src/limits.js';

const DEAF = { opened() {}, delta() {}, sealed() {} };
const TURN = { kind: 'reply', startedAtMs: undefined } as const;

function textOf(transcript: Transcript): string {
  return transcript
    .messages()
    .map(({ text }) => text)
    .join('|');
}

describe('Transcript', () => {
  it('keeps the end of one message that alone is too long', () => {
    const transcript = new Transcript(DEAF);
    const fragment = 'word '.repeat(1_000);
    for (let times = 0; times < 100; times += 1) transcript.addCaller(fragment, undefined);
    transcript.addCaller('the end', undefined);
    const [message] = transcript.messages();
    expect(message?.text).toMatch(/word the end$/);
    expect(message?.text.length).toBeLessThanOrEqual(TRANSCRIPT_MAX_CHARS);
  });

  it('is bounded while a message of the agent in front stays open', () => {
    const transcript = new Transcript(DEAF);
    transcript.openAgent({ heardText: () => 'Hello', comingText: () => '' }, TURN);
    for (let times = 0; times < 50; times += 1) {
      transcript.addCaller(`${times} ${'w'.repeat(5_000)}`, undefined);
      transcript.addRecorded(`clip ${times}`);
    }
    expect(textOf(transcript).length).toBeLessThanOrEqual(TRANSCRIPT_MAX_CHARS + 1_000);
    expect(textOf(transcript)).toMatch(/^Hello\|.*clip 49$/s);
  });

  it('counts nothing of messages that it did not keep', () => {
    const transcript = new Transcript(DEAF);
    transcript.addCaller('first', undefined);
    for (let times = 0; times < 10; times += 1) {
      const msg = transcript.openAgent({ heardText: () => '', comingText: () => '' }, TURN);
      transcript.closeAgent(msg, {
        text: ' '.repeat(TRANSCRIPT_MAX_CHARS / 2),
        interrupted: true,
        outcome: 'interrupted',
      });
    }
    transcript.addCaller('last', undefined);
    expect(textOf(transcript)).toBe('firstlast');
  });

  it('is bounded, and ends with what was said last, whatever is said', () => {
    const chars = fc.nat(TRANSCRIPT_MAX_CHARS * 2).map((length) => 'x'.repeat(length));
    const step = fc.oneof(
      fc.record({ kind: fc.constant('caller' as const), text: chars, inFront: fc.boolean() }),
      fc.record({ kind: fc.constantFrom('open' as const, 'close' as const, 'amend' as const), text: chars }),
      fc.record({ kind: fc.constant('clip' as const), text: fc.constant('clip') }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
        const transcript = new Transcript(DEAF);
        let open: string | undefined;
        let last: string | undefined;
        for (const each of steps) {
          if (each.kind === 'caller') transcript.addCaller(each.text, each.inFront ? open : undefined);
          else if (each.kind === 'clip') transcript.addRecorded(each.text);
          else if (each.kind === 'open')
            last = open = transcript.openAgent({ heardText: () => '', comingText: () => '' }, TURN);
          else if (open !== undefined && each.kind === 'close') {
            transcript.closeAgent(open, { text: each.text, interrupted: false, outcome: 'done' });
            open = undefined;
          } else if (last !== undefined) transcript.amend(last, each.text);
          const messages = transcript.messages();
          const kept = messages.reduce((sum, { text }) => sum + text.length, 0);
          expect(kept).toBeLessThanOrEqual(TRANSCRIPT_MAX_CHARS);
          if (each.kind === 'clip') expect(messages.at(-1)?.text).toBe('clip');
        }
      }),
    );
  });
});
