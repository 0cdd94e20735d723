/**
 * The hostile messages of `fixtures/corpus/`, and damage done to them by chance. How the files are written stands in
 * its `readme.md`.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { projectRoot } from '../tidy/project-files.js';
import type { Chance } from './seed.js';

export interface CorpusEntry {
  /** What must become of it; `readme.md` says in which words. */
  readonly verdict: string;
  readonly data: Buffer;
  /** File and line, for a failing test. */
  readonly place: string;
}

function bytesOf(text: string): Buffer {
  const parts = text.split(/\{\{(bytes [0-9a-f ]+|repeat \d+ [^ ]+?)\}\}/);
  return Buffer.concat(
    parts.map((part, index) => {
      if (index % 2 === 0) return Buffer.from(part);
      const [kind, first = '', rest = ''] = /^(\w+) ([0-9a-f]+) ?(.*)$/.exec(part)?.slice(1) ?? [];
      if (kind === 'repeat') return Buffer.from(rest.repeat(Number(first)));
      return Buffer.from(`${first}${rest}`.replaceAll(' ', ''), 'hex');
    }),
  );
}

export function readCorpus(name: string): CorpusEntry[] {
  const path = `fixtures/corpus/${name}`;
  const lines = readFileSync(join(projectRoot, path), 'utf8').split('\n');
  return lines.flatMap((line, index) => {
    if (line === '' || line.startsWith('#')) return [];
    const space = line.indexOf(' ');
    const data = bytesOf(line.slice(space + 1));
    return [{ verdict: line.slice(0, space), data, place: `${path}:${index + 1}` }];
  });
}

// --- Damage -----------------------------------------------------------------------------------------------------

const HOSTILE_VALUES = readCorpus('values.txt').map(({ data }) => data.toString('latin1'));
const HOSTILE_BYTES = Buffer.from('"\\{}[],:=-_+/.eE019 \t\n\u0000\u007f\u0080\u00ff\u00c3\u00ed', 'latin1');

/** Strings, keys among them, numbers and words of a message. */
const SCALARS = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?|true|false|null/g;

interface Seedling {
  /** The bytes as Latin-1. */
  readonly text: string;
  readonly scalars: readonly { readonly start: number; readonly end: number }[];
}

/** Messages made of those of the corpus by chance: as they are, with other values, spliced, cut, with damaged bytes. */
export class Mutations {
  readonly #seedlings: readonly Seedling[];
  readonly #chance: Chance;

  constructor(entries: readonly Buffer[], chance: Chance) {
    this.#chance = chance;
    this.#seedlings = entries.map((data) => {
      const text = data.toString('latin1');
      const scalars = [...text.matchAll(SCALARS)].slice(0, 200);
      return {
        text,
        scalars: scalars.map(({ index, 0: { length } }) => ({ start: index, end: index + length })),
      };
    });
  }

  next(): Buffer {
    const chance = this.#chance;
    const seedling = chance.pick(this.#seedlings);
    let { text } = seedling;
    const kind = chance.below(16);
    if (kind < 7) text = this.#withOtherValue(seedling);
    else if (kind < 9) text = this.#spliced(text);
    else if (kind < 10) text = text.slice(0, chance.below(text.length + 1));
    else if (kind < 11) text = this.#withSlice(text, chance.below(2) === 0);
    const data = Buffer.from(text, 'latin1');
    if (kind >= 11 && kind < 15) this.#damage(data);
    return data;
  }

  #withOtherValue({ text, scalars }: Seedling): string {
    if (scalars.length === 0) return text;
    const { start, end } = this.#chance.pick(scalars);
    return text.slice(0, start) + this.#value() + text.slice(end);
  }

  #value(): string {
    if (!this.#chance.once(3)) return this.#chance.pick(HOSTILE_VALUES);
    const { text, scalars } = this.#chance.pick(this.#seedlings);
    if (scalars.length === 0) return text;
    const { start, end } = this.#chance.pick(scalars);
    return text.slice(start, end);
  }

  #spliced(text: string): string {
    const other = this.#chance.pick(this.#seedlings).text;
    return (
      text.slice(0, this.#chance.below(text.length + 1)) + other.slice(this.#chance.below(other.length + 1))
    );
  }

  /** A piece of the text left out, or said twice. */
  #withSlice(text: string, twice: boolean): string {
    const start = this.#chance.below(text.length + 1);
    const end = Math.min(text.length, start + this.#chance.below(40));
    return twice ? text.slice(0, end) + text.slice(start) : text.slice(0, start) + text.slice(end);
  }

  #damage(data: Buffer): void {
    if (data.length === 0) return;
    for (let count = 1 + this.#chance.below(3); count > 0; count -= 1) {
      const byte = this.#chance.once(2)
        ? this.#chance.below(256)
        : HOSTILE_BYTES[this.#chance.below(HOSTILE_BYTES.length)];
      data[this.#chance.below(data.length)] = byte ?? 0;
    }
  }
}
