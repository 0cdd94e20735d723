/**
 * The project's own text files, as the tidy rules read them: path from the root with forward slashes, and text.
 * Rules are plain functions over such files, so that a small bad sample can show that each rule bites.
 */
import { readFileSync, readdirSync } from 'node:fs';
import { join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

export interface ProjectFile {
  readonly path: string;
  readonly text: string;
}

export const projectRoot = fileURLToPath(new URL('../..', import.meta.url));

const SKIPPED_FOLDERS = new Set(['.git', '.ci-work', 'node_modules', 'dist', 'data', 'coverage']);
const TEXT_NAME =
  /\.(ts|mts|mjs|js|json|ndjson|md|yml|yaml|html|css|toml|sh)$|^(Dockerfile|run|\.[a-z]+rc|\.[a-z]+ignore)$/;

function pathsBelow(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return SKIPPED_FOLDERS.has(entry.name) ? [] : pathsBelow(path);
    return entry.isFile() ? [path] : [];
  });
}

/** Every file of the project, whatever it holds, without what is installed, built or written at run time. */
export function projectPaths(): string[] {
  return pathsBelow(projectRoot)
    .map((path) => relative(projectRoot, path).split(sep).join('/'))
    .toSorted();
}

export function readProjectFile(path: string): ProjectFile {
  return { path, text: readFileSync(join(projectRoot, path), 'utf8') };
}

export function readProjectJson(path: string): unknown {
  return JSON.parse(readProjectFile(path).text);
}

/** The text files among `projectPaths`; the lock file is read by its own rule only. */
export function projectTextFiles(): ProjectFile[] {
  return projectPaths()
    .filter((path) => TEXT_NAME.test(path.slice(path.lastIndexOf('/') + 1)) && path !== 'package-lock.json')
    .map(readProjectFile);
}

/** Code that Node runs: AssemblyScript (`*.as.ts`) is another language, plain `.js` belongs to browser pages. */
export function isCode(file: ProjectFile): boolean {
  return /\.m?ts$|\.mjs$/.test(file.path) && !/\.(as|d)\.m?ts$/.test(file.path);
}
