/**
 * Compiles src/audio/kernel.as.ts to the committed src/audio/kernel.wasm. With `--check` nothing is written: the
 * command fails when the committed bytes are not what the source compiles to.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { main as asc } from 'assemblyscript/asc';

const root = fileURLToPath(new URL('..', import.meta.url));
const target = fileURLToPath(new URL('../src/audio/kernel.wasm', import.meta.url));

async function compile() {
  let binary;
  let complaints = '';
  const { error } = await asc(
    [
      ['src/audio/kernel.as.ts', '--baseDir', root, '--outFile', 'kernel.wasm', '--config', 'none'],
      ['--runtime', 'stub', '--enable', 'simd', '--noAssert', '--use', 'abort='],
      ['--optimizeLevel', '3', '--shrinkLevel', '0'],
    ].flat(),
    {
      writeFile(name, contents) {
        if (name === 'kernel.wasm') binary = contents;
      },
      stderr: {
        write(text) {
          complaints += String(text);
        },
      },
    },
  );
  if (error !== null || binary === undefined) throw new Error(`asc failed\n${complaints}`, { cause: error });
  return Buffer.from(binary);
}

const compiled = await compile();
if (process.argv.includes('--check')) {
  const committed = readFileSync(target);
  if (!committed.equals(compiled)) {
    console.error(
      'src/audio/kernel.wasm is not what src/audio/kernel.as.ts compiles to: npm run build:kernel',
    );
    process.exit(1);
  }
} else {
  writeFileSync(target, compiled);
  console.log(`src/audio/kernel.wasm: ${compiled.length} bytes`);
}
