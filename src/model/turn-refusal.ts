/**
 * Why a live model's turn is no answer: `turnCompleteReason` of a turn that ended for another cause than its end, by the names of
 * `TurnCompleteReason` in `@google/genai`. The connection is well, and the next turn may be too.
 */

/** A turn that ended as it should, or waits for the user. */
const NO_REFUSAL: ReadonlySet<string> = new Set([
  'TURN_COMPLETE_REASON_UNSPECIFIED',
  'NEED_MORE_INPUT',
  'STOP',
]);

/** As the SDK spells them; newer ones look the same. */
const REASON = /^[A-Z][A-Z0-9_]{0,63}$/;

/** The error code of the turn; undefined for one that is well. What is no name of a reason counts as GENERATED_OTHER. */
export function refusalOf(turnCompleteReason: string | undefined): string | undefined {
  if (turnCompleteReason === undefined || NO_REFUSAL.has(turnCompleteReason)) return undefined;
  return REASON.test(turnCompleteReason) ? turnCompleteReason : 'GENERATED_OTHER';
}
