/**
 * A replay's differences as a person reads a call: a line for each thing that was said or done, stretches of sound as
 * one, `-` for what the fixture expects and `+` for what the server did, with what came just before.
 */
import type { FixtureLine } from '../fixture/fixture-format.js';
import type { Comparison, Moved, Place } from './replay-comparison.js';

const CONTEXT_ROWS = 4;
const HUNKS_MAX = 3;
const CHANGED_ROWS_MAX = 12;
/** Sound shorter than this is shown as it is. */
const SHORT_SOUND_CHARS = 64;
const TEXT_MAX_CHARS = 110;
/** Each of the two messages in a row about their order. */
const MOVED_MAX_CHARS = 45;
/** Sound in messages that follow each other within this is one stretch. */
const STRETCH_GAP_MS = 400;

interface Row {
  /** `~`: the same message, before or behind another than it was. */
  readonly mark: ' ' | '-' | '+' | '~';
  readonly at: number;
  readonly who: string;
  what: string;
  /** Of a stretch of sound. */
  sound?: { endsAt: number; messages: number; ms: number; lastDetail: string };
}

/** Empty when nothing differs. */
export function dialogueDiff(incoming: readonly FixtureLine[], { places, differences }: Comparison): string {
  if (differences === 0) return '';
  const rows = joinSound(rowsOf(incoming, places));
  const hunks = hunksOf(rows);
  const shown = hunks.slice(0, HUNKS_MAX).map((hunk) => clipPair(hunk).map(renderRow).join('\n'));
  const hidden = hunks.length - shown.length;
  const more = hidden > 0 ? [`… and ${hidden} more ${hidden === 1 ? 'place' : 'places'} like these`] : [];
  return [...shown, ...more].join('\n      …\n');
}

/** The whole call, in order, for a person to read. */
export function dialogueOf(lines: readonly FixtureLine[]): string {
  return listOf(lines.filter((line) => isTold(line)));
}

/** Every one of `lines`, marks too. */
export function listOf(lines: readonly FixtureLine[]): string {
  const rows = lines.map((line) => rowOf(' ', line));
  return clipPair(joinSound(rows))
    .map((row) => renderRow(row))
    .join('\n');
}

function rowsOf(incoming: readonly FixtureLine[], places: readonly Place[]): Row[] {
  const rows = incoming.filter((line) => line.dir === 'in' && isTold(line)).map((line) => rowOf(' ', line));
  for (const { expected, actual, same, moved } of places) {
    if (expected !== undefined && moved !== undefined) rows.push(movedRow(expected, moved));
    else if (same) {
      if (expected !== undefined && isTold(expected)) rows.push(rowOf(' ', expected));
    } else {
      if (expected !== undefined) rows.push(rowOf('-', expected));
      if (actual !== undefined) rows.push(rowOf('+', actual));
    }
  }
  return rows.sort((a, b) => a.at - b.at);
}

/** Marks go with the sound, and are told only where they differ. */
function isTold(line: FixtureLine): boolean {
  return line.leg !== 'clock' && !(line.leg === 'phone' && line.message?.['event'] === 'mark');
}

/** One row for sound of the same kind that follows itself closely; anything else in between does not end it. */
function joinSound(rows: readonly Row[]): Row[] {
  const joined: Row[] = [];
  const open = new Map<string, Row>();
  for (const row of rows) {
    if (row.sound === undefined) {
      joined.push(row);
      continue;
    }
    const key = `${row.mark} ${row.who}`;
    const stretch = open.get(key);
    if (row.mark === ' ' && stretch?.sound !== undefined && row.at - stretch.sound.endsAt <= STRETCH_GAP_MS) {
      stretch.sound.endsAt = row.at;
      stretch.sound.messages += row.sound.messages;
      stretch.sound.ms += row.sound.ms;
      continue;
    }
    open.set(key, row);
    joined.push(row);
  }
  return joined;
}

function hunksOf(rows: readonly Row[]): Row[][] {
  const hunks: Row[][] = [];
  let lastChanged = Number.NEGATIVE_INFINITY;
  for (const [index, row] of rows.entries()) {
    if (row.mark === ' ') continue;
    const isNew = index - lastChanged > CONTEXT_ROWS;
    if (isNew) hunks.push(rows.slice(Math.max(0, index - CONTEXT_ROWS), index));
    else hunks.at(-1)?.push(...rows.slice(lastChanged + 1, index));
    hunks.at(-1)?.push(row);
    lastChanged = index;
  }
  return hunks.map((hunk) => shorten(hunk));
}

function shorten(hunk: readonly Row[]): Row[] {
  const most = CONTEXT_ROWS + CHANGED_ROWS_MAX;
  if (hunk.length <= most) return [...hunk];
  const last = hunk[most];
  const more: Row = { mark: ' ', at: last?.at ?? 0, who: '', what: `… ${hunk.length - most} more rows` };
  return [...hunk.slice(0, most), more];
}

function renderRow({ mark, at, who, what, sound }: Row): string {
  const time = (at / 1000).toFixed(3).padStart(9);
  return `${mark} ${time}  ${`${who} `.padEnd(8)}${sound === undefined ? what : soundText(sound)}`;
}

/** A stretch by its length; a single message by what tells it from another. */
function soundText({ ms, messages, lastDetail }: NonNullable<Row['sound']>): string {
  const seconds = (ms / 1000).toFixed(2);
  return messages === 1 ? `♪ ${seconds} s  ${lastDetail}` : `♪ ${seconds} s in ${messages} messages`;
}

