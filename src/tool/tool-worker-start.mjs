/**
 * Where a worker thread begins: loads the worker's own module, `tool-worker`, of the source or of the build. Plain
 * JavaScript, because a thread cannot load TypeScript by itself.
 */
import { workerData } from 'node:worker_threads';

const { entry } = workerData;
if (entry.endsWith('.ts')) {
  const { createJiti } = await import('jiti');
  await createJiti(import.meta.url, { fsCache: false }).import(entry);
} else {
  await import(entry);
}
