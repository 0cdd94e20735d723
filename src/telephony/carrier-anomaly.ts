/**
 * What a carrier's socket may do that it should not. Each is counted by kind, logged once per kind and socket, and
 * the call goes on where it can.
 */
import type { Log } from '../observe/log.js';

/** A closed list, fit for a metric label. */
export const CARRIER_ANOMALIES = [
  'binaryFrame',
  'malformedJson',
  'unknownEvent',
  'beforeStart',
  'badStart',
  'duplicateStart',
  'wrongStream',
  'wrongTrack',
  'badMedia',
  'badPayload',
  'badDtmf',
  'badMark',
  'afterStop',
  'overRate',
  'oversized',
  'protocolError',
  'startTimeout',
  'tooMuchBeforeStart',
  'silence',
  'unsentOverflow',
] as const;
export type CarrierAnomaly = (typeof CARRIER_ANOMALIES)[number];

/** The anomalies of one socket. */
export class CarrierAnomalies {
  readonly #onAnomaly: (kind: CarrierAnomaly) => void;
  readonly #log: Log;
  readonly #logged = new Set<CarrierAnomaly>();
  /** What names the socket in the log, once `start` has said it. */
  fields: object = {};

  constructor(onAnomaly: (kind: CarrierAnomaly) => void, log: Log) {
    this.#onAnomaly = onAnomaly;
    this.#log = log;
  }

  note(kind: CarrierAnomaly): void {
    this.#onAnomaly(kind);
    if (this.#logged.has(kind)) return;
    this.#logged.add(kind);
    this.#log.warn({ ...this.fields, anomaly: kind }, 'the carrier socket misbehaves; logged once per kind');
  }
}
