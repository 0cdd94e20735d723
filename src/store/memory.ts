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

/** Each refuses (`store_refused`) a user id that begins with `anonymous:`, for no two of those are one caller. */
export interface Memory {
  /** What is known already is not kept twice, its time moves on. Above MEMORY_FACTS_MAX the oldest go; so many are the most at once.
   * Texts are bounded by MEMORY_FACT_MAX_CHARS: `store_refused`. Rejects with `store_no_session` for a user who has no session in
   * the app: one who was forgotten during a call is not remembered anew. Returns how many were new. */
  remember(owner: MemoryOwner, entity: string, facts: readonly string[]): Promise<number>;
  /** The same for a relation. True: it is new. */
  relate(
    owner: MemoryOwner,
    relation: { readonly source: string; readonly relation: string; readonly target: string },
  ): Promise<boolean>;
  /** The newest, newest first; at most MEMORY_FACTS_MAX. */
  recall(owner: MemoryOwner, limit: number): Promise<readonly MemoryFact[]>;
}
