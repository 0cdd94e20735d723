/**
 * Misbehaviour of the text model on request, as data: a rule says at which words of the user's, or after which
 * function, what goes wrong and how often. The same requests in the same order always go wrong the same way.
 */
import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { ConfigError, errorText } from '../../errors.js';
import { userText } from './text-generation-answer.js';
import { responsesIn } from './text-generation-history.js';
import type { TextContent } from './text-generation-request.js';

export const TEXT_FAULTS = [
  /** HTTP 429 with a RetryInfo of a second. */
  'quota',
  /** HTTP 500. */
  'internal',
  /** HTTP 503. */
  'unavailable',
  /** The first byte comes after `delayMs`. */
  'slow_start',
  /** The connection is cut in the middle of the answer. */
  'cut_off',
  /** The answer ends in good order in the middle, without a finishReason. */
  'unfinished',
  /** An error stands in the middle of the stream, whose HTTP status was 200. */
  'error_in_stream',
  /** A response without candidates. */
  'no_candidates',
  /** A candidate that is finished and has no content. */
  'no_content',
  /** The prompt is blocked: a promptFeedback and no candidates. */
  'blocked',
  /** Stops in the middle with finishReason SAFETY. */
  'safety',
  /** No content, finishReason MALFORMED_FUNCTION_CALL. */
  'malformed_function_call',
] as const;
export type TextFault = (typeof TEXT_FAULTS)[number];

const DEFAULT_DELAY_MS = 10_000;

const ruleSchema = z
  .strictObject({
    /** Goes wrong at a turn of the user's with these words, in any case of letters. */
    contains: z.string().trim().min(1).optional(),
    /** Goes wrong when this function has answered. */
    afterFunction: z.string().min(1).optional(),
    fault: z.enum(TEXT_FAULTS),
    /** How often, then never again; without it always. */
    times: z.number().int().min(1).optional(),
    delayMs: z.number().int().min(0).max(600_000).default(DEFAULT_DELAY_MS),
  })
  .refine(({ contains, afterFunction }) => (contains === undefined) !== (afterFunction === undefined), {
    message: 'needs one of contains and afterFunction',
  });
const rulesSchema = z.strictObject({ faults: z.array(ruleSchema).max(100) });

export type TextFaultRule = z.infer<typeof ruleSchema>;

/** Checks rules; throws a ConfigError that names every fault of them and its place. */
export function parseTextFaults(data: unknown, name: string): TextFaultRule[] {
  const parsed = rulesSchema.safeParse(data);
  if (parsed.success) return parsed.data.faults;
  const faults = parsed.error.issues.map(
    ({ path, message }) => `${path.join('.') || 'the file'}: ${message}`,
  );
  throw new ConfigError('config_invalid', `${name} does not hold text faults: ${faults.join('; ')}`);
}

/** Reads the shipped rules. */
export function readTextFaults(): TextFaultRule[] {
  const name = 'text-generation-faults.json';
  try {
    return parseTextFaults(JSON.parse(readFileSync(new URL(name, import.meta.url), 'utf8')), name);
  } catch (error) {
    if (error instanceof ConfigError) throw error;
    throw new ConfigError('config_invalid', `${name} cannot be read: ${errorText(error)}`, { cause: error });
  }
}

/** Picks the rule for each request and counts how often it has gone wrong. */
export class TextFaults {
  readonly #rules: readonly TextFaultRule[];
  readonly #counts = new Map<TextFaultRule, number>();

  constructor(rules: readonly TextFaultRule[]) {
    this.#rules = rules;
  }

  /** The first rule that is for this request and not used up; counted as used. */
  next(contents: readonly TextContent[]): TextFaultRule | undefined {
    const last = contents.at(-1);
    const answered = last === undefined ? [] : responsesIn(last).map(({ name }) => name);
    const text = userText(contents).toLowerCase();
    const rule = this.#rules.find((each) => {
      const { contains, afterFunction, times } = each;
      if (times !== undefined && (this.#counts.get(each) ?? 0) >= times) return false;
      if (afterFunction !== undefined) return answered.includes(afterFunction);
      return answered.length === 0 && contains !== undefined && text.includes(contains.toLowerCase());
    });
    if (rule !== undefined) this.#counts.set(rule, (this.#counts.get(rule) ?? 0) + 1);
    return rule;
  }
}
