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

/** A line for each target: CPU against the relay's (medians over rounds) and the memory slope. */
export function summaries(results) {
  const of = (target, calls) => results.filter((r) => r.target === target && r.calls === calls);
  return [...new Set(results.map((r) => r.target))].map((target) => {
    const own = results.filter((r) => r.target === target).map((r) => r.calls);
    const counts = [...new Set(own)].sort((a, b) => a - b);
    const cpu = (name, calls) => median(of(name, calls).map((r) => r.cpuMsPerCallSecond));
    const settledMb = (calls) => median(of(target, calls).map((r) => r.residentMb.settled));
    const [fewest, most] = [counts[0], counts.at(-1)];
    return {
      bench: 'calls-summary',
      target,
      cpuAgainstRelay: counts
        .filter((calls) => target !== 'relay' && of('relay', calls).length > 0)
        .map((calls) => ({ calls, ratio: round(cpu(target, calls) / cpu('relay', calls)) })),
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
  for (const { target, cpuAgainstRelay, memoryKbPerCall, memoryFromCalls, memoryToCalls } of totals) {
    const ratios = cpuAgainstRelay
      .map(({ calls, ratio }) => `${number(ratio, 2)} at ${calls} calls`)
      .join(', ');
    if (ratios !== '') console.log(`${target}: CPU against the relay ${ratios}`);
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
