/**
 * What documents must keep true: links that lead somewhere, npm scripts that exist, and tables that say the same as the
 * code beside them. Markdown is read line by line: headings, links, and tables whose first cell holds names in code.
 */
import { posix } from 'node:path';
import type { ProjectFile } from './project-files.js';

/** The text without fenced and inline code, in which links are not links. Lines keep their numbers. */
function proseOf(text: string): string {
  const blank = (code: string): string => code.replace(/[^\n]/g, ' ');
  return text.replace(/^(```|~~~)[\s\S]*?^\1/gm, blank).replace(/`[^`\n]*`/g, blank);
}

/** A heading's anchor as code hosts build it. */
function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N} _-]/gu, '')
    .trim()
    .replaceAll(' ', '-');
}

function anchorsOf(file: ProjectFile): string[] {
  const prose = file.text.replace(/^(```|~~~)[\s\S]*?^\1/gm, '');
  return [...prose.matchAll(/^#{1,6} +(.*)$/gm)].map(([, heading = '']) => anchorOf(heading));
}

export function isDocument(file: ProjectFile): boolean {
  return /^([A-Z]+|docs\/.*)\.md$/.test(file.path);
}

/** Relative links to files or headings that do not exist. `paths` are all files of the project. */
export function linkBreaches(documents: readonly ProjectFile[], paths: readonly string[]): string[] {
  return documents.flatMap((file) =>
    [...proseOf(file.text).matchAll(/\]\(\s*<?([^)\s>]+)|^\[[^\]]+\]:\s*(\S+)/gm)].flatMap((match) => {
      const link = match[1] ?? match[2] ?? '';
      if (/^([a-z][a-z0-9+.-]*:|\/\/)/i.test(link)) return [];
      const [target = '', anchor] = link.split('#');
      const path =
        target === '' ? file.path : posix.join(posix.dirname(file.path), decodeURIComponent(target));
      const folder = path.endsWith('/') ? path : `${path}/`;
      const exists = paths.includes(path) || paths.some((each) => each.startsWith(folder));
      if (!exists) return [`${file.path} links to ${link}, which does not exist`];
      const document = documents.find((each) => each.path === path);
      if (anchor === undefined || document === undefined || anchorsOf(document).includes(anchor)) return [];
      return [`${file.path} links to ${link}, which has no such heading`];
    }),
  );
}

/** `npm run NAME` where package.json has no such script. */
export function scriptBreaches(documents: readonly ProjectFile[], scripts: readonly string[]): string[] {
  return documents.flatMap((file) =>
    [...file.text.matchAll(/\bnpm run ([a-z][\w:-]*)/g)].flatMap(([, name = '']) =>
      scripts.includes(name) ? [] : [`${file.path} names npm run ${name}, which package.json does not have`],
    ),
  );
}

/** Files of the project that a document names in code and that do not exist. */
export function pathBreaches(documents: readonly ProjectFile[], paths: readonly string[]): string[] {
  return documents.flatMap((file) =>
    [...file.text.matchAll(/`((?:src|agents|test|bench|scripts|docs|fixtures)\/[\w./-]+\.\w+)`/g)].flatMap(
      ([, path = '']) => (paths.includes(path) ? [] : [`${file.path} names ${path}, which does not exist`]),
    ),
  );
}

export interface TableRow {
  /** The names in code in the first cell. */
  readonly names: readonly string[];
  /** All cells, trimmed, as written. */
  readonly cells: readonly string[];
}

/** Rows of all tables of a document whose first cell holds at least one name in code. */
export function namedRows(file: ProjectFile): TableRow[] {
  return file.text.split('\n').flatMap((line) => {
    if (!/^\|.*\|\s*$/.test(line)) return [];
    const cells = line
      .trim()
      .slice(1, -1)
      .split(/(?<!\\)\|/)
      .map((cell) => cell.trim());
    const names = [...(cells[0] ?? '').matchAll(/`([^`]+)`/g)].map(([, name = '']) => name);
    return names.length === 0 ? [] : [{ names, cells }];
  });
}

/** Names that one of two lists lacks or that a document names twice. */
export function nameListBreaches(
  path: string,
  documented: readonly string[],
  actual: readonly string[],
): string[] {
  return [
    ...actual.filter((name) => !documented.includes(name)).map((name) => `${path} lacks ${name}`),
    ...documented.filter((name) => !actual.includes(name)).map((name) => `${path} invents ${name}`),
    ...documented
      .filter((name, at) => documented.indexOf(name) !== at)
      .map((name) => `${path} repeats ${name}`),
  ];
}

export type ErrorList = Readonly<Record<string, { readonly retryable: boolean; readonly told: string }>>;

/** `| code | retryable: yes or no | told | meaning |` for each code, in the order of the code. */
export function errorTableBreaches(file: ProjectFile, codes: ErrorList): string[] {
  const rows = namedRows(file);
  const documented = rows.flatMap(({ names }) => names);
  const differences = rows.flatMap(({ names: [name = ''], cells }) => {
    const code = codes[name];
    if (code === undefined) return [];
    const [, retryable, told, meaning = ''] = cells;
    const agrees = retryable === (code.retryable ? 'yes' : 'no') && told === code.told;
    return [
      ...(agrees ? [] : [`${file.path} says of ${name}: ${retryable}, ${told}`]),
      ...(meaning.length < 20 ? [`${file.path} does not say what ${name} means`] : []),
    ];
  });
  const lists = nameListBreaches(file.path, documented, Object.keys(codes));
  const ordered = documented.join() === Object.keys(codes).join();
  return [
    ...lists,
    ...differences,
    ...(lists.length > 0 || ordered ? [] : [`${file.path} has another order`]),
  ];
}

export interface DocumentedVariable {
  readonly name: string;
  /** As the document prints it; empty when the variable is unset by default. */
  readonly default: string;
  readonly meaning: string;
}

function variableRow(variable: DocumentedVariable): string {
  const value = variable.default === '' ? 'unset' : `\`${variable.default}\``;
  return `| \`${variable.name}\` | ${value} | ${variable.meaning.replaceAll('|', '\\|')} |`;
}

/** `| name | default | meaning |` for each variable that the configuration reads, and for no other. */
export function variableBreaches(file: ProjectFile, variables: readonly DocumentedVariable[]): string[] {
  const lines = new Set(file.text.split('\n').map((line) => line.trimEnd()));
  const rows = variables.map(variableRow);
  const documented = namedRows(file).flatMap(({ names }) => names.slice(0, 1));
  const lists = nameListBreaches(
    file.path,
    documented,
    variables.map(({ name }) => name),
  );
  if (lists.length > 0) return lists;
  return rows.filter((row) => !lines.has(row)).map((row) => `${file.path} should have the row ${row}`);
}
