/**
 * What the outside does in a replayed call, as a list of moments: the incoming lines of a fixture in their order, with
 * sound that a line names by its file (`play`, `say`) taken apart into the messages in which it travels.
 */
import { dirname, resolve } from 'node:path';
import { errorText, FixtureError } from '../errors.js';
import type { Fixture, FixtureLine, SocketLine } from '../fixture/fixture-format.js';
import { mulawToPcm16 } from '../fixture/mulaw-table.js';
import {
  FRAME_MS,
  REPLAY_SOUNDS_MAX,
  MULAW_BYTES_PER_MS,
  MULAW_FRAME_BYTES,
  MULAW_SILENCE,
} from '../limits.js';
import { readCallerSound } from './sound-file.js';

/** One thing that happens. */
export interface Moment {
  readonly at: number;
  readonly line: FixtureLine;
  /** The line of the file that it comes from, the first of it where it comes apart; undefined for the rest. */
  readonly written: FixtureLine | undefined;
}

/** The model's sound: 24 kHz PCM16. */
const MODEL_SAMPLES_PER_MS = 24;
/** A buzz where a line names no file: a triangle of 150 Hz, loud as speech, in whole numbers so that it is the same
 * everywhere. */
const BUZZ_PERIOD = 160;
const BUZZ_PEAK = 6000;

type PhoneLine = Extract<FixtureLine, { leg: 'phone' }>;
type ModelLine = Extract<FixtureLine, { leg: 'model' }>;

/** @throws FixtureError `fixture_invalid`, naming the line, for a sound file that cannot be read. */
export async function scriptOf(fixture: Fixture): Promise<Moment[]> {
  const sounds = new Sounds(fixture);
  const mouths = new Map<number, Mouth>();
  const moments: Moment[] = [];
  for (const line of fixture.lines) {
    if (line.dir === 'out') continue;
    if (line.leg === 'model' && silencesModel(line)) takeBack(moments, line);
    if (line.leg === 'phone' && line.play !== undefined) {
      moments.push(...mouthOf(mouths, line).play(line, await sounds.ofCaller(line, line.play), moments));
    } else if (line.leg === 'model' && line.say !== undefined) {
      moments.push(...spoken(line, line.say, await sounds.ofModel(line, line.say)));
    } else {
      if (line.leg === 'phone' && line.open !== undefined) mouthOf(mouths, line).openedAt = line.at;
      if (line.leg === 'phone' && endsStream(line)) takeBack(moments, line);
      moments.push({ at: line.at, line, written: line });
    }
  }
  // Lines keep their order; at one moment they come before the sound of a line that came apart.
  return moments.sort(
    (a, b) => a.at - b.at || Number(a.written === undefined) - Number(b.written === undefined),
  );
}

function endsStream({ message, close, cut }: PhoneLine): boolean {
  return close !== undefined || cut !== undefined || message?.['event'] === 'stop';
}

/** A model that was interrupted, or is gone, says no more of what a line has it say. */
function silencesModel({ message, close, cut }: ModelLine): boolean {
  const content = message?.['serverContent'];
  const isInterrupted = typeof content === 'object' && content !== null && 'interrupted' in content;
  return isInterrupted || close !== undefined || cut !== undefined;
}

/** What a line before `line` would still say on its socket, from its time on, is not said. */
function takeBack(before: Moment[], { at, leg, conn }: SocketLine): void {
  for (let index = before.length - 1; index >= 0; index -= 1) {
    const moment = before[index];
    if (moment === undefined || moment.at < at || moment.written !== undefined) continue;
    if (moment.line.leg === leg && moment.line.conn === conn) before.splice(index, 1);
  }
}

function mouthOf(mouths: Map<number, Mouth>, line: PhoneLine): Mouth {
  const conn = line.conn ?? 1;
  const mouth = mouths.get(conn) ?? new Mouth();
  mouths.set(conn, mouth);
  return mouth;
}

/** Sounds by their names in the lines. */
class Sounds {
  readonly #fixture: Fixture;

  constructor(fixture: Fixture) {
    this.#fixture = fixture;
  }

  /** 8 kHz mu-law. */
  async ofCaller(line: PhoneLine, play: NonNullable<PhoneLine['play']>): Promise<Uint8Array> {
    if ('silenceMs' in play) return new Uint8Array(play.silenceMs * MULAW_BYTES_PER_MS).fill(MULAW_SILENCE);
    const sound = await this.#file(line, play.file);
    const from = (play.fromMs ?? 0) * MULAW_BYTES_PER_MS;
    return sound.subarray(from, play.ms === undefined ? undefined : from + play.ms * MULAW_BYTES_PER_MS);
  }

