/**
 * What an agent keeps in mind of one caller over calls: facts about entities and relations between them, by app and user.
 */
export interface MemoryOwner {
  readonly appName: string;
  readonly userId: string;
}

export type MemoryFact =
  | { readonly kind: 'fact'; readonly entity: string; readonly fact: string; readonly atMs: number }
  | {
      readonly kind: 'relation';
      readonly source: string;
      readonly relation: string;
      readonly target: string;
      readonly atMs: number;
    };

export interface Memory {
  /** What is known already is not kept twice, its time moves on. Above MEMORY_FACTS_MAX the oldest go. Texts are bounded by
   * MEMORY_FACT_MAX_CHARS: `store_refused`. Returns how many were new. */
  remember(owner: MemoryOwner, entity: string, facts: readonly string[]): Promise<number>;
  /** The same for a relation. True: it is new. */
  relate(
    owner: MemoryOwner,
    relation: { readonly source: string; readonly relation: string; readonly target: string },
  ): Promise<boolean>;
  /** The newest, newest first. */
  recall(owner: MemoryOwner, limit: number): Promise<readonly MemoryFact[]>;
}
