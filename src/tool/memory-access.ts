/**
 * What tools keep in mind of a caller, for later calls. Of a caller without a name nothing is kept: the next one could be
 * anybody.
 */
import type { MemoryAccess } from '../agent/tool-context.js';
import { MEMORY_RECALLED_MAX } from '../tool-limits.js';
import type { Memory, MemoryFact } from '../store/memory.js';
import type { SessionKey } from '../store/store.js';

const ANONYMOUS = 'anonymous:';

export function isAnonymous(userId: string): boolean {
  return userId.startsWith(ANONYMOUS);
}

export function memoryOf(store: Memory | undefined, { appName, userId }: SessionKey): MemoryAccess {
  const kept = (): Memory => {
    if (store === undefined) throw new Error('memory: there is no store');
    if (isAnonymous(userId)) throw new Error('memory: nothing is kept of a caller who is not known');
    return store;
  };
  return {
    remember: async (entity, facts) => kept().remember({ appName, userId }, entity, facts),
    relate: async (source, relation, target) =>
      kept().relate({ appName, userId }, { source, relation, target }),
  };
}

const REMEMBERED = 'This is what you remember of this caller from earlier calls; it may be out of date:';

/** For the agent's instruction, newest first; undefined where nothing is known. */
export async function recalled(store: Memory, { appName, userId }: SessionKey): Promise<string | undefined> {
  if (isAnonymous(userId)) return undefined;
  const facts = await store.recall({ appName, userId }, MEMORY_RECALLED_MAX);
  return facts.length === 0 ? undefined : [REMEMBERED, ...facts.map(lineOf)].join('\n');
}

/** Quoted, so that nothing in it passes for an instruction's own line. */
function lineOf(fact: MemoryFact): string {
  const words = fact.kind === 'fact' ? [fact.entity, fact.fact] : [fact.source, fact.relation, fact.target];
  return `- ${words.map((word) => JSON.stringify(word)).join(' ')}`;
}
