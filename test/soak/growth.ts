/** Whether a server has grown over a soak: in memory while it was at work, and in timers and sockets once nothing goes on. */

export interface Idle {
  readonly sockets: number;
  readonly timers: number;
}

/** Resident memory may go up by so much from the first third to the last: garbage that was not collected yet, and pages of a heap that has
 * found its size. A call that is kept whole takes half a megabyte. */
const GROWTH_MAX_SHARE = 0.35;
const GROWTH_MAX_MB = 40;
/** A database's connection or a timer of the process's own may have been added since. */
const IDLE_MORE_MAX = 3;
/** Too few samples say nothing. */
const SAMPLES_MIN = 12;

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
}

/** `residentMb` is sampled at even times, from when the server had work to when it had none. */
export function memoryGrowth(residentMb: readonly number[]): string | undefined {
  if (residentMb.length < SAMPLES_MIN) return undefined;
  const third = Math.floor(residentMb.length / 3);
  const first = median(residentMb.slice(0, third));
  const last = median(residentMb.slice(-third));
  const most = first * (1 + GROWTH_MAX_SHARE) + GROWTH_MAX_MB;
  return last > most ? `memory grew from ${first} MB to ${last} MB` : undefined;
}

export function idleGrowth(before: Idle, after: Idle): string[] {
  return (['sockets', 'timers'] as const).flatMap((name) =>
    after[name] > before[name] + IDLE_MORE_MAX
      ? [`${after[name]} ${name} are open when nothing goes on, ${before[name]} were before`]
      : [],
  );
}
