/**
 * Where a worker thread begins: loads the worker's own module, `tool-worker`, of the source or of the build. Plain
 * JavaScript, because a thread cannot load TypeScript by itself.
 */
import { getPriority, setPriority } from 'node:os';
import { workerData } from 'node:worker_threads';

// Sound comes first where there are fewer cores than threads, also before the rest is loaded. On Linux this is the calling
// thread's own priority; elsewhere it would be that of the whole process. A server that is nicer already stays so.
const { isSource, niceness } = workerData;
if (process.platform === 'linux' && getPriority() < niceness) setPriority(niceness);

if (isSource) {
  const { createJiti } = await import('jiti');
  await createJiti(import.meta.url, { fsCache: false }).import('./tool-worker.ts');
} else {
  await import('./tool-worker.js');
}
