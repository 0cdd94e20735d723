import { expect, it } from 'vitest';
import { TokenMeter } from '../../../src/model/rehearsal/token-meter.js';

it('bills thoughts and results apart in their turn, and results as context of every later one', () => {
  const tokens = new TokenMeter();
  tokens.addText('x'.repeat(40));
  tokens.addThought('x'.repeat(8));
  tokens.addResult('x'.repeat(12));
  expect(tokens.usageOfTurn(1)).toMatchObject({
    promptTokenCount: 10,
    responseTokenCount: 25,
    thoughtsTokenCount: 2,
    toolUsePromptTokenCount: 3,
    totalTokenCount: 40,
  });
  const later = tokens.usageOfTurn(0);
  expect(later).toMatchObject({ promptTokenCount: 38, responseTokenCount: 0, totalTokenCount: 38 });
  expect(Object.keys(later)).not.toContain('thoughtsTokenCount');
  expect(Object.keys(later)).not.toContain('toolUsePromptTokenCount');
});
