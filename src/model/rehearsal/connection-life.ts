/**
 * How long a rehearsal connection lasts and how it ends early: `goAway` with the drop behind it or without, an end of
 * life like the real one's, going mute, closing. Owns the timers of these, and of a setup that takes its time.
 */
import type { Clock, Timer } from '../../clock.js';
import type { Dialogue } from './dialogue.js';
import { CLOSE_REASONS, LIFE_OVER, type RehearsalCloseCode } from './misbehaviour.js';

export interface ConnectionLifeDeps {
  readonly clock: Clock;
  readonly send: (message: object) => void;
  readonly close: (code: number, reason: string) => void;
}

interface GoAway {
  readonly timeLeftSeconds: number;
  readonly thenDrop: boolean;
  readonly code: RehearsalCloseCode;
}

export class ConnectionLife {
  readonly #deps: ConnectionLifeDeps;
  readonly #timers = new Set<Timer>();
  #isMute = false;

  constructor(deps: ConnectionLifeDeps) {
    this.#deps = deps;
  }

  /** Nothing is said to the client; it is not told why. */
  get isMute(): boolean {
    return this.#isMute;
  }

  begin(life: Dialogue['life']): void {
    if (life === undefined) return;
    const { seconds } = life;
    const warningSeconds = Math.min(seconds, life.warningSeconds);
    this.after(seconds - warningSeconds, () =>
      this.goAway({ timeLeftSeconds: warningSeconds, thenDrop: true, code: 1011 }),
    );
  }

  goAway({ timeLeftSeconds, thenDrop, code }: GoAway): void {
    this.#deps.send({ goAway: { timeLeft: `${timeLeftSeconds}s` } });
    if (!thenDrop) return;
    const reason = code === 1011 ? LIFE_OVER : CLOSE_REASONS[code];
    this.after(timeLeftSeconds, () => this.#deps.close(code, reason));
  }

  mute(forSeconds: number | undefined): void {
    this.#isMute = true;
    if (forSeconds === undefined) return;
    this.after(forSeconds, () => {
      this.#isMute = false;
    });
  }

  closeBy({ code, reason }: { code: RehearsalCloseCode; reason?: string | undefined }): void {
    this.#deps.close(code, reason ?? CLOSE_REASONS[code]);
  }

  /** Not once it was stopped. */
  after(seconds: number, fire: () => void): void {
    const timer = this.#deps.clock.setTimer(seconds * 1_000, () => {
      this.#timers.delete(timer);
      fire();
    });
    this.#timers.add(timer);
  }

  /** No timer is left. Idempotent. */
  stop(): void {
    for (const timer of this.#timers) timer.cancel();
    this.#timers.clear();
  }
}
