/**
 * The caller of a call fixture as a voice for the test phone: what was said on the line, and the keys, each at its time
 * since the first media stream opened. What the model and the server did then is left out: this call goes its own way.
 */
import { readFixture } from '../fixture/fixture-reader.js';
import { scriptOf } from './fixture-script.js';
import type { TimedKey } from './phone.js';
import { positionOf, SoundTrack } from './sound-track.js';

export interface FixtureCaller {
  /** 8 kHz mu-law. */
  readonly sound: Uint8Array;
  readonly keys: readonly TimedKey[];
}

/** @throws FixtureError or AudioError for a file that cannot be read. */
export async function readFixtureCaller(path: string): Promise<FixtureCaller> {
  const track = new SoundTrack();
  const keys: TimedKey[] = [];
  let openedAt: number | undefined;
  for (const { at, line } of await scriptOf(await readFixture(path))) {
    if (line.leg !== 'phone') continue;
    if (line.open !== undefined) openedAt ??= at;
    const atMs = at - (openedAt ?? at);
    const { media, dtmf } = (line.message ?? {}) as {
      media?: { payload?: unknown };
      dtmf?: { digit?: unknown };
    };
    if (typeof media?.payload === 'string')
      track.write(positionOf(atMs), Buffer.from(media.payload, 'base64'));
    if (typeof dtmf?.digit === 'string') keys.push({ atMs, digit: dtmf.digit });
  }
  return { sound: track.copy(track.end), keys };
}
