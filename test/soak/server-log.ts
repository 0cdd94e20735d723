/** What a server's log of a soak may hold. */

/** Errors that faults of the soak make a server tell; every other one is a fault of the server. */
const EXPECTED: readonly string[] = [
  'the model could not be reached',
  'events are not being stored; they wait, and the calls go on',
  'the history of a session could not be read',
  'decisions that wait could not be read',
  'the store could not answer',
  'the store could not be told what is being worked at',
  'the ledger could not be asked for open entries',
];

const ERROR_LEVEL = 50;

/** Lines that no fault of the soak explains, shortened, each kind once with its number. */
export function unexpectedLines(output: string, expected: readonly string[] = EXPECTED): string[] {
  const counts = new Map<string, number>();
  for (const line of output.split('\n')) {
    const told = tellsOf(line, expected);
    if (told !== undefined) counts.set(told, (counts.get(told) ?? 0) + 1);
  }
  return [...counts].map(([told, count]) => (count === 1 ? told : `${told} (${count} times)`));
}

function tellsOf(line: string, expected: readonly string[]): string | undefined {
  if (line.trim() === '') return undefined;
  if (!line.startsWith('{'))
    return /unhandled|uncaught|^\s+at .*:\d+/i.test(line) ? line.slice(0, 300) : undefined;
  const { level, msg, cause, class: kind, code, frames } = JSON.parse(line) as Record<string, unknown>;
  if (Number(level) < ERROR_LEVEL || expected.includes(String(msg))) return undefined;
  const more = [kind, code, cause, Array.isArray(frames) ? frames[0] : undefined].filter(
    (each) => each !== undefined,
  );
  return [String(msg), ...more.map(String)].join('; ').slice(0, 300);
}
