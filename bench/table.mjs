/**
 * Plain text tables: numbers to the right, the first column to the left.
 */

/** `rows` are arrays of strings as long as `header`. */
export function table(header, rows) {
  const widths = header.map((title, column) =>
    Math.max(title.length, ...rows.map((row) => row[column].length)),
  );
  const line = (cells) =>
    cells
      .map((cell, column) => (column === 0 ? cell.padEnd(widths[column]) : cell.padStart(widths[column])))
      .join('  ')
      .trimEnd();
  return [line(header), widths.map((width) => '-'.repeat(width)).join('  '), ...rows.map(line)].join('\n');
}

/** A number with `digits` decimals; a dash for none. */
export function number(value, digits) {
  return typeof value === 'number' && Number.isFinite(value) ? value.toFixed(digits) : '–';
}
