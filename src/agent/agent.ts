/**
 * What an agent author writes: one module whose default export is `defineAgent({...})`. Checked when it is loaded, so
 * that a mistake is a clear line at the start of the server, never a surprise in a call.
 */
import { z } from 'zod';
import { ConfigError } from '../errors.js';
import { GUARD_TIMEOUT_MAX_MS, PLUGINS_MAX, TOOLS_CONCURRENT_MAX, TOOLS_MAX } from '../tool-limits.js';
import { boundCopy } from './bound-copy.js';
import { deepFreeze } from './deep-freeze.js';
import { definitionFault } from './definition-fault.js';
import { named } from './definition-name.js';
import { type AfterToolCallback, type BeforeToolCallback, isPlugin, type Plugin } from './plugin.js';
import { isTool, type Tool } from './tool.js';

/** What an agent may know about the call it is in. */
export interface AgentContext {
  /** One per run; the next call has another. */
  readonly invocationId: string;
  readonly callSid: string;
  readonly appName: string;
  /** The caller's number, or `anonymous:<CallSid>`. A caller id can be forged: see `callerVerified`. */
  readonly userId: string;
  readonly sessionId: string;
  /** Whether the carrier attested the caller id in full (STIR/SHAKEN level A). */
  readonly callerVerified: boolean;
}

/** Spelt as Gemini's `speechConfig`. */
export interface SpeechConfig {
  readonly voiceConfig?: { readonly prebuiltVoiceConfig: { readonly voiceName: string } };
  /** BCP-47, such as `en-US`. */
  readonly languageCode?: string;
}

/**
 * Of one run: a call, a live conversation at a web page, or one message in text and the answer to it. At the first of them that
 * is reached a call ends with a goodbye; a run in text fails with `cost_limit`.
 */
export interface CostLimits {
  /** Answers to the user, the greeting among them; functions, and what is said around them, are part of an answer. A run in text
   * is one answer. */
  readonly maxTurns?: number;
  /** Of input and output together, as the model counts them. The answer that is being given is given to its end, in a call for 30 s
   * at most; in text no more functions are called for it. */
  readonly maxTokens?: number;
  /** Whoever speaks. Beside `MAX_CALL_MINUTES` in a call, and five minutes in text; the shorter one holds. */
  readonly maxMinutes?: number;
}

export interface RunConfig {
  readonly speechConfig?: SpeechConfig;
  /** Handlers that run at once, 4 without it; others wait. */
  readonly maxConcurrentTools?: number;
  /** For each plugin and each callback, 3,000 without it. */
  readonly guardTimeoutMs?: number;
  /** Whether calls are carried out; without it, yes. Else they are told as events only. */
  readonly autoExecuteTools?: boolean;
  /** Whether the model is given the results; without it, yes. */
  readonly autoRespondTools?: boolean;
  /** One frame for all calls of one message of the model, or one each. */
  readonly toolResponses?: 'group' | 'each';
  readonly limits?: CostLimits;
  /** How `connect_to_human` leads on. */
  readonly handoff?: 'cold';
  /** What a caller may do; `ctx.userScopes()` throws without it. */
  readonly userScopes?: (ctx: AgentContext) => readonly string[];
  /** Looks a secret up; `ctx.getSecret()` throws without it. */
  readonly getSecret?: (
    name: string,
    ctx: AgentContext,
  ) => string | null | undefined | Promise<string | null | undefined>;
}

/** How a run lost its model. */
export interface Disconnect {
  readonly code: number;
  readonly reason: string;
}

export interface AgentDefinition {
  /** Names the app: letters, digits, `_` and `-`. */
  readonly name: string;
  /** What the model is told it is; a function is called once per call. */
  readonly instruction: string | ((ctx: AgentContext) => string);
  /** What the agent says first, word for word where the model allows. Without one it greets in its own words. */
  readonly greeting?: string;
  readonly tools?: readonly Tool[];
  readonly plugins?: readonly Plugin[];
  /** Behind the plugins; what it throws is the call's error. */
  readonly beforeTool?: BeforeToolCallback;
  /** Behind the plugins; what it throws takes the result's place. */
  readonly afterTool?: AfterToolCallback;
  /** The connection to the model was lost, and what had been begun is over; once, never after a clean close. */
  readonly onDisconnect?: (ctx: AgentContext, disconnect: Disconnect) => void | Promise<void>;
  readonly runConfig?: RunConfig;
}

