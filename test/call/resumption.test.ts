import { describe, expect, it } from 'vitest';
import { Resumption } from '../../src/call/resumption.js';
import {
  HANDLE_AGE_MAX_MS,
  HANDLE_BEHIND_MAX,
  HANDLE_TRIES_MAX,
  QUICK_DEATH_MS,
  QUICK_DEATHS_MAX,
} from '../../src/link-limits.js';

/** A handle that was given out at position 3. */
function given(): Resumption {
  const resumption = new Resumption();
  resumption.onUpdate('h1', true, 3, 0);
  return resumption;
}

describe('the session to go on with', () => {
  it('is the newest that could be resumed; one that cannot be leaves the one before', () => {
    const resumption = given();
    resumption.onUpdate('h2', true, 4, 10);
    resumption.onUpdate(undefined, false, 5, 20);
    resumption.onUpdate('', true, 5, 20);
    resumption.onUpdate('odd', false, 5, 20);
    expect(resumption.take(5, 30)).toMatchObject({ handle: 'h2', position: 4 });
  });

  it('is a new one where too much was said since, or too long ago', () => {
    expect(given().take(3 + HANDLE_BEHIND_MAX, 0)?.handle).toBe('h1');
    expect(given().take(3 + HANDLE_BEHIND_MAX + 1, 0)).toBeUndefined();
    expect(given().take(3, HANDLE_AGE_MAX_MS + 1)).toBeUndefined();
    expect(new Resumption().take(0, 0)).toBeUndefined();
  });

  it('is a new one where the handle was refused for good, or so often; not where it was taken between', () => {
    const refused = given();
    refused.onRefused(true);
    expect(refused.take(3, 0)).toBeUndefined();
    const often = given();
    for (let time = 1; time < HANDLE_TRIES_MAX; time += 1) often.onRefused(false);
    expect(often.take(3, 0)?.handle).toBe('h1');
    often.onConnected();
    often.onRefused(false);
    expect(often.take(3, 0)?.handle).toBe('h1');
    often.onRefused(false);
    expect(often.take(3, 0)).toBeUndefined();
  });

  it('is a new one where two connections died quickly, and there is none where each does', () => {
    const resumption = given();
    resumption.onLost(QUICK_DEATH_MS - 1);
    expect(resumption.take(3, 0)?.handle).toBe('h1');
    resumption.onLost(0);
    expect(resumption.take(3, 0)).toBeUndefined();
    for (let time = 2; time < QUICK_DEATHS_MAX; time += 1) resumption.onLost(0);
    expect(resumption.isHopeless).toBe(true);
    resumption.onLost(QUICK_DEATH_MS);
    expect(resumption.isHopeless).toBe(false);
  });

  it('knows all that was said only while the model says that it can be resumed from there', () => {
    const resumption = given();
    expect(resumption.isCurrent(3)).toBe(true);
    expect(resumption.isCurrent(4)).toBe(false);
    resumption.onUpdate(undefined, false, 3, 0);
    expect(resumption.isCurrent(3)).toBe(false);
    expect(new Resumption().isCurrent(9)).toBe(true); // No handle at all: everything is told anew.
  });
});
