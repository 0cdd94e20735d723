import { describe, expect, test } from 'vitest';
import {
  completenessBreaches,
  lockBreaches,
  reasonBreaches,
  scriptTargetBreaches,
  versionBreaches,
  type PackageJson,
  type PackageLock,
} from './package-rules.js';
import { projectPaths, readProjectFile, readProjectJson } from './project-files.js';

const manifest = readProjectJson('package.json') as PackageJson;
const lock = readProjectJson('package-lock.json') as PackageLock;

const NODE_RANGE = '^20.19.0 || ^22.12.0 || >=24.0.0';
const SCRIPTS = ['start', 'test', 'call', 'replay', 'doctor', 'bench', 'check'];

/** A project of one dependency, with `change` in its locked package. */
function lockOf(change: object): PackageLock {
  const locked = { version: '8.23.0', integrity: 'sha512-a', engines: { node: '>=10.0.0' }, ...change };
  return { packages: { '': {}, 'node_modules/ws': locked } };
}

function manifestOf(version: string): PackageJson {
  return { scripts: {}, dependencies: { ws: version }, devDependencies: {} };
}

describe('package.json', () => {
  test('names the Node versions that the project supports', () => {
    expect(manifest.engines?.node).toBe(NODE_RANGE);
  });

  test.each(SCRIPTS)('has the script %s', (script) => {
    expect(manifest.scripts).toHaveProperty(script);
  });

  const paths = projectPaths();
  const isSkeleton = !paths.includes('src/main.ts');
  if (isSkeleton)
    console.warn('NOT CHECKED: src/main.ts does not exist yet, so what scripts run was not looked for.');

  test.skipIf(isSkeleton)('runs only files that exist', () => {
    expect(scriptTargetBreaches(manifest, paths)).toEqual([]);
  });

  test('the rule finds a script whose file is missing, by its source', () => {
    const scripts = {
      start: 'node scripts/build.mjs && exec node dist/main.js',
      bench: 'exec node bench/main.mjs',
    };
    const bad = { ...manifestOf('8.23.0'), scripts };
    expect(scriptTargetBreaches(bad, ['scripts/build.mjs', 'src/main.ts'])).toEqual([
      'npm run bench needs bench/main.mjs',
    ]);
    expect(scriptTargetBreaches(bad, ['scripts/build.mjs', 'bench/main.mjs'])).toEqual([
      'npm run start needs src/main.ts',
    ]);
  });

  test('pins what the lock file holds', () => {
    expect(versionBreaches(manifest, lock)).toEqual([]);
  });

  test.each(['^8.23.0', '~8.23.0', '8', 'latest', '>=8', '8.22.0'])(
    'the rule finds version %s',
    (version) => {
      expect(versionBreaches(manifestOf(version), lockOf({}))).toHaveLength(1);
    },
  );
});

describe('package-lock.json', () => {
  test('names no host, checks every package and builds nothing', () => {
    expect(Object.keys(lock.packages).length).toBeGreaterThan(100);
    expect(lockBreaches(lock)).toEqual([]);
  });

  test.each([
    ['a host', { resolved: 'https://example.com/ws.tgz' }],
    ['an unchecked package', { integrity: undefined }],
    ['a range', { version: '^8.23.0' }],
    ['an unread install script', { hasInstallScript: true }],
  ])('the rule finds %s', (_, change) => {
    expect(lockBreaches(lockOf({}))).toEqual([]);
    expect(lockBreaches(lockOf(change))).toHaveLength(1);
  });
});

describe('what packages ask for', () => {
  test('is all in the lock file', () => {
    expect(completenessBreaches(lock)).toEqual([]);
  });

  test.each(['dependencies', 'optionalDependencies'])(
    'the rule finds a gap in %s, and looks upwards',
    (field) => {
      const bad = lockOf({ [field]: { bytes: '^1.0.0' } }).packages;
      const nested = {
        'node_modules/ws/node_modules/bytes': {},
        'node_modules/ws/node_modules/bytes/node_modules/a': {},
      };
      const inner = { 'node_modules/ws/node_modules/bytes/node_modules/b': { [field]: { a: '1' } } };
      expect(completenessBreaches({ packages: bad })).toHaveLength(1);
      expect(completenessBreaches({ packages: { ...bad, 'node_modules/bytes': {} } })).toEqual([]);
      expect(completenessBreaches({ packages: { ...bad, ...nested, ...inner } })).toEqual([]);
    },
  );
});

describe('docs/dependencies.md', () => {
  test('gives a reason and the Node range of every dependency', () => {
    expect(reasonBreaches(readProjectFile('docs/dependencies.md'), manifest, lock)).toEqual([]);
  });

  const row = '| `ws` | `>=10.0.0` | Both legs of a call are WebSockets. |';

  test.each([
    ['a missing line', 'none'],
    ['a line too many', `${row}\n| \`left-pad\` | any | It is not there at all. |`],
    ['another Node range', row.replace('10', '18')],
    ['no reason', row.replace(/Both.*\./, '')],
  ])('the rule finds %s', (_, text) => {
    const file = { path: 'docs/dependencies.md', text: row };
    expect(reasonBreaches(file, manifestOf('8.23.0'), lockOf({}))).toEqual([]);
    expect(reasonBreaches({ ...file, text }, manifestOf('8.23.0'), lockOf({}))).toHaveLength(1);
  });
});
