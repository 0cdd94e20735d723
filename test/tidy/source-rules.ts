/**
 * What source files may not hold: clocks and chance outside the two files that pass them in, environment reads outside
 * the configuration, default exports, barrels, leftovers, paths of one machine, and names that are not kebab-case.
 * Each rule returns one line a breach.
 */
import { isCode, type ProjectFile } from './project-files.js';
import { freeIdentifiers, importLines, lineAt, memberNames, nameOf, visitSyntax } from './syntax.js';

const TIMER_FUNCTIONS = new Set(['setTimeout', 'setInterval', 'setImmediate']);
const TIMER_MODULES = /^(node:)?timers(\/promises)?$/;
const CLOCK_MEMBERS = new Set(['Date.now', 'performance.now', 'process.hrtime']);
const CHANCE_MEMBERS = new Set(['Math.random', 'crypto.randomUUID', 'webcrypto.randomUUID']);

interface Found {
  readonly what: string;
  readonly start: number;
}

function clockUses(file: ProjectFile): Found[] {
  const visits = visitSyntax(file);
  const timers = freeIdentifiers(visits).filter(({ name }) => TIMER_FUNCTIONS.has(name));
  const members = memberNames(visits).filter(({ name }) => {
    const [object = '', member = ''] = name.split('.');
    return CLOCK_MEMBERS.has(name) || (/^(globalThis|global)$/.test(object) && TIMER_FUNCTIONS.has(member));
  });
  const dates = visits.flatMap(({ node }) => {
    const args = node['arguments'];
    const reads = node.type === 'CallExpression' || (Array.isArray(args) && args.length === 0);
    return reads && nameOf(node['callee']) === 'Date' ? [{ what: 'new Date()', start: node.start }] : [];
  });
  return [...[...timers, ...members].map(({ name, start }) => ({ what: name, start })), ...dates];
}

function chanceUses(file: ProjectFile): Found[] {
  const visits = visitSyntax(file);
  return [
    ...memberNames(visits).filter(({ name }) => CHANCE_MEMBERS.has(name) || name.endsWith('.randomUUID')),
    ...freeIdentifiers(visits).filter(({ name }) => name === 'randomUUID'),
  ].map(({ name, start }) => ({ what: name, start }));
}

function breach(file: ProjectFile, found: Found): string {
  return `${file.path}:${lineAt(file, found.start)} uses ${found.what}`;
}

function isProduct(file: ProjectFile): boolean {
  return isCode(file) && /^(src|agents)\//.test(file.path);
}

/** Where time and chance come from: on the server, and in the folder that browsers load, which stands alone. */
const CLOCK_FILES = new Set(['src/clock.ts', 'src/client/platform.ts']);
const CHANCE_FILES = new Set(['src/ids.ts', 'src/client/platform.ts']);
/** The package's faces, which put together what is exported. */
const FACES = new Set(['src/index.ts', 'src/client/index.ts']);

/**
 * Time comes from a Clock and chance from `ids.ts`; both are passed in. Nobody passes a clock to an agent's module: it may read
 * the date, and wait by `node:timers/promises`, whose waits end with the tool's signal. Lint keeps bare timers out of it.
 */
export function timeAndChanceBreaches(files: readonly ProjectFile[]): string[] {
  return files.filter(isProduct).flatMap((file) => {
    const isAgent = file.path.startsWith('agents/');
    const clocks = isAgent || CLOCK_FILES.has(file.path) ? [] : clockUses(file);
    const chance = CHANCE_FILES.has(file.path) ? [] : chanceUses(file);
    const isAllowed = (specifier: string): boolean =>
      file.path === 'src/clock.ts' || (isAgent && specifier === 'node:timers/promises');
    const modules = importLines(file)
      .filter(({ specifier }) => TIMER_MODULES.test(specifier) && !isAllowed(specifier))
      .map(({ specifier, line }) => `${file.path}:${line} uses ${specifier}`);
    return [...new Set([...[...clocks, ...chance].map((found) => breach(file, found)), ...modules])];
  });
}

