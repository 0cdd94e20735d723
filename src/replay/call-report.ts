/**
 * What the call command prints when a call is over: the transcript and one small table. Pure text from plain values.
 */
import type { CallStatistics } from './call-statistics.js';
import type { CallView } from './call-view.js';
import type { PhoneRecord } from './phone-record.js';

export function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}

export function clockTime(ms: number): string {
  const minutes = Math.floor(ms / 60_000);
  const rest = ((ms % 60_000) / 1_000).toFixed(1).padStart(4, '0');
  return `${String(minutes).padStart(2, '0')}:${rest}`;
}

/** One line a message; what the caller cut off ends in a dash. */
export function transcriptLines(view: CallView): string[] {
  return view.messages.map((message) => {
    const who = message.role === 'user' ? 'caller' : 'agent ';
    return `${who}  ${message.text.trim()}${message.interrupted === true ? ' —' : ''}`;
  });
}

/** What the carrier itself said outside the stream, such as a busy message. */
export function carrierLines(record: PhoneRecord): string[] {
  return record.carrierSpeech.map(
    ({ verb, text }) => `line    ${verb === 'Say' ? text : `(recording ${text})`}`,
  );
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = (sorted.length - 1) / 2;
  return ((sorted[Math.floor(middle)] ?? 0) + (sorted[Math.ceil(middle)] ?? 0)) / 2;
}

function whole(ms: number): string {
  return `${Math.round(ms)} ms`;
}

/** Rows of the table: what was measured, and the figure. */
function statisticsRows(statistics: CallStatistics): [string, string][] {
  const { turnLatenciesMs: turns, bargeIns, firstSoundMs } = statistics;
  const cut = bargeIns.filter((bargeIn) => bargeIn.cleared).map((bargeIn) => bargeIn.silenceAfterMs);
  return [
    [
      'call',
      `${seconds(statistics.durationMs)}, ${statistics.streams} stream${statistics.streams === 1 ? '' : 's'}`,
    ],
    ['heard · said', `${seconds(statistics.soundHeardMs)} · ${seconds(statistics.soundSaidMs)}`],
    ['first sound after', firstSoundMs === undefined ? 'none heard' : whole(firstSoundMs)],
    [
      'turn latency',
      turns.length === 0
        ? 'no answered turn'
        : `median ${whole(median(turns))}, max ${whole(Math.max(...turns))}, ${turns.length} turns`,
    ],
    [
      'barge-in to silence',
      cut.length === 0
        ? 'agent never cut off'
        : `median ${whole(median(cut))}, max ${whole(Math.max(...cut))}, ${cut.length} times`,
    ],
    ['dry carrier', `${whole(statistics.dryMs)} in ${statistics.dryGaps} gaps`],
    ['clears', `${statistics.clears}, dropping ${seconds(statistics.clearedMs)}`],
    ['marks returned', String(statistics.marksReturned)],
    ['sound lost', whole(statistics.lostMs)],
    [
      'phone late by',
      `max ${statistics.latenessMaxMs.toFixed(1)} ms, ${statistics.framesSkipped} frames skipped`,
    ],
  ];
}

export function statisticsTable(statistics: CallStatistics): string {
  const rows = statisticsRows(statistics);
  const width = Math.max(...rows.map(([name]) => name.length));
  return rows.map(([name, figure]) => `  ${name.padEnd(width)}  ${figure}`).join('\n');
}
