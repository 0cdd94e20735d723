/**
 * Text cut into the pieces that are synthesized one by one, so that the first words can be sent while the next are
 * being made.
 */

/** A sentence longer than this is cut at a comma or a space; a piece is then ready in about a quarter of a second. */
const PIECE_MAX_CHARS = 240;

/** The pieces in order; joined they are the text, with runs of white space as one space. */
export function sentences(text: string): string[] {
  const pieces: string[] = [];
  const plain = text.replaceAll(/\s+/g, ' ').trim();
  // Ends at a stop followed by a space; "3.5" and "e.g.," are not ends.
  for (const sentence of plain.split(/(?<=[.!?]["')\]]?) /)) {
    let rest = sentence;
    while (rest.length > PIECE_MAX_CHARS) {
      const cut = cutBefore(rest, PIECE_MAX_CHARS);
      pieces.push(rest.slice(0, cut).trimEnd());
      rest = rest.slice(cut).trimStart();
    }
    if (rest !== '') pieces.push(rest);
  }
  return pieces;
}

function cutBefore(text: string, end: number): number {
  const comma = text.lastIndexOf(', ', end - 2);
  if (comma > end / 2) return comma + 1;
  const space = text.lastIndexOf(' ', end);
  if (space > 0) return space;
  // Never between the two halves of a surrogate pair.
  return /[\ud800-\udbff]/.test(text.charAt(end - 1)) ? end - 1 : end;
}