/** A mere change of order: where the message came, and whether it is there too early or too late. */
function movedRow(line: FixtureLine, { where, other }: Moved): Row {
  const [moved, beside] = [line, other].map((one) => {
    const { who, what, sound } = rowOf('~', one);
    return { who, what: clip(sound === undefined ? what : soundText(sound), MOVED_MAX_CHARS) };
  }) as [Pick<Row, 'who' | 'what'>, Pick<Row, 'who' | 'what'>];
  return {
    mark: '~',
    at: line.at,
    who: moved.who,
    what: `${moved.what}  (now ${where} ${beside.who} ${beside.what})`,
  };
}

function rowOf(mark: Row['mark'], line: FixtureLine): Row {
  const { at } = line;
  const who = line.leg === 'call' ? 'call' : `${nameOf(line)}${line.dir === 'in' ? ' →' : ' ←'}`;
  const sound = soundOf(line);
  if (sound === undefined) return { mark, at, who, what: whatOf(line) };
  const { ms, detail } = sound;
  return { mark, at, who, what: '', sound: { endsAt: at, messages: 1, ms, lastDetail: detail } };
}

function nameOf(line: FixtureLine): string {
  const conn = 'conn' in line && line.conn !== undefined ? ` ${line.conn}` : '';
  return `${line.leg}${conn}`;
}

/** mu-law is 8 bytes a millisecond, the model's input 32, its output 48. */
function soundOf(line: FixtureLine): { ms: number; detail: string } | undefined {
  if (line.leg !== 'phone' && line.leg !== 'model') return undefined;
  if (line.sound !== undefined) {
    const [bytes, level, digest] = line.sound.split(' ');
    return { ms: Number(bytes) / (line.leg === 'phone' ? 8 : 32), detail: `${level} dB ${digest}` };
  }
  const data = line.leg === 'phone' ? payloadOf(line.message) : audioOf(line.message);
  if (data === undefined) return undefined;
  const bytes = Math.floor((data.length * 3) / 4);
  return { ms: bytes / (line.leg === 'phone' ? 8 : 48), detail: '' };
}

type Json = Record<string, unknown>;

function payloadOf(message: Json | undefined): string | undefined {
  const media = message?.['media'] as { payload?: unknown } | undefined;
  return typeof media?.payload === 'string' ? media.payload : undefined;
}

function audioOf(message: Json | undefined): string | undefined {
  const content = message?.['serverContent'] as
    { modelTurn?: { parts?: { inlineData?: { data?: unknown } }[] } } | undefined;
  if (content === undefined || Object.keys(content).length !== 1) return undefined;
  const data = content.modelTurn?.parts?.[0]?.inlineData?.data;
  return typeof data === 'string' ? data : undefined;
}

function whatOf(line: FixtureLine): string {
  const { at: _at, leg: _leg, dir: _dir, ...rest } = line;
  const { conn: _conn, ...content } = rest as Json;
  const [name, value] = Object.entries(content)[0] ?? ['', ''];
  if (name === 'message') return JSON.stringify(value, soundAsLength);
  if (name === 'post') return `POST ${String(value)}`;
  if (line.leg === 'phone' && line.answer !== undefined) return `${line.answer.status} ${line.answer.xml}`;
  if (line.leg === 'call' && line.heard !== undefined) {
    return `${line.heard.role}: ${line.heard.text}${line.heard.interrupted ? ' —' : ''}`;
  }
  if (value === true) return name;
  return `${name} ${typeof value === 'string' ? value : JSON.stringify(value)}`;
}

/** What is said beside the sound is what a reader wants to see. */
function soundAsLength(key: string, value: unknown): unknown {
  const sound = key === 'modelTurn' ? turnSound(value) : key === 'payload' ? value : undefined;
  const isSound = typeof sound === 'string' && sound.length > SHORT_SOUND_CHARS;
  return isSound ? `♪ ${Math.floor((sound.length * 3) / 4)} bytes` : value;
}

/** The base64 of a turn that is nothing but one part of sound. */
function turnSound(turn: unknown): unknown {
  const { parts } = (turn ?? {}) as { parts?: readonly { inlineData?: { data?: unknown } }[] };
  return parts?.length === 1 ? parts[0]?.inlineData?.data : undefined;
}

/** Long texts are told from where they differ. */
function clipPair(rows: readonly Row[]): Row[] {
  return rows.map((row, index) => {
    const other =
      row.mark === ' ' || row.mark === '~' || row.sound !== undefined
        ? undefined
        : counterpartOf(rows, index);
    if (other === undefined) return row.mark === '~' ? row : { ...row, what: clip(row.what) };
    let same = 0;
    while (same < row.what.length && row.what[same] === other.what[same]) same += 1;
    const from = same < TEXT_MAX_CHARS / 2 ? 0 : same - 20;
    return { ...row, what: clip(`${from === 0 ? '' : '…'}${row.what.slice(from)}`) };
  });
}

/** In a run of changed rows the first `-` of somebody goes with the first `+`, the second with the second. */
function counterpartOf(rows: readonly Row[], index: number): Row | undefined {
  const row = rows[index];
  const isChanged = (at: number): boolean => rows[at]?.mark === '-' || rows[at]?.mark === '+';
  let from = index;
  while (isChanged(from - 1)) from -= 1;
  let to = index;
  while (isChanged(to + 1)) to += 1;
  const run = rows.slice(from, to + 1).filter(({ who }) => who === row?.who);
  const place = run.filter(({ mark }) => mark === row?.mark).findIndex((one) => one === row);
  return run.filter(({ mark }) => mark !== row?.mark)[place];
}

function clip(text: string, maxChars = TEXT_MAX_CHARS): string {
  return text.length > maxChars ? `${text.slice(0, maxChars)}…` : text;
}
