/**
 * Compiles src/ to dist/ when dist/ is missing or older than its source (`--force`: always), and copies what is
 * not TypeScript (sound, WebAssembly, data) beside it. `npm start`, `npm run call` and `npm test` begin here.
 */
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { join } from 'node:path';

const root = fileURLToPath(new URL('..', import.meta.url));
const source = join(root, 'src');
const target = join(root, 'dist');
const stamp = join(target, '.built');

function filesBelow(folder) {
  return readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
}

function isStale() {
  if (!existsSync(stamp)) return true;
  const builtMs = statSync(stamp).mtimeMs;
  const inputs = [
    ...filesBelow(source),
    ...['package-lock.json', 'tsconfig.json', 'tsconfig.build.json'].map((name) => join(root, name)),
  ];
  return inputs.some((file) => statSync(file).mtimeMs > builtMs);
}

if (process.argv.includes('--force') || isStale()) {
  rmSync(target, { recursive: true, force: true });
  const tsc = join(root, 'node_modules', 'typescript', 'bin', 'tsc');
  const compiled = spawnSync(process.execPath, [tsc, '-p', join(root, 'tsconfig.build.json')], {
    stdio: 'inherit',
  });
  if (compiled.status !== 0) process.exit(compiled.status ?? 1);
  for (const file of filesBelow(source)) {
    if (!file.endsWith('.ts')) cpSync(file, join(target, file.slice(source.length)));
  }
  writeFileSync(stamp, '');
}
