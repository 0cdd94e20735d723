/**
 * The summary of a V8 CPU profile: self time by function and by file, over a window of the profile, idle time left out.
 */
import { readFileSync, readdirSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

function place(url, folder) {
  if (url === '') return '(V8)';
  if (!url.startsWith('file:')) return url;
  const file = relative(folder, fileURLToPath(url));
  return file.replace(/^.*node_modules\//, '');
}

function largestFirst(totals, busyUs, count) {
  return [...totals]
    .sort((a, b) => b[1] - a[1])
    .slice(0, count)
    .map(([name, us]) => ({
      name,
      ms: Math.round(us / 100) / 10,
      share: Math.round((us / busyUs) * 1000) / 1000,
    }));
}

/**
 * Reads the one with the most samples of the `.cpuprofile` files in `profileFolder` (the main thread's) between two
 * times in microseconds of CLOCK_MONOTONIC. Paths are told relative to `folder`.
 */
export function summarizeProfile({ profileFolder, folder, windowUs: [fromUs, toUs], functions, files }) {
  const profile = readdirSync(profileFolder)
    .filter((name) => name.endsWith('.cpuprofile'))
    .map((name) => JSON.parse(readFileSync(join(profileFolder, name), 'utf8')))
    .sort((a, b) => b.samples.length - a.samples.length)[0];
  if (profile === undefined) throw new Error('the server left no CPU profile');
  const nodes = new Map(profile.nodes.map((node) => [node.id, node.callFrame]));
  const byFunction = new Map();
  const byFile = new Map();
  let atUs = profile.startTime;
  let busyUs = 0;
  for (const [i, id] of profile.samples.entries()) {
    atUs += profile.timeDeltas[i] ?? 0;
    const lastsUs = profile.timeDeltas[i + 1] ?? 0;
    const { functionName, url, lineNumber } = nodes.get(id);
    if (atUs < fromUs || atUs > toUs || functionName === '(idle)') continue;
    const file = place(url, folder);
    const name = `${functionName === '' ? '(anonymous)' : functionName} ${file}${url === '' ? '' : `:${lineNumber + 1}`}`;
    const fileName = url === '' ? functionName : file;
    busyUs += lastsUs;
    byFunction.set(name, (byFunction.get(name) ?? 0) + lastsUs);
    byFile.set(fileName, (byFile.get(fileName) ?? 0) + lastsUs);
  }
  return {
    busyMs: Math.round(busyUs / 1000),
    functions: largestFirst(byFunction, busyUs, functions),
    files: largestFirst(byFile, busyUs, files),
  };
}
