/**
 * What settles pending calls: somebody who says so, or the event that tells what a call has come to. That event has the call's
 * id, and is stored in the same transaction, so that a crash leaves neither a result without an end nor one that is told twice.
 */
import type { Connection } from './schema.js';

/** Those of them that wait; returns how many. Of two that settle a call the database lets one change the row. */
export async function settleCalls(trx: Connection, ids: readonly string[], nowMs: number): Promise<number> {
  if (ids.length === 0) return 0;
  const rows = await trx
    .updateTable('pending_call')
    .set({ settled_at_ms: nowMs })
    .where('id', 'in', ids)
    .where('settled_at_ms', 'is', null)
    .returning('id')
    .execute();
  return rows.length;
}
