/**
 * Who may import whom, read from the import lines. The table is the architecture: carrier, sound, agent, model and
 * store do not know one another, `call` joins them, and only the outermost files build things. A new part of `src/`
 * has to be entered here before anything in it may import.
 */
import { builtinModules } from 'node:module';
import { posix } from 'node:path';
import { isCode, type ProjectFile } from './project-files.js';
import { importLines, type ImportLine } from './syntax.js';

interface Reach {
  /** Parts whose values and types may be imported. */
  readonly values: readonly string[];
  /** Parts of which only types may be imported. */
  readonly types: readonly string[];
}

const LEAVES = [
  'call-tap.ts',
  'clock.ts',
  'ids.ts',
  'input-fault.ts',
  'limits.ts',
  'link-limits.ts',
  'handover-limits.ts',
  'tool-limits.ts',
  'errors.ts',
  'foreign.ts',
  'loopback.ts',
  'make-folder.ts',
  'data-folder.ts',
  'package-root.ts',
  'tool-limits.ts',
];
/** Parts that browsers load: no builtins and no packages, types included. */
const BROWSER_PARTS = new Set(['client']);
const MEDIA = ['telephony', 'audio', 'agent', 'model', 'store'];
const INNER = [
  ...LEAVES,
  'event',
  ...MEDIA,
  'config.ts',
  'call',
  'tool',
  'fixture',
  'run',
  'observe',
  'console',
  'wire',
  'web',
  'index.ts',
];
const MEDIA_REACH: Reach = { values: LEAVES, types: ['observe'] };
const EVENT_REACH: Reach = { values: [...LEAVES, 'event'], types: ['observe'] };
const OUTER_REACH: Reach = { values: [...INNER, 'switchboard.ts', 'server.ts'], types: [] };

/** A part is a folder of `src/` or a file directly in it. */
export const REACH_OF_PART: Readonly<Record<string, Reach>> = {
  ...Object.fromEntries(LEAVES.map((leaf) => [leaf, { values: LEAVES, types: [] }])),
  // The one stream that agents, store, console and observers have in common: a leaf, with files of its own.
  event: { values: LEAVES, types: [] },
  ...Object.fromEntries(MEDIA.map((part) => [part, MEDIA_REACH])),
  ...Object.fromEntries(['agent', 'model', 'store'].map((part) => [part, EVENT_REACH])),
  'config.ts': MEDIA_REACH,
  'index.ts': { values: ['agent', 'event'], types: [] },
  observe: { values: [...LEAVES, 'event'], types: [...MEDIA, 'config.ts', 'call'] },
  // The read-only view of the calls is the console's interface, which the call implements; never the other way round.
  call: { values: [...LEAVES, 'event', ...MEDIA, 'observe', 'tool'], types: ['config.ts', 'console'] },
  // A recorder knows the edges by their taps only.
  fixture: { values: LEAVES, types: ['observe'] },
  // What an agent does while it talks: the calls of a run, whatever its mode.
  tool: { values: [...LEAVES, 'event', 'agent'], types: ['model', 'store', 'observe'] },
  run: {
    values: [...LEAVES, 'event', 'model', 'agent', 'store', 'tool', 'wire'],
    types: ['observe', 'client'],
  },
  console: { values: [...LEAVES, 'store', 'observe', 'wire'], types: ['agent', 'config.ts', 'event'] },
  // Runs in browsers: nothing but itself.
  client: { values: [], types: [] },
  // Frames have one definition, the client's.
  wire: { values: LEAVES, types: ['client', 'observe'] },
  // Sockets of web clients: sound in and out, and frames; to a call they are one more kind of media stream.
  web: { values: [...LEAVES, 'audio', 'wire'], types: ['observe', 'telephony'] },
  'live-runs.ts': { values: INNER, types: [] },
  'server-tools.ts': { values: INNER, types: [] },
  'switchboard.ts': { values: [...INNER, 'live-runs.ts', 'server-tools.ts'], types: [] },
  'server.ts': { values: [...INNER, 'switchboard.ts'], types: [] },
  replay: OUTER_REACH,
  // A client of a server that it starts itself.
  probe: { values: [...OUTER_REACH.values, 'client'], types: [] },
  'probe-command.ts': { values: [...LEAVES, 'observe', 'probe'], types: [] },
  'doctor.ts': { values: [...OUTER_REACH.values, 'doctor-checks.ts', 'doctor-finding.ts'], types: [] },
  'doctor-checks.ts': {
    values: [...OUTER_REACH.values, 'doctor-doors.ts', 'doctor-finding.ts', 'doctor-number.ts'],
    types: [],
  },
  'doctor-doors.ts': { values: [...LEAVES, 'doctor-finding.ts', 'telephony'], types: ['config.ts'] },
  'doctor-number.ts': { values: ['doctor-finding.ts', 'telephony'], types: ['config.ts'] },
  'doctor-finding.ts': { values: [], types: [] },
  'main.ts': { values: [...OUTER_REACH.values, 'stray-errors.ts'], types: [] },
  'stray-errors.ts': { values: LEAVES, types: ['observe'] },
  'store-command.ts': { values: [...LEAVES, 'config.ts', 'store', 'observe'], types: [] },
};

