/**
 * The agent's tools in a replay: what a fixture tells of a call is what it came to, at its time. Of a recorded call everything
 * is told: what is not was never over, and no handler runs again. A call written by hand may leave it to the agent.
 */
import type { Fixture, FixtureLine } from '../fixture/fixture-format.js';
import type { ToolCallControl } from '../agent/tool-context.js';
import type { RunTools } from '../tool/tool-runs.js';
import type { CallOutcome, ToolWork, WorkCall, WorkListener } from '../tool/tool-work.js';

export type ToolLine = Extract<FixtureLine, { leg: 'tool' }>;

export class ReplayedTools {
  readonly #known: ReadonlySet<string>;
  readonly #isRecalled: boolean;
  readonly #isRecorded: boolean;
  readonly #onActivity: () => void;
  /** Results of calls that the model has asked for, by id; or what came before somebody waited for it. */
  readonly #waiting = new Map<string, (outcome: CallOutcome) => void>();
  #recalled: ((text: string | undefined) => void) | undefined;
  #listener: WorkListener | undefined;
  #line: ToolCallControl | undefined;

  constructor(fixture: Fixture, onActivity: () => void) {
    const lines = fixture.lines.filter((line) => line.leg === 'tool');
    this.#known = new Set(lines.flatMap(({ call }) => call ?? []));
    this.#isRecorded = fixture.header.made === 'recorded';
    this.#isRecalled = lines.some(({ recalled }) => recalled !== undefined);
    this.#onActivity = onActivity;
  }

  /** Undefined where the fixture does not say that anything was looked up. */
  readonly recall = (): undefined | Promise<string | undefined> => {
    if (!this.#isRecalled) return undefined;
    return new Promise((resolve) => {
      this.#recalled = resolve;
    });
  };

  /** `work` does what the fixture does not tell. */
  wrap(work: ToolWork, { listener, callControl }: Pick<RunTools, 'listener' | 'callControl'>): ToolWork {
    this.#listener = listener;
    this.#line = callControl;
    return {
      carryOut: (call, signal) => {
        if (this.#known.has(call.id)) return this.#await(call.id);
        return this.#isRecorded ? knownAtOnce(work, call) : work.carryOut(call, signal);
      },
      isLongRunning: (name) => work.isLongRunning(name),
      get wantsSound() {
        return work.wantsSound;
      },
      onSound: (pcm16k) => work.onSound(pcm16k),
      onImage: (mimeType, image) => work.onImage(mimeType, image),
      counts: () => ({ ...work.counts() }),
      takeActions: (call) => work.takeActions(call),
      leave: () => work.leave(),
      tellLate: (actions) => work.tellLate(actions),
      tellLateResult: (call, outcome) => work.tellLateResult(call, outcome),
      close: () => work.close(),
    };
  }

  /** A line of the fixture; false if nobody waits for it. */
  say({ recalled, call, settled, late, outcome, update, forgotten, over, ends, wants }: ToolLine): boolean {
    this.#onActivity();
    if (recalled !== undefined) {
      const tell = this.#recalled;
      this.#recalled = undefined;
      tell?.(recalled ?? undefined);
      return tell !== undefined;
    }
    if (wants !== undefined) return this.#line?.[wants]().kind === 'accepted';
    if (forgotten !== undefined) this.#listener?.forget(forgotten);
    else if (over !== undefined) this.#listener?.ended(over, false);
    else if (ends === true) this.#listener?.ends();
    else if (update !== undefined) this.#listener?.update(withoutUndefined(update));
    else if (settled !== undefined && outcome !== undefined) this.#listener?.settled(settled, outcome);
    else if (late !== undefined && outcome !== undefined) this.#listener?.late(late, outcome);
    else if (call !== undefined && outcome !== undefined) {
      const tell = this.#waiting.get(call);
      this.#waiting.delete(call);
      tell?.(outcome);
      return tell !== undefined;
    }
    return this.#listener !== undefined;
  }

  #await(id: string): Promise<CallOutcome> {
    return new Promise((resolve) => {
      this.#waiting.set(id, (outcome) => {
        resolve(outcome);
        this.#onActivity();
      });
    });
  }
}

/** What needs no work, such as `end_call`; of anything else there is no outcome, and it is not begun. */
function knownAtOnce(work: ToolWork, call: WorkCall): CallOutcome | Promise<CallOutcome> {
  const outcome = work.carryOut(
    call,
    AbortSignal.abort(new Error('the recording does not tell what it came to')),
  );
  return outcome instanceof Promise ? new Promise(() => {}) : outcome;
}

function withoutUndefined({ replaces, text, interrupts }: NonNullable<ToolLine['update']>) {
  return { text, interrupts, ...(replaces !== undefined && { replaces }) };
}
