/** How the error of a definition names it: one line, whatever was given as its name. */

const NAME_MAX_CHARS = 64;

export function named(kind: 'agent' | 'plugin' | 'tool', name: unknown): string {
  if (typeof name !== 'string' || name.trim() === '') return kind === 'agent' ? 'agent' : `a ${kind}`;
  const isPlain = /^[\x21-\x7e]+$/.test(name);
  return `${kind} ${(isPlain ? name : JSON.stringify(name)).slice(0, NAME_MAX_CHARS)}`;
}
