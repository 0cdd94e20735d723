/**
 * Which words of one agent message the caller has heard. The model's sound and its output transcription arrive side by
 * side with no order promised between them (`LiveServerContent.outputTranscription` in the types of @google/genai);
 * this notes how much sound had come when each fragment came, and turns milliseconds heard into a prefix of the text.
 *
 * It is an estimate. Fragments are placed by their arrival and, inside their stretch of sound, evenly by characters;
 * text that runs far ahead of its sound, or lags far behind, is pulled towards an even pace. Knows nothing of marks
 * or the carrier: what was heard is the playout's to say.
 */
import { TRANSCRIPT_MAX_CHARS } from '../limits.js';

/** How far the arrival of text may differ from an even pace and still be believed: two or three words. Speech varies by
 * about as much; more is text that was sent in bursts, out of step with its sound. */
const SKEW_MAX_MS = 500;
/** Scripts that write words without spaces between them. */
const UNSPACED =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]/u;
const SPACE = /\s/u;
const WORD_MAY_GO_ON = /[\p{L}\p{N}\p{M}'’-]$/u;

/** Made at the first cut: it loads word lists. */
let wordSegmenter: Intl.Segmenter | undefined;

/** Text that arrived while the sound stood at one place. */
interface Passage {
  /** Sound that had arrived before it. */
  readonly atMs: number;
  /** Where it ends in the text, in UTF-16 units. */
  end: number;
}

export class HeardText {
  #text = '';
  #audioMs = 0;
  readonly #passages: Passage[] = [];

  /** The whole message as transcribed so far. */
  get text(): string {
    return this.#text;
  }

  /** Sound of this message so far, heard or not. */
  get audioMs(): number {
    return this.#audioMs;
  }

  /** Sound of this message arrived. */
  addAudio(ms: number): void {
    if (ms > 0 && ms < Number.POSITIVE_INFINITY) this.#audioMs += ms;
  }

  /** A piece of the transcription, appended as it is. Beyond TRANSCRIPT_MAX_CHARS nothing more is kept; returns what is. */
  addTranscript(fragment: string): string {
    const kept = fragment.slice(0, TRANSCRIPT_MAX_CHARS - this.#text.length);
    if (kept === '') return '';
    this.#text += kept;
    const last = this.#passages.at(-1);
    if (last?.atMs === this.#audioMs) last.end = this.#text.length;
    else this.#passages.push({ atMs: this.#audioMs, end: this.#text.length });
    return kept;
  }

  /** The words wholly heard within the first `heardMs` of the sound, without trailing space: empty at 0, the whole
   * text once all sound that has arrived is heard, and never shorter for more milliseconds. `isOpen`: more was to come, so
   * that a last word with nothing behind it may be the beginning of a longer one, and is left out. */
  heardPrefix(heardMs: number, { isOpen = false }: { readonly isOpen?: boolean } = {}): string {
    if (!(heardMs > 0)) return '';
    const isAll = heardMs >= this.#audioMs;
    if (isAll && !isOpen) return this.#text;
    const cut = isAll ? this.#text.length : wordCut(this.#text, Math.floor(this.#spokenAt(heardMs)));
    return this.#text.slice(0, isOpen ? Math.min(cut, openCut(this.#text)) : cut).trimEnd();
  }

  /** How much of the text, in UTF-16 units, is spoken by `heardMs`. */
  #spokenAt(heardMs: number): number {
    let fromMs = 0;
    let from = 0;
    for (let index = 0; index < this.#passages.length; index += 1) {
      const end = this.#passages[index]?.end ?? from;
      const toMs = this.#spokenByMs(index);
      if (heardMs < toMs) return from + ((end - from) * (heardMs - fromMs)) / (toMs - fromMs);
      fromMs = toMs;
      from = end;
    }
    return from;
  }

  /** When the passage at `index` has been spoken; rises with `index`. */
  #spokenByMs(index: number): number {
    const end = this.#passages[index]?.end ?? 0;
    const evenMs = (this.#audioMs * end) / this.#text.length;
    // The first fragment came before any sound: each passage is spoken in the sound that follows it.
    if (this.#passages[0]?.atMs === 0) {
      const nextAtMs = this.#passages[index + 1]?.atMs ?? this.#audioMs;
      return Math.max(nextAtMs, evenMs - SKEW_MAX_MS);
    }
    return Math.min(this.#passages[index]?.atMs ?? this.#audioMs, evenMs + SKEW_MAX_MS);
  }
}

/** Where the last word of `text` ends that is surely whole. */
function openCut(text: string): number {
  return WORD_MAY_GO_ON.test(text) ? wordCut(text, text.length - 1) : text.length;
}

/** The last place at or before `at` where a word of `text` has ended. */
function wordCut(text: string, at: number): number {
  if (at >= text.length) return text.length;
  if (SPACE.test(text.charAt(at))) return at;
  let start = at;
  while (start > 0 && !SPACE.test(text.charAt(start - 1))) start -= 1;
  let end = at;
  while (end < text.length && !SPACE.test(text.charAt(end))) end += 1;
  const run = text.slice(start, end);
  if (!UNSPACED.test(run)) return start;
  wordSegmenter ??= new Intl.Segmenter('en', { granularity: 'word' });
  const segment = wordSegmenter.segment(run).containing(at - start);
  return start + (segment?.index ?? 0);
}
