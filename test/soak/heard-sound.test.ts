import { describe, expect, test } from 'vitest';
import { loadPrompts } from '../../src/call/prompts.js';
import { AgentDecimator } from '../../src/audio/agent-decimator.js';
import { readHeard, readSaid, type Span } from './heard-sound.js';
import { answerPcm } from './model-sound.js';

const SILENCE = (ms: number): Uint8Array => new Uint8Array(ms * 8).fill(0xff);

/** The model's speech as a caller hears it: through the server's own filter. */
function spoken(ms: number, isWhole: boolean): Uint8Array {
  const decimator = new AgentDecimator();
  try {
    return Uint8Array.from(Buffer.concat([decimator.push(answerPcm(ms, isWhole)), decimator.flush()]));
  } finally {
    decimator.release();
  }
}

function joined(...parts: Uint8Array[]): Uint8Array {
  return Uint8Array.from(Buffer.concat(parts));
}

const near = (span: Span): [number, number] => [Math.round(span.fromMs / 100), Math.round(span.toMs / 100)];

describe('what a caller heard', () => {
  test('is the model’s speech, heard out or broken off', () => {
    const heard = readHeard(
      joined(SILENCE(1_000), spoken(2_000, true), SILENCE(1_000), spoken(1_000, false), SILENCE(500)),
    );
    expect(heard.agent.map(near)).toEqual([
      [10, 30],
      [40, 50],
    ]);
    expect(heard.agent.map(({ isWhole }) => isWhole)).toEqual([true, false]);
    expect(heard.clips).toEqual([]);
  });

  test.each(Object.entries(loadPrompts()))('is a recorded clip of ours: %s', (_, clip) => {
    const heard = readHeard(joined(SILENCE(1_000), spoken(1_000, false), clip, SILENCE(1_000)));
    expect(heard.agent.map(near)).toEqual([[10, 20]]);
    const last = heard.clips.at(-1)!;
    expect(heard.clips[0]!.fromMs).toBeLessThan(2_600);
    expect(last.toMs).toBeGreaterThan(1_800 + clip.length / 8 - 600);
  });

  test('is nothing where the line is all but silent', () => {
    const faint = Uint8Array.from({ length: 16_000 }, (_, at) => (at % 3 === 0 ? 0xfc : 0x7e));
    expect(readHeard(faint)).toEqual({ agent: [], clips: [] });
  });
});

test('what a caller said at a time is one stretch', () => {
  const { apology } = loadPrompts();
  const said = readSaid(
    joined(
      SILENCE(1_000),
      apology.subarray(0, 8_000),
      SILENCE(2_000),
      apology.subarray(0, 8_000),
      SILENCE(500),
    ),
  );
  expect(said).toHaveLength(2);
  expect(said[0]!.fromMs).toBeGreaterThanOrEqual(980);
  expect(said[1]!.toMs).toBeLessThanOrEqual(5_020);
});
