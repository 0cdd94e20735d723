/**
 * Another commit of the server, built beside this one, so that base and change can run alternately on one machine.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

function run(command, args, options) {
  const done = spawnSync(command, args, { encoding: 'utf8', ...options });
  if (done.status !== 0) {
    throw new Error(`${command} ${args.join(' ')}: ${done.stderr ?? ''}${done.stdout ?? ''}`.trimEnd());
  }
}

/**
 * Checks `revision` out into a temporary worktree of `root` and builds it with the installed dependencies of `root`
 * (a commit with other dependencies may fail to build). `remove` takes the worktree away again.
 */
export function checkOut(root, revision) {
  const parent = mkdtempSync(join(tmpdir(), 'earshot-base-'));
  const folder = join(parent, 'tree');
  const remove = () => {
    spawnSync('git', ['-C', root, 'worktree', 'remove', '--force', folder]);
    rmSync(parent, { recursive: true, force: true });
  };
  try {
    run('git', ['-C', root, 'worktree', 'add', '--detach', folder, revision]);
    symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
    run(process.execPath, [join(folder, 'scripts', 'build.mjs'), '--force'], { cwd: folder });
  } catch (error) {
    remove();
    throw error;
  }
  return { folder, remove };
}