/** A process's own file may read the environment where its header comment says so. */
function isDocumentedEntry(file: ProjectFile): boolean {
  const header = /^(#!.*\n)?\/\*\*[\s\S]*?\*\//.exec(file.text)?.[0] ?? '';
  return (
    /^src\/(replay\/|main\.ts$|doctor\.ts$|store-command\.ts$|probe-command\.ts$)/.test(file.path) &&
    /\benvironment\b/.test(header)
  );
}

/** The environment is read once: by an entry file, which hands it to `config.ts`. */
export function environmentBreaches(files: readonly ProjectFile[]): string[] {
  return files.filter(isProduct).flatMap((file) => {
    if (file.path === 'src/config.ts' || isDocumentedEntry(file)) return [];
    const reads = memberNames(visitSyntax(file))
      .filter(({ name }) => name === 'process.env')
      .map(({ name, start }) => breach(file, { what: name, start }));
    const imports = importLines(file)
      .filter(({ specifier, names }) => /^(node:)?process$/.test(specifier) && names.includes('env'))
      .map(({ line }) => `${file.path}:${line} uses process.env`);
    return [...reads, ...imports];
  });
}

/** No default exports but those of agent modules and of the test runner's configuration; re-exports only in the faces. */
export function exportBreaches(files: readonly ProjectFile[]): string[] {
  return files.filter(isCode).flatMap((file) => {
    const visits = visitSyntax(file);
    const mayDefault = /(^|\/)agents\//.test(file.path) || /^vitest(\.soak)?\.config\.ts$/.test(file.path);
    const defaults = visits.filter(({ node }) => {
      const named = node.type === 'ExportSpecifier' && nameOf(node['exported']) === 'default';
      return !mayDefault && (named || node.type === 'ExportDefaultDeclaration');
    });
    const reexports = FACES.has(file.path) ? [] : importLines(file, visits).filter((line) => line.reexport);
    return [
      ...defaults.map(({ node }) => breach(file, { what: 'a default export', start: node.start })),
      ...reexports.map(({ line }) => `${file.path}:${line} uses a re-export`),
    ];
  });
}

/** The product writes to its log or to a stream that it was given. */
export function consoleBreaches(files: readonly ProjectFile[]): string[] {
  return files.filter(isProduct).flatMap((file) =>
    memberNames(visitSyntax(file))
      .filter(({ name }) => name.startsWith('console.'))
      .map(({ name, start }) => breach(file, { what: name, start })),
  );
}

// Written with brackets so that this file, which the rules read too, does not hold what it looks for.
const UNFINISHED = /\b(TO[D]O|FIX[M]E)\b/;
const FOCUSED = /\b(test|it|describe|suite|bench)(\.\w+)*\.onl[y]\b/;
const MACHINE_PATH = /(^|[^\w.])\/(wor[k]|far[m]|roo[t])\/|\/tmp\/w[t]\b/;
const REGISTRY_HOST = /registry\.npmj[s]|deb\.debia[n]|npmmirro[r]/;

/** Marks of unfinished work, focused tests, and what only one machine knows; in every text file, documents too. */
export function leftoverBreaches(files: readonly ProjectFile[]): string[] {
  return files.flatMap((file) =>
    file.text.split('\n').flatMap((line, index) => {
      const found = [
        ['unfinished work', UNFINISHED],
        ['a focused test', FOCUSED],
        ['a path of one machine', MACHINE_PATH],
        ['a registry host', REGISTRY_HOST],
      ] as const;
      return found
        .filter(([, pattern]) => pattern.test(line))
        .map(([what]) => `${file.path}:${index + 1} holds ${what}`);
    }),
  );
}

const KEBAB_NAME = /^[a-z0-9]+(-[a-z0-9]+)*(\.[a-z0-9]+(-[a-z0-9]+)*)*$/;
const DRAWER_NAME = /^(utils?|helpers?|common|types?|misc)(\.|$)/;
const NAMED_FOLDERS = /^(src|agents|test|bench|scripts|docs|fixtures|grafana)\//;

/** Folder and file names are kebab-case nouns; nothing is called after a drawer. */
export function nameBreaches(paths: readonly string[]): string[] {
  return paths
    .filter((path) => NAMED_FOLDERS.test(path))
    .flatMap((path) => {
      const names = path.split('/');
      if (!names.every((name) => KEBAB_NAME.test(name))) return [`${path} is not kebab-case`];
      const isDrawer = path.startsWith('src/') && names.some((name) => DRAWER_NAME.test(name));
      return isDrawer ? [`${path} is named after a drawer, not after what it holds`] : [];
    });
}
