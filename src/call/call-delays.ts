/**
 * How long each of a call's timers runs.
 */
import {
  CUT_MAX_MS,
  FAREWELL_MAX_MS,
  FAREWELL_START_MAX_MS,
  NO_STREAM_TIMEOUT_MS,
  STREAM_RETURN_TIMEOUT_MS,
} from '../limits.js';
import { HOLD_AFTER_MS } from '../link-limits.js';
import { FAREWELL_CAP_MS, TRANSFER_START_MAX_MS } from '../tool-limits.js';
import type { CallTimer } from './call-state.js';

/** Undefined where the timer is off. `unplayedMs`: what the caller has still to hear before a farewell, or a silence. */
export function delayOf(timer: CallTimer, callMaxMs: number, unplayedMs: number): number | undefined {
  switch (timer) {
    case 'noStream':
      return NO_STREAM_TIMEOUT_MS;
    case 'streamReturn':
      return STREAM_RETURN_TIMEOUT_MS;
    case 'hold':
      return HOLD_AFTER_MS + unplayedMs;
    case 'maxDuration':
      return callMaxMs > 0 ? callMaxMs : undefined;
    case 'farewellStart':
      return FAREWELL_START_MAX_MS;
    case 'transferStart':
      return TRANSFER_START_MAX_MS;
    case 'farewellCap':
      return FAREWELL_CAP_MS;
    case 'farewellMax':
      return FAREWELL_MAX_MS + unplayedMs;
    case 'cutMax':
      return CUT_MAX_MS;
  }
}
