import { describe, expect, it } from 'vitest';
import { AgentMessage } from '../../src/call/agent-message.js';
import { PLAYOUT_QUEUE_MAX_MS, UTTERANCES_MAX } from '../../src/limits.js';
import { PlayoutLine, soundOf } from '../audio/playout-line.js';

function messageOn(line: PlayoutLine): AgentMessage {
  return new AgentMessage({ playout: line.playout, isGreeting: false });
}

describe('an agent message of many generations', () => {
  it('takes nothing more once some of its sound was refused: it has no hole', () => {
    const line = new PlayoutLine();
    const message = messageOn(line);
    const firstMs = message.push(soundOf(PLAYOUT_QUEUE_MAX_MS + 1_000));
    message.endSound();
    line.clock.advance(10_000);
    const room = PLAYOUT_QUEUE_MAX_MS - line.playout.queuedMs;
    expect(room).toBeGreaterThan(1_000);
    expect(message.push(soundOf(500))).toBe(0);
    message.endSound();
    line.clock.advance(PLAYOUT_QUEUE_MAX_MS + 20_000);
    expect(message.heardMs()).toBe(firstMs);
    expect(message.isHeard).toBe(true);
    expect(line.events).toContain('dropped 500 queue_full');
  });

  it('does not call words heard whose sound was refused', () => {
    const line = new PlayoutLine();
    const message = messageOn(line);
    const words = Array.from({ length: 20 }, (_, index) => `w${index} `);
    for (const word of words) {
      message.push(soundOf(PLAYOUT_QUEUE_MAX_MS / 10));
      message.addWords(word);
    }
    message.endSound();
    line.clock.advance(PLAYOUT_QUEUE_MAX_MS + 20_000);
    expect(message.isHeard).toBe(true);
    expect(message.playedText()).toBe(message.heardText());
    expect(message.heardText().split(' ').length).toBeLessThanOrEqual(11);
  });

  it('takes nothing more once the playout has no place for another utterance, and asks for none', () => {
    const line = new PlayoutLine();
    let started = 0;
    const start = line.playout.startUtterance.bind(line.playout);
    line.playout.startUtterance = () => {
      started += 1;
      return start();
    };
    const message = messageOn(line);
    for (let times = 0; times < 10 * UTTERANCES_MAX; times += 1) {
      message.push(soundOf(40));
      message.endSound();
    }
    expect(started).toBe(UTTERANCES_MAX + 1);
    line.clock.advance(60_000);
    expect(message.heardMs()).toBe(UTTERANCES_MAX * 40);
    expect(message.isHeard).toBe(true);
  });

  it('forgets the generations that were heard, and not their sound', () => {
    const line = new PlayoutLine();
    let newest: ReturnType<typeof line.playout.startUtterance> | undefined;
    const start = line.playout.startUtterance.bind(line.playout);
    line.playout.startUtterance = () => (newest = start());
    const message = messageOn(line);
    const utterances = Array.from({ length: 200 }, () => {
      message.push(soundOf(100));
      message.endSound();
      line.clock.advance(500);
      return newest!;
    });
    expect(utterances.filter((utterance) => message.has(utterance))).toHaveLength(1);
    expect(message.heardMs()).toBe(20_000);
    message.push(soundOf(100));
    expect(message.isHeard).toBe(false);
    line.playout.clear();
    expect(message.heardMs()).toBe(20_000);
    expect(message.hasSound).toBe(true);
  });
});
