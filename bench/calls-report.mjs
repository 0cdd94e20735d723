/**
 * What the results of calls.mjs come to: the cost beside the relay's, the memory slope, and tables to read.
 */
import { round } from './load/measurements.mjs';
import { number, table } from './table.mjs';

/** Counts that are 0 in a clean run; docs/performance.md says what each means. */
const ODDITIES = [
  'framesLost',
  'framesUnknown',
  'clearsMissed',
  'clearsUnasked',
  'turnsCutShort',
  'mediaWithoutSpeech',
  'modelStrays',
  'modelSocketsLeft',
];

function median(values) {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** A line for each target: CPU against each relay's (medians of the rounds' ratios) and the memory slope. */
export function summaries(results) {
  const of = (target, calls) => results.filter((r) => r.target === target && r.calls === calls);
  /** Runs of one round are nearest in time, so that each is compared with its own. */
  const ratio = (relay, target, calls) =>
    median(
      of(target, calls).flatMap((own) => {
        const other = of(relay, calls).find((run) => run.round === own.round);
        return other === undefined ? [] : [own.cpuMsPerCallSecond / other.cpuMsPerCallSecond];
      }),
    );
  const against = (relay, target, counts) =>
    counts
      .filter((calls) => target !== relay && of(relay, calls).length > 0)
      .map((calls) => ({ calls, ratio: round(ratio(relay, target, calls)) }));
  return [...new Set(results.map((r) => r.target))].map((target) => {
    const own = results.filter((r) => r.target === target).map((r) => r.calls);
    const counts = [...new Set(own)].sort((a, b) => a - b);
    const settledMb = (calls) => median(of(target, calls).map((r) => r.residentMb.settled));
    const [fewest, most] = [counts[0], counts.at(-1)];
    return {
      bench: 'calls-summary',
      target,
      cpuAgainstRelay: against('relay', target, counts),
      cpuAgainstRelayAlike: against('relay-alike', target, counts),
      memoryKbPerCall:
        fewest === most ? null : Math.round(((settledMb(most) - settledMb(fewest)) * 1024) / (most - fewest)),
      memoryFromCalls: fewest,
      memoryToCalls: most,
    };
  });
}

/** The readable end of the output. */
export function printTables(results, totals) {
  const rows = results.map((r) => [
    `${r.target} ${r.calls}`,
    number(r.cpuMsPerCallSecond, 2),
    number(r.coreShare * 100, 0),
    r.othersOnCoreShare === null ? number(undefined) : number(r.othersOnCoreShare * 100, 0),
    number(r.frameToModelMs.p50, 2),
    number(r.frameToModelMs.p99, 2),
    number(r.interruptedToClearMs.p50, 2),
    number(r.interruptedToClearMs.p99, 2),
    number(r.firstSoundMs.p50, 1),
    number(r.dryMsPerCallMinute, 1),
    number(r.residentMb.settled, 0),
    number(r.generatorLagMs.p99, 1),
  ]);
  const header =
    'target calls|CPU ms/call-s|core %|others %|frame→model p50|p99|interrupted→clear p50|p99|first sound p50|dry ms/call-min|RSS MB|load late p99';
  console.log(`\n${table(header.split('|'), rows)}`);
  for (const { target, memoryKbPerCall, memoryFromCalls, memoryToCalls, ...against } of totals) {
    for (const [relay, field] of Object.entries({
      relay: 'cpuAgainstRelay',
      'alike relay': 'cpuAgainstRelayAlike',
    })) {
      const ratios = against[field].map(({ calls, ratio }) => `${number(ratio, 2)} at ${calls} calls`);
      if (ratios.length > 0) console.log(`${target}: CPU against the ${relay} ${ratios.join(', ')}`);
    }
    if (memoryKbPerCall !== null) {
      console.log(
        `${target}: ${memoryKbPerCall} KB a call, from ${memoryFromCalls} to ${memoryToCalls} calls`,
      );
    }
  }
  for (const result of results) {
    const odd = ODDITIES.filter((name) => result[name] > 0).map((name) => `${name} ${result[name]}`);
    if (odd.length > 0) console.log(`${result.target} ${result.calls}: ${odd.join(', ')}`);
  }
  for (const { target, calls, profile } of results.filter((r) => r.profile !== undefined)) {
    const part = (entries) =>
      table(
        ['self', 'ms', '%'],
        entries.map((e) => [e.name, number(e.ms, 1), number(e.share * 100, 1)]),
      );
    console.log(`\n${target}, ${calls} calls: busy ${profile.busyMs} ms of the window`);
    console.log(`${part(profile.functions)}\n\n${part(profile.files)}`);
  }
}
