/**
 * Source files as syntax trees, by the parser that runs the tests, so that a word in a comment or a string is never
 * taken for code. Knows three things of a tree: its nodes, what it imports, and which members of globals it names.
 */
import { parseAst } from 'vitest/node';
import type { ProjectFile } from './project-files.js';

export interface SyntaxNode {
  readonly type: string;
  readonly start: number;
  readonly [field: string]: unknown;
}

export interface NodeVisit {
  readonly node: SyntaxNode;
  readonly parent: SyntaxNode | undefined;
  /** The parent's field that holds this node. */
  readonly field: string;
}

export interface ImportLine {
  readonly specifier: string;
  /** Erased by the compiler: `import type`, `export type … from`, `import('x').T`. */
  readonly typeOnly: boolean;
  readonly reexport: boolean;
  /** Named by `new URL(…, import.meta.url)`: loaded by a worker or started as a process. */
  readonly byUrl: boolean;
  readonly line: number;
  /** Names as the other module exports them. */
  readonly names: readonly string[];
}

function isNode(value: unknown): value is SyntaxNode {
  return (
    typeof value === 'object' && value !== null && typeof (value as { type?: unknown }).type === 'string'
  );
}

export function lineAt(file: ProjectFile, offset: number): number {
  return file.text.slice(0, offset).split('\n').length;
}

/** Every node of the file, parents first. Throws when the file does not parse. */
export function visitSyntax(file: ProjectFile): NodeVisit[] {
  const lang = /\.m?ts$/.test(file.path) ? 'ts' : 'js';
  const visits: NodeVisit[] = [];
  const walk = (value: unknown, parent: SyntaxNode | undefined, field: string): void => {
    if (Array.isArray(value)) {
      for (const item of value) walk(item, parent, field);
    } else if (isNode(value)) {
      visits.push({ node: value, parent, field });
      for (const [key, child] of Object.entries(value)) walk(child, value, key);
    }
  };
  walk(parseAst(file.text, { lang }, file.path), undefined, '');
  return visits;
}

/** The name of an identifier or the value of a string literal. */
export function nameOf(value: unknown): string | undefined {
  if (!isNode(value)) return undefined;
  const name =
    value.type === 'Identifier' ? value['name'] : value.type === 'Literal' ? value['value'] : undefined;
  return typeof name === 'string' ? name : undefined;
}

function nodesIn(value: unknown): SyntaxNode[] {
  return Array.isArray(value) ? value.filter(isNode) : [];
}

function namesFrom(node: SyntaxNode): string[] {
  return nodesIn(node['specifiers']).flatMap(
    (each) => nameOf(each['imported']) ?? nameOf(each['local']) ?? [],
  );
}

/** `new URL('./worker.js', import.meta.url)` loads a module as surely as an import does. */
function moduleUrl(node: SyntaxNode): string | undefined {
  if (node.type !== 'NewExpression' || nameOf(node['callee']) !== 'URL') return undefined;
  const target = nameOf(nodesIn(node['arguments'])[0]);
  return target !== undefined && /^\..*\.(js|mjs|ts)$/.test(target) ? target : undefined;
}

export function importLines(file: ProjectFile, visits = visitSyntax(file)): ImportLine[] {
  return visits.flatMap(({ node }) => {
    const reexport = node.type === 'ExportAllDeclaration' || node.type === 'ExportNamedDeclaration';
    const loads =
      reexport ||
      ['ImportDeclaration', 'ImportExpression', 'TSImportType', 'TSExternalModuleReference'].includes(
        node.type,
      );
    const specifier = loads ? nameOf(node['source'] ?? node['expression']) : moduleUrl(node);
    if (specifier === undefined) return [];
    const typeOnly =
      node['importKind'] === 'type' || node['exportKind'] === 'type' || node.type === 'TSImportType';
    const line = lineAt(file, node.start);
    return [{ specifier, typeOnly, reexport, byUrl: !loads, line, names: namesFrom(node) }];
  });
}

/** `object.member` wherever the file names one: dotted, in brackets, or taken apart by `const { member } = object`. */
export function memberNames(visits: readonly NodeVisit[]): { name: string; start: number }[] {
  return visits.flatMap(({ node }) => {
    if (node.type === 'MemberExpression') {
      const object = nameOf(node['object']);
      const member = nameOf(node['property']);
      const named =
        node['computed'] !== true || (isNode(node['property']) && node['property'].type === 'Literal');
      return object !== undefined && member !== undefined && named
        ? [{ name: `${object}.${member}`, start: node.start }]
        : [];
    }
    const pattern = node.type === 'VariableDeclarator' ? node['id'] : undefined;
    const object = nameOf(node['init']);
    if (object === undefined || !isNode(pattern) || pattern.type !== 'ObjectPattern') return [];
    return nodesIn(pattern['properties']).flatMap((property) => {
      const member = nameOf(property['key']);
      return member === undefined ? [] : [{ name: `${object}.${member}`, start: node.start }];
    });
  });
}

const KEYED_NODES = new Set([
  'Property',
  'PropertyDefinition',
  'AccessorProperty',
  'MethodDefinition',
  'TSPropertySignature',
  'TSMethodSignature',
  'TSAbstractMethodDefinition',
  'TSAbstractPropertyDefinition',
  'TSEnumMember',
]);

/** Identifiers that stand for a value by themselves: no member, no key of an object, class or type. */
export function freeIdentifiers(visits: readonly NodeVisit[]): { name: string; start: number }[] {
  return visits.flatMap(({ node, parent, field }) => {
    if (node.type !== 'Identifier' || parent === undefined) return [];
    const isMember =
      parent.type === 'MemberExpression' && field === 'property' && parent['computed'] !== true;
    const isKey =
      KEYED_NODES.has(parent.type) && (field === 'key' || field === 'id') && parent['shorthand'] !== true;
    const isType = parent.type === 'TSTypeQuery' || parent.type === 'TSQualifiedName';
    const name = nameOf(node);
    return isMember || isKey || isType || name === undefined ? [] : [{ name, start: node.start }];
  });
}
