/**
 * The agent's tools in a replay: what a fixture tells of a call is what it came to, at its time; a call that it does not
 * tell of is carried out. So a recorded refund moves no money again, and a call written by hand may do either.
 */
import type { Fixture, FixtureLine } from '../fixture/fixture-format.js';
import type { CallOutcome, ToolWork, WorkCall, WorkListener } from '../tool/tool-work.js';

export type ToolLine = Extract<FixtureLine, { leg: 'tool' }>;

export class ReplayedTools {
  readonly #known: ReadonlySet<string>;
  readonly #isRecalled: boolean;
  readonly #onActivity: () => void;
  /** Results of calls that the model has asked for, by id; or what came before somebody waited for it. */
  readonly #waiting = new Map<string, (outcome: CallOutcome) => void>();
  #recalled: ((text: string | undefined) => void) | undefined;
  #listener: WorkListener | undefined;

  constructor(fixture: Fixture, onActivity: () => void) {
    const lines = fixture.lines.filter((line) => line.leg === 'tool');
    this.#known = new Set(lines.flatMap(({ call }) => call ?? []));
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
  wrap(work: ToolWork, listener: WorkListener): ToolWork {
    this.#listener = listener;
    const carryOut = (call: WorkCall, signal: AbortSignal): CallOutcome | Promise<CallOutcome> =>
      this.#known.has(call.id) ? this.#await(call.id) : work.carryOut(call, signal);
    return {
      carryOut,
      isLongRunning: (name) => work.isLongRunning(name),
      get wantsSound() {
        return work.wantsSound;
      },
      onSound: (pcm16k) => work.onSound(pcm16k),
      onImage: (mimeType, image) => work.onImage(mimeType, image),
      counts: () => ({ ...work.counts() }),
      close: () => work.close(),
    };
  }

  /** A line of the fixture; false if nobody waits for it. */
  say({ recalled, call, settled, outcome, update }: ToolLine): boolean {
    this.#onActivity();
    if (recalled !== undefined) {
      const tell = this.#recalled;
      this.#recalled = undefined;
      tell?.(recalled ?? undefined);
      return tell !== undefined;
    }
    if (update !== undefined) this.#listener?.update(withoutUndefined(update));
    else if (settled !== undefined && outcome !== undefined) this.#listener?.settled(settled, outcome);
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

function withoutUndefined({ replaces, text, interrupts }: NonNullable<ToolLine['update']>) {
  return { text, interrupts, ...(replaces !== undefined && { replaces }) };
}
