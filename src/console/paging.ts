/**
 * One reader of pages for every route that lists: `?limit=` in decimal digits and within bounds, `?after=` as `next` was. What it
 * does not take is refused, never taken for something else.
 */
import type { Request, Response } from 'express';

export interface PageBounds<Cursor> {
  /** The longest page, which is the usual one where no other is named. */
  readonly limitMax: number;
  /** The name of the cursor; `after` where none is given. */
  readonly cursorName?: string;
  /** Undefined: it is none. */
  readonly readCursor: (text: string) => Cursor | undefined;
  /** What a cursor is, for whoever gave another. */
  readonly cursorWords?: string;
}

export interface AskedPage<Cursor> {
  readonly cursor?: Cursor;
  readonly limit?: number;
}

/** What was asked for, or undefined when it was answered with 400. */
export function readPage<Cursor>(
  request: Request,
  response: Response,
  { limitMax, cursorName = 'after', readCursor, cursorWords = 'what `next` was' }: PageBounds<Cursor>,
): AskedPage<Cursor> | undefined {
  const fault = (error: string): undefined => void response.status(400).json({ error });
  const { limit: limitText, [cursorName]: cursorText } = request.query;
  const limitWords = `limit must be a whole number from 1 to ${limitMax}, in decimal digits`;
  // `limit[a]=1` is a key of its own for Express, and would be a limit that nobody read.
  if (hasMembers(request, 'limit')) return fault(limitWords);
  const limit = limitText === undefined ? undefined : readLimit(limitText, limitMax);
  if (limitText !== undefined && limit === undefined) return fault(limitWords);
  const cursor = typeof cursorText === 'string' ? readCursor(cursorText) : undefined;
  if ((cursorText !== undefined && cursor === undefined) || hasMembers(request, cursorName))
    return fault(`${cursorName} must be ${cursorWords}`);
  return { ...(cursor !== undefined && { cursor }), ...(limit !== undefined && { limit }) };
}

function readLimit(text: unknown, limitMax: number): number | undefined {
  if (typeof text !== 'string' || !/^[0-9]{1,9}$/.test(text)) return undefined;
  const limit = Number(text);
  return limit >= 1 && limit <= limitMax ? limit : undefined;
}

function hasMembers(request: Request, name: string): boolean {
  return Object.keys(request.query).some((key) => key.startsWith(`${name}[`));
}
