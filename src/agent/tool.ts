/**
 * What an agent can do while it talks: one function that the model may call, declared by its author. Checked when the
 * module is loaded; what the model passes is checked before `execute` sees it.
 */
import { z } from 'zod';
import { AppError, ConfigError, errorText } from '../errors.js';
import type { JsonObject } from '../event/event.js';
import { TOOL_TIMEOUT_MAX_MS, TOOL_TIMEOUT_MS } from '../tool-limits.js';
import { bound, boundCopy } from './bound-copy.js';
import { definitionFault } from './definition-fault.js';
import { named } from './definition-name.js';
import { type ArgumentReader, argumentReader, type JsonSchema } from './tool-arguments.js';
import type { ToolContext } from './tool-context.js';

export type ToolParameters = z.ZodObject | JsonSchema;

/** What `execute` gets: what the zod object makes of the model's arguments, or the arguments as they are. */
export type ToolArgs<Parameters> = Parameters extends z.ZodObject ? z.output<Parameters> : JsonObject;

/** How much a side effect moves, and the most that all of one account may come to. */
export interface SideEffectAmount {
  /** What the sum is kept for: an order, an invoice. */
  readonly account: string;
  /** In the currency's minor unit (cents), a whole number above 0. */
  readonly amountMinor: number;
  /** ISO 4217. */
  readonly currency: string;
  /** The sum of the account's side effects never exceeds it. */
  readonly limitMinor: number;
}

export interface SideEffect<Args> {
  /** What is done only once, ever, in this app: the same key is the same deed, whoever asks and whenever. */
  key(args: Args, ctx: ToolContext): string;
  /** For deeds that move money: refused where the account's sum would exceed its limit. */
  amount?(args: Args, ctx: ToolContext): SideEffectAmount;
}

export interface ToolDefinition<Parameters extends ToolParameters = ToolParameters> {
  /** A letter or `_`, then letters, digits, `_`, `-`, `.`, `:`; at most 64. */
  readonly name: string;
  /** What the model reads to decide when to call it. */
  readonly description: string;
  /** A zod object or a JSON schema of an object; without it there are no arguments. */
  readonly parameters?: Parameters;
  /**
   * Does the work. What it returns is what the model sees: an object as it is, anything else as `{result}`. What it throws is
   * an error that the model speaks about. An async generator is a streaming tool: it is answered at once, and each value
   * reaches the model when neither side is speaking.
   */
  execute(args: ToolArgs<Parameters>, ctx: ToolContext): unknown;
  /** Answered at once with `pending`; the result follows when it is there, or is settled by `POST /approvals/:id`. */
  readonly longRunning?: boolean;
  /** Of a streaming tool: it gets a copy of the caller's sound, or of a web client's pictures, as `ctx.inputStream`. */
  readonly inputStream?: boolean | 'image';
  /** Of a streaming tool: its values interrupt whoever speaks. */
  readonly interrupts?: boolean;
  /** Runs past plugins and callbacks; each run is logged. */
  readonly trusted?: boolean;
  /** Runs in a worker thread, for work that would hold up the event loop. */
  readonly worker?: boolean;
  /** Of one run of `execute`, 20,000 without it. Neither streaming nor long-running tools have one. */
  readonly timeoutMs?: number;
  /** Done once, however often it is asked for: kept in the store over reconnects, restarts and later calls. */
  readonly sideEffect?: SideEffect<ToolArgs<Parameters>>;
  /** A person decides before it runs, by `POST /approvals/:id`. */
  readonly approval?: boolean | ((args: ToolArgs<Parameters>, ctx: ToolContext) => boolean);
}

const TOOL = Symbol.for('earshot.tool');

/** A checked tool; made only by `defineTool`. */
export interface Tool {
  readonly [TOOL]: true;
  readonly name: string;
  readonly description: string;
  /** As the model is told it. */
  readonly parametersJsonSchema: JsonSchema;
  /** Reads what the model passed; throws nothing. */
  readonly readArguments: ArgumentReader;
  readonly execute: (args: unknown, ctx: ToolContext) => unknown;
  readonly kind: 'function' | 'streaming' | 'longRunning';
  /** What `ctx.inputStream` brings, if it has one. */
  readonly input: 'sound' | 'image' | undefined;
  readonly interrupts: boolean;
  readonly trusted: boolean;
  readonly worker: boolean;
  readonly timeoutMs: number;
  readonly sideEffect: SideEffect<unknown> | undefined;
  readonly approval: (args: unknown, ctx: ToolContext) => boolean;
}

/** For `execute`: it failed, and certainly nothing was done, so that a side effect may be tried again. */
export class NothingDone extends Error {
  override readonly name = 'NothingDone';
}

const NAME = /^[A-Za-z_][A-Za-z0-9_.:-]{0,63}$/;

