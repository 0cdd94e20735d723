/**
 * What an agent author writes: one module whose default export is `defineAgent({...})`. Checked when it is loaded, so
 * that a mistake is a clear line at the start of the server, never a surprise in a call.
 */
import { z } from 'zod';
import { ConfigError } from '../errors.js';

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

export interface RunConfig {
  readonly speechConfig?: SpeechConfig;
}

export interface AgentDefinition {
  /** Names the app: letters, digits, `_` and `-`. */
  readonly name: string;
  /** What the model is told it is; a function is called once per call. */
  readonly instruction: string | ((ctx: AgentContext) => string);
  /** What the agent says first, word for word where the model allows. Without one it greets in its own words. */
  readonly greeting?: string;
  /** Not built yet: must be empty. */
  readonly tools?: readonly never[];
  readonly runConfig?: RunConfig;
}

const AGENT = Symbol.for('earshot.agent');

/** A checked agent; made only by `defineAgent`. */
export type Agent = AgentDefinition & { readonly [AGENT]: true };

const nothingYet = (what: string) =>
  z.undefined({ error: `is not built yet: leave \`${what}\` out` }).optional();

/** Named for agents as well as for their `runConfig`: guards and tools, which both come later. */
const toolLimits = {
  guardTimeoutMs: nothingYet('guardTimeoutMs'),
  maxConcurrentTools: nothingYet('maxConcurrentTools'),
};

const speechConfig = z.strictObject({
  voiceConfig: z
    .strictObject({ prebuiltVoiceConfig: z.strictObject({ voiceName: z.string().min(1) }) })
    .optional(),
  languageCode: z.string().min(2).optional(),
});

const schema = z.strictObject({
  name: z.string().regex(/^[A-Za-z0-9_-]{1,64}$/, 'must be 1 to 64 letters, digits, _ or -'),
  instruction: z.union([
    z.string().trim().min(1),
    z.custom<(ctx: AgentContext) => string>((value) => typeof value === 'function'),
  ]),
  greeting: z.string().trim().min(1).optional(),
  tools: z.array(z.unknown()).max(0, 'are not built yet: leave the list empty').optional(),
  plugins: nothingYet('plugins'),
  beforeTool: nothingYet('beforeTool'),
  afterTool: nothingYet('afterTool'),
  onDisconnect: nothingYet('onDisconnect'),
  ...toolLimits,
  runConfig: z
    .strictObject({
      speechConfig: speechConfig.optional(),
      handoff: nothingYet('handoff'),
      ...toolLimits,
    })
    .optional(),
});

/** Checks and freezes an agent. Throws a ConfigError naming the field. */
export function defineAgent(definition: AgentDefinition): Agent {
  const result = schema.safeParse(definition);
  if (!result.success) {
    const issue = result.error.issues[0];
    const field = issue?.path.join('.') ?? '';
    throw new ConfigError(
      'agent_invalid',
      `agent: ${field} ${issue?.message ?? 'is not valid'}`.replace('  ', ' '),
    );
  }
  return Object.freeze({ ...definition, [AGENT]: true as const });
}

/** Not built yet: throws a ConfigError that says so, for the line of the module that asks for a tool. */
export function defineTool(_definition: unknown): never {
  throw new ConfigError('agent_invalid', 'defineTool: tools are not built yet in this version');
}

/** Not built yet: throws a ConfigError that says so. */
export function definePlugin(_definition: unknown): never {
  throw new ConfigError('agent_invalid', 'definePlugin: plugins are not built yet in this version');
}

/** Whether a module's default export came from `defineAgent`, of whichever copy of the package. */
export function isAgent(value: unknown): value is Agent {
  return typeof value === 'object' && value !== null && AGENT in value;
}
