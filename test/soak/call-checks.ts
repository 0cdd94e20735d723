/** What was wrong with one call of the soak, from all that is known of it when everything is over. */
import type { PhoneRecord } from '../../src/replay/phone-record.js';
import { readHeard, readSaid, type Span } from './heard-sound.js';
import { missingIn, type Told } from './same-text.js';
import { type LineSounds, unexplainedSilences } from './silences.js';
import type { CallOutcome } from './soak-caller.js';

export type ProblemKind = 'silence' | 'end' | 'text' | 'readable' | 'growth' | 'log' | 'harness';

export interface Problem {
  readonly kind: ProblemKind;
  readonly what: string;
  /** The call, where it is one call's. */
  readonly call?: number;
}

/** What one server's page, or one watcher, told of the call. */
export interface Account {
  readonly by: string;
  readonly told: readonly Told[];
}

export interface CallAccounts {
  /** The committed events, or why they could not be read. */
  readonly store: readonly Told[] | { readonly status: number };
  readonly accounts: readonly Account[];
  /** Each account is of the whole call: it was on one server from its beginning to its end. */
  readonly areWhole: boolean;
}

/** The phone cannot speak `<Say>`: its caller hears silence for about as long as the words take. */
const SAY_MS_PER_CHAR = 65;
/** A setup that is refused by a code for what is wrong with it is not asked for again: the caller hears an apology. */
const REFUSALS: ReadonlySet<unknown> = new Set([1007, 1008]);

export function lineSoundsOf(record: PhoneRecord): LineSounds | undefined {
  const [first] = record.streams;
  if (first === undefined) return undefined;
  const { agent, clips } = readHeard(record.heard);
  return {
    openedAtMs: first.openedAtMs,
    endedAtMs: record.durationMs,
    agent,
    clips: [...clips, ...saidByCarrier(record)],
    caller: readSaid(record.said),
  };
}

function saidByCarrier({ carrierSpeech }: PhoneRecord): Span[] {
  return carrierSpeech
    .filter(({ verb }) => verb === 'Say')
    .map(({ atMs, text }) => ({ fromMs: atMs, toMs: atMs + text.length * SAY_MS_PER_CHAR }));
}

const seconds = (ms: number): string => `${(ms / 1_000).toFixed(1)} s`;

/** Who was heard when, to be read beside what model and caller did. */
export function timelineOf(record: PhoneRecord): string[] {
  const sounds = lineSoundsOf(record);
  if (sounds === undefined) return [];
  const at = ({ fromMs, toMs }: Span, who: string): string =>
    `${Math.round(fromMs)} heard: ${who}, until ${Math.round(toMs)}`;
  return [
    ...sounds.agent.map((span) => at(span, span.isWhole ? 'the agent' : 'the agent, broken off')),
    ...sounds.clips.map((span) => at(span, 'a clip')),
    ...sounds.caller.map((span) => at(span, 'the caller')),
    `${Math.round(sounds.endedAtMs)} over`,
  ];
}

/** Of the line alone; `endReason` is the server's word, where it has one. */
export function lineProblems(
  { plan, record, ...outcome }: CallOutcome,
  endReason: string,
  lateWithin?: (fromMs: number, toMs: number) => number,
): Problem[] {
  const call = plan.number;
  const problems: Problem[] = [];
  const sounds = lineSoundsOf(record);
  for (const { fromMs, toMs, owed } of sounds === undefined ? [] : unexplainedSilences(sounds, lateWithin)) {
    const what = `silent for ${seconds(toMs - fromMs)} from ${seconds(fromMs)} on, after ${owed}`;
    problems.push({ kind: 'silence', call, what });
  }
  if (outcome.failure !== undefined)
    problems.push({ kind: 'end', call, what: `the phone: ${outcome.failure}` });
  else if (outcome.gaveUp) problems.push({ kind: 'end', call, what: 'the caller gave up, unanswered' });
  else if (outcome.wasCut && !isRefusedAtFirst(plan)) {
    const when = `at ${seconds(record.durationMs)}, before its end`;
    problems.push({
      kind: 'end',
      call,
      what: `the ${record.endedBy ?? 'server'} ended it ${when} (${endReason})`,
    });
  }
  // What no server and no model could say any more; nothing that a soak does needs it.
  for (const { verb, text } of record.carrierSpeech) {
    if (verb === 'Say') problems.push({ kind: 'end', call, what: `the carrier had to say: ${text}` });
  }
  return problems;
}

function isRefusedAtFirst({ fault: { model } }: CallOutcome['plan']): boolean {
  return model?.kind === 'death' && model.at === 'before-setup' && REFUSALS.has(model.how);
}

/** Of its words. A call that nobody ever opened has none. */
export function textProblems(call: number, wasOpened: boolean, found: CallAccounts): Problem[] {
  const { store, accounts, areWhole } = found;
  if ('status' in store) {
    if (!wasOpened && store.status === 404) return [];
    return [{ kind: 'readable', call, what: `its session cannot be read (${store.status})` }];
  }
  return accounts.flatMap(({ by, told }) => {
    const strange = missingIn(told, store).map((line) => `${by} has what the store has not: ${line}`);
    const absent = areWhole
      ? missingIn(store, told).map((line) => `${by} has not what the store has: ${line}`)
      : [];
    return [...strange, ...absent].map((what): Problem => ({ kind: 'text', call, what }));
  });
}
