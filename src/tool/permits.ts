/**
 * A number of things at once, and a queue for the rest, first come first served. Who waits for too long, or is withdrawn,
 * leaves the queue.
 */
interface Waiting {
  readonly grant: () => void;
}

export class Permits {
  #free: number;
  readonly #queue = new Set<Waiting>();

  constructor(count: number) {
    this.#free = count;
  }

  get waiting(): number {
    return this.#queue.size;
  }

  /** Resolves with what gives it back, once; undefined where `signal` aborted first. */
  async take(signal: AbortSignal): Promise<(() => void) | undefined> {
    if (signal.aborted) return undefined;
    if (this.#free > 0) this.#free -= 1;
    // A permit that is given back goes to whoever waits, without being free in between.
    else if (!(await this.#turn(signal))) return undefined;
    let isTaken = true;
    return () => {
      if (isTaken) this.#giveBack();
      isTaken = false;
    };
  }

  #turn(signal: AbortSignal): Promise<boolean> {
    return new Promise((resolve) => {
      const leave = (): void => {
        this.#queue.delete(waiting);
        resolve(false);
      };
      const waiting: Waiting = {
        grant: () => {
          signal.removeEventListener('abort', leave);
          resolve(true);
        },
      };
      signal.addEventListener('abort', leave, { once: true });
      this.#queue.add(waiting);
    });
  }

  #giveBack(): void {
    const [next] = this.#queue;
    if (next === undefined) {
      this.#free += 1;
      return;
    }
    this.#queue.delete(next);
    next.grant();
  }
}
