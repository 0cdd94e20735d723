/** One who watches a call of the soak over `GET /calls/:callSid/stream`: well, slowly, or not reading at all. */
import { storedMessages } from '../../src/client/index.js';
import { FrameReader } from '../support/frame-reader.js';
import { pause } from '../support/wait-until.js';
import type { WatcherFault } from './fault-catalogue.js';
import type { Told } from './same-text.js';

/** A slow one reads for a moment, and then not for a while. */
const READS_MS = 100;
const STALLS_MS = 1_500;

export class SoakWatcher {
  readonly #reader: FrameReader;
  readonly #kind: WatcherFault | undefined;
  #isLeaving = false;

  constructor(url: string, callSid: string, kind?: WatcherFault) {
    this.#reader = new FrameReader(`${url}/calls/${callSid}/stream`);
    this.#kind = kind;
    if (kind === 'stalled') this.#reader.stall();
    if (kind === 'slow') void this.#readSlowly();
  }

  /** All that was told is compared; a stalled one was told nothing. */
  get isReader(): boolean {
    return this.#kind !== 'stalled';
  }

  get hasEnded(): boolean {
    return this.#reader.isEnded;
  }

  /** Messages that were told as sealed. */
  get told(): Told[] {
    return storedMessages(this.#reader.page).map(({ role, text }) => ({ role, text }));
  }

  /** Whatever is behind is read, now that the call is over. */
  catchUp(): void {
    this.#isLeaving = true;
    this.#reader.resume();
  }

  leave(): void {
    this.#isLeaving = true;
    this.#reader.cut();
  }

  async #readSlowly(): Promise<void> {
    while (!this.#isLeaving) {
      this.#reader.stall();
      await pause(STALLS_MS);
      this.#reader.resume();
      await pause(READS_MS);
    }
  }
}
