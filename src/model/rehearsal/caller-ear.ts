/**
 * What the rehearsal hears of the caller: sound, whose turns it finds itself or is told of by the client's activity
 * signals, and pictures, which it only counts. It says when a turn begins and ends, and refuses what is no sound.
 */
import type { Clock } from '../../clock.js';
import type { LiveSetupFrame, RealtimeInputFrame } from './client-frame.js';
import { INVALID_ARGUMENT, type Refusal } from './setup-rules.js';
import type { TokenMeter } from './token-meter.js';
import { TurnDetector, type TurnListener } from './turn-detector.js';

const TURN_START_MS = 120;
const TURN_SILENCE_MS = 650;
/** What a client may ask for with `silenceDurationMs` and `prefixPaddingMs`. */
const TURN_START_RANGE_MS = [20, 1_000] as const;
const TURN_SILENCE_RANGE_MS = [200, 5_000] as const;

export interface CallerEarOptions {
  readonly clock: Clock;
  readonly tokens: TokenMeter;
  readonly listener: TurnListener;
  readonly config: LiveSetupFrame['realtimeInputConfig'];
}

export class CallerEar {
  readonly #clock: Clock;
  readonly #tokens: TokenMeter;
  readonly #listener: TurnListener;
  readonly #detector: TurnDetector;
  /** The client itself tells when the caller's turns begin and end. */
  readonly #isManual: boolean;
  #activityStartMs: number | undefined;

  constructor({ clock, tokens, listener, config }: CallerEarOptions) {
    this.#clock = clock;
    this.#tokens = tokens;
    this.#listener = listener;
    const detection = config?.automaticActivityDetection;
    this.#isManual = detection?.disabled === true;
    this.#detector = new TurnDetector(
      {
        startMs: within(TURN_START_RANGE_MS, detection?.prefixPaddingMs ?? TURN_START_MS),
        silenceMs: within(TURN_SILENCE_RANGE_MS, detection?.silenceDurationMs ?? TURN_SILENCE_MS),
      },
      listener,
    );
  }

  get callerSpeaks(): boolean {
    return this.#isManual ? this.#activityStartMs !== undefined : this.#detector.inTurn;
  }

  /** The reason for closing, if what came cannot be heard. */
  hear(input: RealtimeInputFrame): Refusal | undefined {
    if (input.audio !== undefined) return this.#audio(input.audio);
    if (input.video !== undefined) return this.#picture(input.video);
    if (input.activityStart !== undefined || input.activityEnd !== undefined) {
      if (!this.#isManual) return refuse('Explicit activity control needs automatic detection disabled.');
      if (input.activityStart !== undefined) this.#activityStarted();
      if (input.activityEnd !== undefined) this.#activityEnded();
    } else if (input.audioStreamEnd === true && !this.#isManual) {
      this.#detector.flush();
    }
    return undefined;
  }

  #audio({ mimeType, data }: { mimeType: string; data: string }): Refusal | undefined {
    const rateHz = pcmRateHz(mimeType);
    if (rateHz === undefined) return refuse('Unsupported audio mime type.');
    const pcm = Buffer.from(data, 'base64');
    this.#tokens.addHeard(pcm.length / 2 / rateHz);
    if (!this.#isManual) this.#detector.push(pcm, rateHz);
    return undefined;
  }

  #picture({ mimeType }: { mimeType: string }): Refusal | undefined {
    if (!/^image\/(jpeg|png|webp|heic|heif)$/i.test(mimeType)) return refuse('Unsupported video mime type.');
    this.#tokens.addPicture();
    return undefined;
  }

  #activityStarted(): void {
    if (this.#activityStartMs !== undefined) return;
    this.#activityStartMs = this.#clock.nowMs();
    this.#listener.onTurnStart();
  }

  #activityEnded(): void {
    if (this.#activityStartMs === undefined) return;
    const voicedMs = this.#clock.nowMs() - this.#activityStartMs;
    this.#activityStartMs = undefined;
    this.#listener.onTurnEnd(voicedMs);
  }
}

function refuse(reason: string): Refusal {
  return { code: INVALID_ARGUMENT, reason };
}

function within([least, most]: readonly [number, number], value: number): number {
  return Math.min(most, Math.max(least, value));
}

/** The rate of `audio/pcm;rate=16000`; Gemini takes 16 kHz where none is stated. */
function pcmRateHz(mimeType: string): number | undefined {
  const rate = /^audio\/pcm(?:\s*;\s*rate=(\d{4,6}))?$/i.exec(mimeType.trim());
  if (rate === null) return undefined;
  const rateHz = Number(rate[1] ?? 16_000);
  return rateHz >= 8_000 && rateHz <= 48_000 ? rateHz : undefined;
}
