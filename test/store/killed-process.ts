import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/**
 * Runs a program of this folder and kills it without warning once it has told more than `linesMin` lines. Resolves with the lines that
 * it told; rejects if it ends by itself.
 */
export async function linesUntilKilled(
  program: string,
  args: readonly string[],
  linesMin: number,
): Promise<readonly string[]> {
  const path = fileURLToPath(new URL(program, import.meta.url));
  const child = spawn(process.execPath, [path, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  let said = '';
  let complained = '';
  child.stderr.on('data', (chunk: Buffer) => (complained += chunk.toString()));
  await new Promise<void>((resolve, reject) => {
    child.stdout.on('data', (chunk: Buffer) => {
      said += chunk.toString();
      if (said.split('\n').length > linesMin) child.kill('SIGKILL');
    });
    child.on('close', (_, signal) => {
      if (signal === 'SIGKILL') resolve();
      else reject(new Error(`the process ended by itself: ${complained}`));
    });
  });
  return said.split('\n').filter((line) => line !== '');
}