  /** 24 kHz PCM16: a telephone sound with each sample three times, or the buzz. */
  async ofModel(line: ModelLine, say: NonNullable<ModelLine['say']>): Promise<Int16Array> {
    if (say.file === undefined) return buzzOf((say.ms ?? 1000) * MODEL_SAMPLES_PER_MS);
    const sound = await this.#file(line, say.file);
    const all = new Int16Array(sound.length * 3);
    for (const [at, code] of sound.entries()) all.fill(mulawToPcm16(code), 3 * at, 3 * at + 3);
    return say.ms === undefined ? all : all.subarray(0, say.ms * MODEL_SAMPLES_PER_MS);
  }

  async #file(line: FixtureLine, name: string): Promise<Uint8Array> {
    const { path: fixturePath, lines } = this.#fixture;
    const path = resolve(dirname(fixturePath), name);
    const known = decoded.get(path) ?? readCallerSound(path);
    // Many fixtures play the same few files: the newest stay decoded.
    decoded.delete(path);
    decoded.set(path, known);
    for (const oldest of decoded.keys()) {
      if (decoded.size <= REPLAY_SOUNDS_MAX) break;
      decoded.delete(oldest);
    }
    try {
      return await known;
    } catch (error) {
      // The header is the first row.
      const place = `${fixturePath}:${lines.indexOf(line) + 2}`;
      throw new FixtureError('fixture_invalid', `${place}: ${errorText(error)}`, { cause: error });
    }
  }
}

const decoded = new Map<string, Promise<Uint8Array>>();

function buzzOf(samples: number): Int16Array {
  const sound = new Int16Array(samples);
  for (let at = 0; at < samples; at += 1) sound[at] = buzz(at);
  return sound;
}

function buzz(at: number): number {
  const phase = at % BUZZ_PERIOD;
  const half = BUZZ_PERIOD / 2;
  const up = phase < half ? phase : BUZZ_PERIOD - phase;
  return Math.round((up * 2 * BUZZ_PEAK) / half) - BUZZ_PEAK;
}

/** One caller's mouth: it says one thing at a time, and numbers its frames. */
class Mouth {
  openedAt = 0;
  #chunk = 0;
  #freeAt = 0;

  play(line: PhoneLine, sound: Uint8Array, before: Moment[]): Moment[] {
    const { at, leg, dir, conn } = line;
    // A line that begins while the one before is still being said cuts it short.
    if (at < this.#freeAt) takeBack(before, line);
    const frames = Math.floor(sound.length / MULAW_FRAME_BYTES);
    this.#freeAt = at + frames * FRAME_MS;
    return Array.from({ length: frames }, (_, index): Moment => {
      const frameAt = at + index * FRAME_MS;
      const payload = sound.subarray(index * MULAW_FRAME_BYTES, (index + 1) * MULAW_FRAME_BYTES);
      this.#chunk += 1;
      const media = {
        track: 'inbound',
        chunk: String(this.#chunk),
        timestamp: String(Math.round(frameAt - this.openedAt)),
        payload: Buffer.from(payload).toString('base64'),
      };
      const message = { event: 'media', sequenceNumber: String(this.#chunk + 1), media };
      return {
        at: frameAt,
        line: { at: frameAt, leg, dir, ...(conn !== undefined && { conn }), message },
        written: index === 0 ? line : undefined,
      };
    });
  }
}

/** Sound faster than real time with its words, and what follows it. */
function spoken(line: ModelLine, say: NonNullable<ModelLine['say']>, sound: Int16Array): Moment[] {
  const moments: Moment[] = [];
  const add = (at: number, serverContent: object): void => {
    const { leg, dir, conn } = line;
    const said: SocketLine = {
      at,
      leg,
      dir,
      ...(conn !== undefined && { conn }),
      message: { serverContent },
    };
    moments.push({ at, line: said, written: moments.length === 0 ? line : undefined });
  };
  const samples = say.chunkMs * MODEL_SAMPLES_PER_MS;
  const chunks = Math.max(1, Math.ceil(sound.length / samples));
  const words = say.text.match(/^\s+\S+\s*|\S+\s*/g) ?? [];
  for (let chunk = 0; chunk < chunks; chunk += 1) {
    const at = line.at + chunk * say.everyMs;
    const piece = sound.subarray(chunk * samples, (chunk + 1) * samples);
    const data = Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength).toString('base64');
    if (piece.length > 0) {
      add(at, { modelTurn: { parts: [{ inlineData: { mimeType: 'audio/pcm;rate=24000', data } }] } });
    }
    const from = Math.floor((chunk * words.length) / chunks);
    const to = Math.floor(((chunk + 1) * words.length) / chunks);
    if (to > from) add(at, { outputTranscription: { text: words.slice(from, to).join('') } });
  }
  const endAt = line.at + chunks * say.everyMs;
  if (say.end !== 'nothing') add(endAt, { generationComplete: true });
  if (say.end === 'turnComplete') add(endAt, { turnComplete: true });
  return moments;
}
