/**
 * A guard or observer of an agent's tools: sees each call before it runs and each result before the model does. The
 * same in every mode.
 */
import { z } from 'zod';
import { ConfigError } from '../errors.js';
import type { Event, JsonObject } from '../event/event.js';
import { boundCopy } from './bound-copy.js';
import { definitionFault } from './definition-fault.js';
import { named } from './definition-name.js';
import type { ToolContext } from './tool-context.js';

export interface BeforeTool {
  /** The tool's name. */
  readonly tool: string;
  /** A copy of what the model passed; what is changed here is what `execute` gets. */
  readonly args: Record<string, unknown>;
  readonly ctx: ToolContext;
}

export interface AfterTool extends BeforeTool {
  readonly result: JsonObject;
}

/** `undefined` or `null` goes on to the next one; any other value is the result, and the tool does not run. */
export type BeforeToolCallback = (call: BeforeTool) => unknown;
/** `undefined` or `null` leaves the result; any other value takes its place. */
export type AfterToolCallback = (call: AfterTool) => unknown;

export interface PluginDefinition {
  readonly name: string;
  /** The lower comes first, 0 without it; equals in the order of the list. */
  readonly priority?: number;
  /** Throwing, or not answering in time (`guardTimeoutMs`), refuses the call. */
  beforeTool?(call: BeforeTool): unknown;
  /** Throwing leaves the tool's own result. */
  afterTool?(call: AfterTool): unknown;
  /** Each event of the run as it happens, fragments too; it cannot change it. What it throws is logged. */
  onEvent?(event: Event): void;
}

const PLUGIN = Symbol.for('earshot.plugin');

/** A checked plugin; made only by `definePlugin`. */
export type Plugin = PluginDefinition & { readonly [PLUGIN]: true };

const callback = z.custom<(value: never) => unknown>(
  (value) => typeof value === 'function',
  'must be a function',
);

const schema = z.strictObject({
  name: z.string().regex(/^[A-Za-z0-9_.-]{1,64}$/, 'must be 1 to 64 letters, digits, _ - .'),
  priority: z.number().optional(),
  beforeTool: callback.optional(),
  afterTool: callback.optional(),
  onEvent: callback.optional(),
});

/** Checks a plugin. Throws a ConfigError that names the field. */
export function definePlugin(definition: PluginDefinition): Plugin {
  const result = schema.safeParse(definition);
  if (!result.success) {
    const given: unknown = (definition as { name?: unknown } | undefined)?.name;
    const why = definitionFault(result.error, definition);
    throw new ConfigError('agent_invalid', `${named('plugin', given)}: ${why}`);
  }
  return Object.freeze({ ...boundCopy(definition, Object.keys(schema.shape)), [PLUGIN]: true as const });
}

/** Whether a value came from `definePlugin`, of whichever copy of the package. */
export function isPlugin(value: unknown): value is Plugin {
  return typeof value === 'object' && value !== null && PLUGIN in value;
}
