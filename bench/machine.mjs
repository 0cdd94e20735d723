/**
 * What a benchmark's numbers depend on: commit, Node, CPU, load; and the pinning of processes to cores.
 */
import { spawnSync } from 'node:child_process';
import { availableParallelism, cpus, loadavg } from 'node:os';

function git(folder, ...args) {
  const run = spawnSync('git', ['-C', folder, ...args], { encoding: 'utf8' });
  return run.status === 0 ? run.stdout.trim() : undefined;
}

/** The commit of `folder` and whether its files differ from it; nulls outside a git checkout. */
export function commitOf(folder) {
  const commit = git(folder, 'rev-parse', '--short=12', 'HEAD') ?? null;
  const status = git(folder, 'status', '--porcelain');
  return { commit, dirty: status === undefined ? null : status !== '' };
}

/** Fields that every result line carries. */
export function machineFields() {
  return {
    date: new Date().toISOString(),
    node: process.version,
    cpu: cpus()[0]?.model ?? 'unknown',
    cores: availableParallelism(),
    load1m: Math.round((loadavg()[0] ?? 0) * 100) / 100,
  };
}

const hasTaskset = spawnSync('taskset', ['--version'], { stdio: 'ignore' }).status === 0;

/** Why processes run unpinned, or undefined where they are pinned. */
export const unpinnedBecause =
  availableParallelism() < 2
    ? 'fewer than two cores'
    : hasTaskset
      ? undefined
      : 'taskset (util-linux) is not installed';

/** The command line that runs `command` on `cores` (a number, or several by commas), or anywhere where pinning cannot be had. */
export function pinned(cores, command) {
  return unpinnedBecause === undefined ? ['taskset', '-c', String(cores), ...command] : command;
}
