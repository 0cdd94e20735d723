/**
 * The live display of a call: a level meter and the state of both sides, redrawn in place on a terminal; elsewhere
 * one plain line whenever a side begins or ends to sound.
 */
import { createLogUpdate } from 'log-update';
import { MULAW_BYTES_PER_MS } from '../limits.js';
import { clockTime, transcriptLines } from './call-report.js';
import { levelDb } from './call-statistics.js';
import type { CallView } from './call-view.js';
import type { Phone } from './phone.js';

export interface CallDisplay {
  /** Shows the phone as it is now; called about ten times a second. */
  update(phone: Phone, view: CallView | undefined): void;
  /** Leaves the terminal as it should be for what is printed next. */
  done(): void;
}

const PROBE_MS = 100;

/** The levels of the last 100 ms of both sides. */
export class LevelProbe {
  readonly #recent = {
    heard: new Uint8Array(PROBE_MS * MULAW_BYTES_PER_MS),
    said: new Uint8Array(PROBE_MS * MULAW_BYTES_PER_MS),
  };

  read(phone: Phone): { heardDb: number; saidDb: number } {
    phone.readRecent(this.#recent, PROBE_MS);
    return { heardDb: levelDb(this.#recent.heard), saidDb: levelDb(this.#recent.said) };
  }
}

/** Louder than this counts as sound in the display and for `--linger`. */
export const AUDIBLE_DB = -45;
const METER_CELLS = 20;
const METER_MIN_DB = -60;
const TRANSCRIPT_LINES = 4;
/** A side is shown as silent after this much silence, so that words do not flicker. */
const SILENT_AFTER_MS = 600;

function meter(db: number): string {
  const cells = Math.round(
    ((Math.max(METER_MIN_DB, Math.min(0, db)) - METER_MIN_DB) / -METER_MIN_DB) * METER_CELLS,
  );
  return '█'.repeat(cells) + '·'.repeat(METER_CELLS - cells);
}

/** Follows whether one side is sounding, with a short memory. */
class Side {
  #lastSoundMs = Number.NEGATIVE_INFINITY;
  sounding = false;

  /** Returns whether the state changed. */
  update(db: number, nowMs: number): boolean {
    const before = this.sounding;
    if (db > AUDIBLE_DB) this.#lastSoundMs = nowMs;
    this.sounding = nowMs - this.#lastSoundMs < SILENT_AFTER_MS;
    return this.sounding !== before;
  }
}

class TerminalDisplay implements CallDisplay {
  readonly #draw: ReturnType<typeof createLogUpdate>;
  readonly #width: number;
  readonly #probe = new LevelProbe();
  readonly #caller = new Side();
  readonly #agent = new Side();

  constructor(stream: NodeJS.WriteStream) {
    this.#draw = createLogUpdate(stream);
    this.#width = Math.max(20, (stream.columns || 80) - 1);
  }

  update(phone: Phone, view: CallView | undefined): void {
    const { heardDb, saidDb } = this.#probe.read(phone);
    const now = phone.elapsedMs;
    this.#caller.update(saidDb, now);
    this.#agent.update(heardDb, now);
    const caller = this.#caller.sounding ? 'speaking' : phone.hasVoiceLeft ? 'silent' : 'has said all';
    const lines = [
      `caller ${meter(saidDb)} ${caller}`.padEnd(48) + clockTime(now),
      `agent  ${meter(heardDb)} ${this.#agent.sounding ? 'speaking' : 'silent'}`.padEnd(48) + phone.state,
      ...(view === undefined ? [] : transcriptLines(view).slice(-TRANSCRIPT_LINES)),
    ];
    this.#draw(lines.map((line) => shorten(line, this.#width)).join('\n'));
  }

  done(): void {
    this.#draw.clear();
    this.#draw.done();
  }
}

function shorten(line: string, width: number): string {
  return line.length <= width ? line : `${line.slice(0, width - 1)}…`;
}

class PlainDisplay implements CallDisplay {
  readonly #write: (line: string) => void;
  readonly #probe = new LevelProbe();
  readonly #caller = new Side();
  readonly #agent = new Side();

  constructor(write: (line: string) => void) {
    this.#write = write;
  }

  update(phone: Phone): void {
    const { heardDb, saidDb } = this.#probe.read(phone);
    const now = phone.elapsedMs;
    const sides = [
      ['caller', this.#caller, saidDb],
      ['agent', this.#agent, heardDb],
    ] as const;
    for (const [name, side, db] of sides) {
      if (side.update(db, now))
        this.#write(`${clockTime(now)}  ${name} ${side.sounding ? 'speaks' : 'is silent'}`);
    }
  }

  done(): void {
    // Every line stands already.
  }
}

/** In place on a terminal, plain lines through `write` elsewhere. */
export function createCallDisplay(stream: NodeJS.WriteStream, write: (line: string) => void): CallDisplay {
  return stream.isTTY ? new TerminalDisplay(stream) : new PlainDisplay(write);
}
