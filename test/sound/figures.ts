/** What the sound tests measure, printed on request: `EARSHOT_SOUND_FIGURES=1 npx vitest run test/sound`. */

/** Long sounds through filters take seconds, and many times that on a machine that is busy with something else. */
export const SLOW_MACHINE_MS = 180_000;

const isWanted = process.env['EARSHOT_SOUND_FIGURES'] === '1';

/** One line of JSON. */
export function note(what: string, figures: Readonly<Record<string, string | number>>): void {
  if (!isWanted) return;
  const rounded = Object.entries(figures).map(([name, value]) => [
    name,
    typeof value === 'number' ? Number(value.toFixed(3)) : value,
  ]);
  console.log(JSON.stringify({ what, ...(Object.fromEntries(rounded) as object) }));
}