const AGENT = Symbol.for('earshot.agent');

/** Given to every agent by the server itself. */
const BUILT_IN_NAMES: ReadonlySet<string> = new Set(['end_call', 'stop_streaming']);

/** A checked agent; made only by `defineAgent`. */
export type Agent = AgentDefinition & { readonly [AGENT]: true };

const aFunction = <Type>() =>
  z.custom<Type>((value) => typeof value === 'function', 'must be a function').optional();

const speechConfig = z.strictObject({
  voiceConfig: z
    .strictObject({ prebuiltVoiceConfig: z.strictObject({ voiceName: z.string().min(1) }) })
    .optional(),
  languageCode: z.string().min(2).optional(),
});

const schema = z.strictObject({
  name: z.string().regex(/^[A-Za-z0-9_-]{1,64}$/, 'must be 1 to 64 letters, digits, _ or -'),
  instruction: z.custom<AgentDefinition['instruction']>(
    (value) => typeof value === 'function' || (typeof value === 'string' && value.trim() !== ''),
    'must be text or a function that returns it',
  ),
  greeting: z.string().trim().min(1).optional(),
  tools: z
    .array(z.custom<Tool>(isTool, 'is not from defineTool(…)'))
    .max(TOOLS_MAX)
    .superRefine((tools, context) => {
      const names = tools.filter(isTool).map(({ name }) => name);
      const twice = names.find((name, index) => names.indexOf(name) < index);
      if (twice !== undefined) context.addIssue(`have the name ${twice} twice`);
      const builtIn = names.find((name) => BUILT_IN_NAMES.has(name));
      if (builtIn !== undefined) context.addIssue(`have the name ${builtIn}, which is built in`);
    })
    .optional(),
  plugins: z.array(z.custom<Plugin>(isPlugin, 'is not from definePlugin(…)')).max(PLUGINS_MAX).optional(),
  beforeTool: aFunction<BeforeToolCallback>(),
  afterTool: aFunction<AfterToolCallback>(),
  onDisconnect: aFunction<AgentDefinition['onDisconnect']>(),
  runConfig: z
    .strictObject({
      speechConfig: speechConfig.optional(),
      maxConcurrentTools: z.number().int().min(1).max(TOOLS_CONCURRENT_MAX).optional(),
      guardTimeoutMs: z.number().int().min(1).max(GUARD_TIMEOUT_MAX_MS).optional(),
      autoExecuteTools: z.boolean().optional(),
      autoRespondTools: z.boolean().optional(),
      toolResponses: z.enum(['group', 'each'], 'must be group or each').optional(),
      limits: z
        .strictObject({
          maxTurns: z.number().int().min(1).optional(),
          maxTokens: z.number().int().min(1).optional(),
          maxMinutes: z.number().positive().max(1_440).optional(),
        })
        .optional(),
      handoff: z.literal('cold', 'must be cold: warm and queue are not built yet').optional(),
      userScopes: aFunction<RunConfig['userScopes']>(),
      getSecret: aFunction<RunConfig['getSecret']>(),
    })
    .optional(),
});

/** Checks and freezes an agent. Throws a ConfigError naming the field. */
export function defineAgent(definition: AgentDefinition): Agent {
  const result = schema.safeParse(definition);
  if (!result.success) {
    const given: unknown = (definition as { name?: unknown } | undefined)?.name;
    const why = definitionFault(result.error, definition);
    throw new ConfigError('agent_invalid', `${named('agent', given)}: ${why}`);
  }
  const frozen = { ...boundCopy(definition, Object.keys(schema.shape)), [AGENT]: true as const };
  if (definition.runConfig !== undefined) deepFreeze(definition.runConfig);
  return Object.freeze(frozen);
}

/** Whether a module's default export came from `defineAgent`, of whichever copy of the package. */
export function isAgent(value: unknown): value is Agent {
  return typeof value === 'object' && value !== null && AGENT in value;
}
