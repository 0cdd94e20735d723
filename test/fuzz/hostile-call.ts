/**
 * A whole call between two real ends: the media socket's door with `ws` on a wire in memory, and a Gemini Live connection.
 * What the server sends is read as a carrier reads it, played to an ear, and its marks come back as the test says.
 */
import type { Writable } from 'node:stream';
import * as ws from 'ws';
import type { GeminiLiveConnection } from '../../src/model/gemini-live-connection.js';
import type { GeminiOddity } from '../../src/model/gemini-message-reader.js';
import type { CallSid } from '../../src/ids.js';
import { CallRig } from '../support/call-rig.js';
import { CarrierEar } from '../support/carrier-ear.js';
import { entering } from '../support/scopes.js';
import { CarrierDoor, turn, type Wire } from './carrier-line.js';
import { liveConnection } from './model-line.js';
import { wireFrame } from './wire-frames.js';

// `ws` exports its receiver; the published types do not say so.
const Receiver = Reflect.get(ws, 'Receiver') as new (options: { isServer: boolean }) => Writable;

/** How another connection to the model is answered: at once, after so many milliseconds, with a refusal, or never. */
export type Answer = number | 'refused' | 'never';

export interface HostileCallOptions {
  /** Of the connects behind the first, one after the other, then again from the first. */
  readonly answers?: readonly Answer[];
  /** How each mark comes back: one return for each delay. */
  readonly markDelays: readonly (readonly number[])[];
  readonly greetingProtectionMs: number;
}

export class HostileCall {
  readonly rig: CallRig;
  readonly door: CarrierDoor;
  readonly oddities: GeminiOddity[] = [];
  readonly models: GeminiLiveConnection[] = [];
  /** Connections that were not closed, or connects not over, when another was begun. */
  secondAtATime = 0;
  readonly wires: Wire[] = [];
  readonly callSid: CallSid;
  ear: CarrierEar;
  #wire: Wire | undefined;
  #token: string | undefined;
  #marks = 0;
  #connects = 0;
  #connecting = 0;
  #open: GeminiLiveConnection | undefined;
  readonly #options: HostileCallOptions;

  constructor(options: HostileCallOptions) {
    this.#options = options;
    this.rig = new CallRig({
      deps: {
        greetingProtectionMs: options.greetingProtectionMs,
        connectLive: async (_setup, listener, signal, scope) => {
          const answer = this.#nextAnswer();
          if (answer !== 0) await this.#wait(answer, signal);
          const { connection } = liveConnection({
            listener: entering(listener, scope.clock),
            oddities: this.oddities,
            scope,
          });
          this.models.push(connection);
          const close = connection.close.bind(connection);
          connection.close = () => {
            if (this.#open === connection) this.#open = undefined;
            close();
          };
          this.#open = connection;
          // As the real one: not before whoever asked for it has it.
          queueMicrotask(() => process.nextTick(() => connection.start()));
          return connection;
        },
      },
    });
    this.door = new CarrierDoor(
      (start, stream, early) => this.rig.calls.acceptStream(start, stream, early),
      this.rig.clock,
    );
    this.ear = this.#newEar();
    const { callSid, answer } = this.rig.ring();
    this.callSid = callSid;
    this.#token = answer.kind === 'stream' ? answer.token : undefined;
  }

  get state(): string {
    return this.rig.view(this.callSid).state;
  }

  get hasLine(): boolean {
    return this.#wire !== undefined && !this.#wire.destroyed && !this.#wire.writableEnded;
  }

  /** Opens a media stream with the token that the last answer gave. */
  async dial(): Promise<void> {
    const wire = this.door.dial();
    this.wires.push(wire);
    this.#wire = wire;
    this.ear = this.#newEar();
    this.#listen(wire, this.ear);
    const streamSid = 'MZ1';
    const start = { streamSid, callSid: this.callSid, customParameters: { token: this.#token } };
    wire.feed(wireFrame(Buffer.from(JSON.stringify({ event: 'start', streamSid, start }))));
    await turn();
  }

  /** The carrier asks what follows the stream, and does it. */
  async redial(): Promise<void> {
    const answer = this.rig.after(this.callSid);
    if (answer.kind !== 'stream') return;
    this.#token = answer.token;
    await this.dial();
  }

  fromCarrier(bytes: Uint8Array): void {
    this.#wire?.feed(bytes);
  }

  fromModel(text: string): void {
    this.models.at(-1)?.onText(text);
  }

  /** The model's socket ends, with whatever code. */
  loseModel(code: number): void {
    if (this.#open === this.models.at(-1)) this.#open = undefined;
    this.models.at(-1)?.onEnd({ code, reason: '', httpStatus: undefined, error: undefined });
  }

  /** Nothing of the model is left: no connection, and no connect that is not over. */
  get isModelGone(): boolean {
    return this.#open === undefined && this.#connecting === 0;
  }

  loseLine(): void {
    this.#wire?.destroy();
    this.ear.hangUp();
  }

  async advance(ms: number): Promise<void> {
    for (let left = ms; left > 0; left -= 100) {
      this.rig.clock.advance(Math.min(100, left));
      await turn();
    }
  }

  #nextAnswer(): Answer {
    if (!this.isModelGone) this.secondAtATime += 1;
    const { answers = [] } = this.#options;
    this.#connects += 1;
    return this.#connects === 1 ? 0 : (answers[(this.#connects - 2) % answers.length] ?? 0);
  }

  async #wait(answer: Answer, signal: AbortSignal): Promise<void> {
    this.#connecting += 1;
    try {
      await new Promise<void>((resolve, reject) => {
        signal.addEventListener('abort', () => reject(new Error('aborted')));
        if (answer === 'refused') reject(new Error('refused'));
        else if (answer !== 'never') this.rig.clock.setTimer(answer, resolve);
      });
    } finally {
      this.#connecting -= 1;
    }
  }

  #newEar(): CarrierEar {
    const delays = this.#options.markDelays;
    return new CarrierEar({
      clock: this.rig.clock,
      onMark: (name) => this.#say({ event: 'mark', mark: { name } }),
      returnDelays: () => delays[(this.#marks += 1) % delays.length] ?? [0],
    });
  }

  #say(message: object): void {
    this.fromCarrier(wireFrame(Buffer.from(JSON.stringify(message))));
  }

  #listen(wire: Wire, ear: CarrierEar): void {
    const receiver = new Receiver({ isServer: false });
    receiver.on('message', (data: Buffer) => {
      const { event, media, mark } = JSON.parse(data.toString('utf8')) as {
        event: string;
        media?: { payload: string };
        mark?: { name: string };
      };
      if (event === 'clear') ear.clear();
      if (media !== undefined) ear.media(Buffer.from(media.payload, 'base64'));
      if (mark !== undefined) ear.mark(mark.name);
    });
    // The other side of a close handshake, as a carrier does it.
    receiver.on('conclude', () => {
      ear.hangUp();
      wire.hangUp();
    });
    // The answer to the handshake was written while `dial` ran.
    wire.onBytes = (bytes) => void receiver.write(bytes);
  }
}