const schema = z.strictObject({
  name: z.string().regex(NAME, 'must be a letter or _ and then letters, digits, _ - . : (64 at most)'),
  description: z.string().trim().min(1).max(4_000),
  parameters: z
    .custom<ToolParameters>(
      (value) => typeof value === 'object' && value !== null,
      'must be a zod object or a JSON schema',
    )
    .optional(),
  execute: z.custom<ToolDefinition['execute']>((value) => typeof value === 'function', 'must be a function'),
  longRunning: z.boolean().optional(),
  inputStream: z
    .custom<boolean | 'image'>(
      (value) => typeof value === 'boolean' || value === 'image',
      'must be true, false or "image"',
    )
    .optional(),
  interrupts: z.boolean().optional(),
  trusted: z.boolean().optional(),
  worker: z.boolean().optional(),
  timeoutMs: z.number().int().min(1).max(TOOL_TIMEOUT_MAX_MS).optional(),
  sideEffect: z
    .strictObject({
      key: z.custom<SideEffect<unknown>['key']>((value) => typeof value === 'function', 'must be a function'),
      amount: z
        .custom<NonNullable<SideEffect<unknown>['amount']>>(
          (value) => typeof value === 'function',
          'must be a function',
        )
        .optional(),
    })
    .optional(),
  approval: z
    .custom<boolean | ((args: unknown, ctx: ToolContext) => boolean)>(
      (value) => typeof value === 'boolean' || typeof value === 'function',
      'must be true, false or a function',
    )
    .optional(),
});

/** Checks a tool. Throws a ConfigError that names the tool and the field. */
export function defineTool<const Parameters extends ToolParameters = JsonSchema>(
  definition: ToolDefinition<Parameters>,
): Tool {
  const result = schema.safeParse(definition);
  const given: unknown = (definition as { name?: unknown } | undefined)?.name;
  const name = typeof given === 'string' ? given : '';
  if (!result.success) throw invalid(name, definitionFault(result.error, definition));
  const checked = result.data;
  const kind = kindOf(checked, name);
  const { trusted = false, worker = false, approval = false } = checked;
  const { parametersJsonSchema, readArguments } = reading(checked.parameters, name);
  return Object.freeze({
    [TOOL]: true as const,
    name: checked.name,
    description: checked.description,
    parametersJsonSchema,
    readArguments,
    execute: bound(checked.execute, definition) as Tool['execute'],
    kind,
    input: checked.inputStream === 'image' ? 'image' : checked.inputStream === true ? 'sound' : undefined,
    interrupts: checked.interrupts ?? false,
    trusted,
    worker,
    timeoutMs: checked.timeoutMs ?? TOOL_TIMEOUT_MS,
    sideEffect:
      definition.sideEffect &&
      (boundCopy(definition.sideEffect, ['key', 'amount']) as NonNullable<Tool['sideEffect']>),
    approval: typeof approval === 'function' ? bound(approval, definition) : () => approval,
  });
}

/** Whether a value came from `defineTool`, of whichever copy of the package. */
export function isTool(value: unknown): value is Tool {
  return typeof value === 'object' && value !== null && TOOL in value;
}

function kindOf(tool: z.output<typeof schema>, name: string): Tool['kind'] {
  const isGenerator = Object.prototype.toString.call(tool.execute) === '[object AsyncGeneratorFunction]';
  const wantsInput = tool.inputStream !== undefined && tool.inputStream !== false;
  const isStreaming = isGenerator || wantsInput || tool.interrupts === true;
  const refuse = (condition: unknown, why: string): void => {
    if (condition === true) throw invalid(name, why);
  };
  refuse(isStreaming && tool.worker, 'worker: a streaming tool does not run in one');
  refuse(isStreaming && tool.longRunning, 'longRunning: a streaming tool is answered at once as it is');
  refuse(
    isStreaming && tool.timeoutMs !== undefined,
    'timeoutMs: a streaming tool has none, it lives as long as the call',
  );
  refuse(isStreaming && tool.sideEffect !== undefined, 'sideEffect: a streaming tool has none');
  refuse(isStreaming && tool.approval === true, 'approval: a streaming tool cannot wait for one');
  refuse(
    tool.longRunning === true && tool.timeoutMs !== undefined,
    'timeoutMs: a longRunning tool has none, its result is waited for as long as the call lasts',
  );
  return isStreaming ? 'streaming' : tool.longRunning === true ? 'longRunning' : 'function';
}

function reading(parameters: ToolParameters | undefined, name: string) {
  try {
    return argumentReader(parameters ?? { type: 'object', properties: {} });
  } catch (error) {
    throw invalid(name, `parameters ${errorText(error)}`, error);
  }
}

function invalid(name: string, why: string, cause?: unknown): AppError {
  return new ConfigError('agent_invalid', `${named('tool', name)}: ${why.trim()}`, { cause });
}
