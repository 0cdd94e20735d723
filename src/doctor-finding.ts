/**
 * What the doctor says about one thing that a real number needs, and how it reads on a terminal.
 */

export interface Finding {
  readonly about: string;
  /** `unchecked`: something else has to be mended before this can be looked at. */
  readonly state: 'ok' | 'mend' | 'unchecked';
  readonly text: string;
  /** What to do about it. */
  readonly mend?: string;
}

const MARKS = { ok: 'ok  ', mend: 'MEND', unchecked: '?   ' } as const;

/** `ok` when it holds, else what to mend. */
export function finding(
  about: string,
  holds: boolean,
  words: { readonly text: string; readonly mend: string },
): Finding {
  return { about, state: holds ? 'ok' : 'mend', ...words };
}

/** Much of the text comes from providers and settings: what could steer a terminal is taken out. */
function printable(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Cf}]+/gu, ' ').trim();
}

/** One line, and a second one that says what to do, each with its line end. */
export function renderFinding({ about, state, text, mend }: Finding): string {
  const line = `${MARKS[state]} ${about}: ${printable(text)}\n`;
  return state === 'ok' || mend === undefined ? line : `${line}       ${printable(mend)}\n`;
}

/** All is well only when everything was looked at and found right. */
export function isAllWell(findings: readonly Finding[]): boolean {
  return findings.length > 0 && findings.every(({ state }) => state === 'ok');
}

export function renderVerdict(findings: readonly Finding[]): string {
  if (isAllWell(findings)) return '\nAll is well.\n';
  const count = (state: Finding['state']): number => findings.filter((one) => one.state === state).length;
  const unchecked = count('unchecked');
  return `\n${count('mend')} to mend${unchecked === 0 ? '' : `, ${unchecked} not checked`}.\n`;
}
