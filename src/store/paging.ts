/**
 * Pages of rows in the order of some columns: a cursor holds the last row's values, and a page is bounded in rows and bytes.
 */
import { sql } from 'kysely';
import type { z } from 'zod';
import { StoreError } from '../errors.js';
import { EVENT_PAGE_MAX_BYTES } from '../limits.js';
import type { Page } from './store.js';
import { checkName } from './stored-name.js';

type Place = readonly (string | number)[];

/** Rows after `last` in the order of these columns. */
export function isAfter(columns: readonly string[], last: Place) {
  const names = sql.join(columns.map((column) => sql.ref(column)));
  const values = sql.join(last.map((value) => (typeof value === 'number' ? sql.lit(value) : sql.val(value))));
  return sql<boolean>`(${names}) > (${values})`;
}

function writeCursor(place: Place): string {
  return Buffer.from(JSON.stringify(place)).toString('base64url');
}

/** @throws StoreError `store_refused` for what is no cursor of a page of `what`. */
export function readCursor<Read extends Place>(schema: z.ZodType<Read>, cursor: string, what: string): Read {
  try {
    const place = schema.parse(JSON.parse(Buffer.from(cursor, 'base64url').toString()));
    for (const value of place) if (typeof value === 'string') checkName('a name in the cursor', value);
    return place;
  } catch {
    throw new StoreError('store_refused', `the cursor is not one that a page of ${what} gave`);
  }
}

/** A query in some order, asked twice: the sizes first, so that no page is read that is too large to hold. */
export interface PagedQuery<Column extends string, Row> {
  readonly order: readonly Column[];
  readonly rowsMax: number;
  readonly sizes: (
    limit: number,
  ) => Promise<readonly (Record<Column, string | number> & { readonly bytes: number })[]>;
  /** All rows up to the one with these values. */
  readonly upTo: (last: Place) => Promise<readonly Row[]>;
}

export async function readPage<Column extends string, Row>({
  order,
  rowsMax,
  sizes,
  upTo,
}: PagedQuery<Column, Row>): Promise<Page<Row, string>> {
  const found = await sizes(rowsMax + 1);
  const count = rowsThatFit(found, rowsMax);
  const last = found[count - 1];
  if (last === undefined) return { items: [] };
  const place = order.map((column) => last[column]);
  return { items: await upTo(place), ...(found.length > count && { next: writeCursor(place) }) };
}

/** How many of rows of these sizes are one page: at least one, where there is one. */
function rowsThatFit(rows: readonly { readonly bytes: number }[], rowsMax: number): number {
  let bytes = 0;
  let count = 0;
  for (const row of rows.slice(0, rowsMax)) {
    bytes += row.bytes;
    if (count > 0 && bytes > EVENT_PAGE_MAX_BYTES) break;
    count += 1;
  }
  return count;
}