/** Packages that stay in their parts, types too. */
const PARTS_OF_VENDOR: Readonly<Record<string, readonly string[]>> = {
  twilio: ['telephony', 'replay', 'doctor-doors.ts'],
  '@google/genai': ['model'],
  express: ['telephony', 'console', 'switchboard.ts'],
  libsql: ['store'],
  'better-sqlite3': ['store'],
  kysely: ['store'],
  pg: ['store'],
};

/** The part that a path below `src/` belongs to; undefined outside `src/`. */
export function partOf(path: string): string | undefined {
  return /^src\/([^/]+)/.exec(path)?.[1];
}

/** `@scope/name/deep` -> `@scope/name`. */
function packageOf(specifier: string): string {
  return specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/');
}

function isBuiltin(specifier: string): boolean {
  return specifier.startsWith('node:') && builtinModules.includes(packageOf(specifier.slice('node:'.length)));
}

/** The file that a relative import means, by its path from the root. */
function resolveImport(file: ProjectFile, specifier: string): string {
  return posix.join(posix.dirname(file.path), specifier).replace(/\.(m?)js$/, (_, m: string) => `.${m}ts`);
}

function partBreach(from: string, to: string | undefined, line: ImportLine): string | undefined {
  if (to === from) return undefined;
  if (line.byUrl && from === 'replay' && to === 'main.ts') return undefined; // It starts a server as a process.
  if (to === undefined) return 'reaches outside src/';
  const reach = REACH_OF_PART[from];
  if (reach === undefined) return `'${from}' has no entry in REACH_OF_PART`;
  if (reach.values.includes(to)) return undefined;
  if (!reach.types.includes(to)) return `'${from}' may not import '${to}'`;
  return line.typeOnly ? undefined : `'${from}' may import only types of '${to}'`;
}

function packageBreach(from: string, specifier: string, dependencies: readonly string[]): string | undefined {
  const name = packageOf(specifier);
  if (!dependencies.includes(name)) return `'${name}' is not in package.json's dependencies`;
  const homes = PARTS_OF_VENDOR[name];
  return homes === undefined || homes.includes(from) ? undefined : `'${name}' stays in ${homes.join(', ')}`;
}

function sourceBreach(
  file: ProjectFile,
  line: ImportLine,
  dependencies: readonly string[],
): string | undefined {
  const from = partOf(file.path) ?? '';
  if (line.specifier.startsWith('.')) {
    const target = resolveImport(file, line.specifier);
    return partBreach(from, partOf(target), line);
  }
  if (BROWSER_PARTS.has(from)) return 'it does not exist in browsers';
  return isBuiltin(line.specifier) ? undefined : packageBreach(from, line.specifier, dependencies);
}

/** Two agents may share what lies in a folder of `agents/`, never one another. */
function agentBreach(
  file: ProjectFile,
  line: ImportLine,
  dependencies: readonly string[],
): string | undefined {
  if (line.specifier === 'earshot' || isBuiltin(line.specifier)) return undefined;
  if (line.specifier.startsWith('.') && /^agents\/[^/]+\//.test(resolveImport(file, line.specifier)))
    return undefined;
  const isPackage =
    dependencies.includes(packageOf(line.specifier)) && packageOf(line.specifier) !== 'earshot';
  return isPackage
    ? undefined
    : `an agent imports only 'earshot', installed packages and files in folders of agents/`;
}

/** Breaches of the table and of the vendor rule in `src/` and `agents/`. */
export function importBreaches(files: readonly ProjectFile[], dependencies: readonly string[]): string[] {
  return files.filter(isCode).flatMap((file) => {
    const isAgent = file.path.startsWith('agents/');
    if (!isAgent && !file.path.startsWith('src/')) return [];
    return importLines(file).flatMap((line) => {
      const breach = isAgent ? agentBreach(file, line, dependencies) : sourceBreach(file, line, dependencies);
      return breach === undefined ? [] : [`${file.path}:${line.line} imports '${line.specifier}': ${breach}`];
    });
  });
}

/** Parts that load one another at run time, each cycle once, as `a -> b -> a`. Types do not load anything. */
export function partCycles(files: readonly ProjectFile[]): string[] {
  const loads = new Map<string, Set<string>>();
  for (const file of files.filter(isCode)) {
    const from = partOf(file.path);
    if (from === undefined) continue;
    for (const line of importLines(file)) {
      const to = line.specifier.startsWith('.') ? partOf(resolveImport(file, line.specifier)) : undefined;
      if (to === undefined || to === from || line.typeOnly) continue;
      loads.set(from, (loads.get(from) ?? new Set()).add(to));
    }
  }
  const cycles = new Set<string>();
  const follow = (part: string, path: readonly string[]): void => {
    const first = path.indexOf(part);
    if (first >= 0) {
      const cycle = path.slice(first);
      const start = cycle.indexOf(cycle.toSorted()[0] ?? part);
      const turned = [...cycle.slice(start), ...cycle.slice(0, start)];
      cycles.add([...turned, turned[0]].join(' -> '));
      return;
    }
    for (const next of loads.get(part) ?? []) follow(next, [...path, part]);
  };
  for (const part of loads.keys()) follow(part, []);
  return [...cycles];
}
