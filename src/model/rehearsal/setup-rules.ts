/**
 * What the service refuses in a setup whose shape is right: fields that a model does not take, and models that are no
 * live models. The codes are those that were seen; the words are close to them (ai.google.dev live guide, reports of
 * integrators), and nobody should read a meaning out of the code alone.
 */
import type { ClientContentFrame, LiveSetupFrame } from './client-frame.js';
import type { ModelProfile } from './model-profile.js';

export const INVALID_ARGUMENT = 1007;
export const POLICY_VIOLATION = 1008;
export const INTERNAL_ERROR = 1011;

export interface Refusal {
  readonly code: number;
  readonly reason: string;
}

/** Of `generationConfig`; the live guide says that they are not supported. */
const GENERATION_FIELDS_REFUSED = [
  'responseSchema',
  'responseJsonSchema',
  'responseMimeType',
  'responseLogprobs',
  'logprobs',
  'stopSequences',
  'routingConfig',
  'audioTimestamp',
] as const;
const TOOLS_REFUSED = ['codeExecution', 'googleMaps', 'urlContext'] as const;

type Rule = (setup: LiveSetupFrame, profile: ModelProfile) => string | undefined;

/** Each names what it refuses; undefined lets the setup pass. */
const RULES: readonly Rule[] = [
  ({ generationConfig = {} }) => {
    const field = GENERATION_FIELDS_REFUSED.find((name) => name in generationConfig);
    return field && `generation_config.${field} is not supported for bidiGenerateContent.`;
  },
  ({ generationConfig }) => {
    const modalities = generationConfig?.responseModalities ?? ['AUDIO'];
    return modalities.length === 1 && modalities[0] === 'AUDIO'
      ? undefined
      : `Cannot extract voices from a non-audio request: response modalities ${modalities.join(', ')}.`;
  },
  ({ generationConfig }, { thinkingConfig }) => {
    const thinking = generationConfig?.thinkingConfig;
    if (thinkingConfig === 'refused' && thinking !== undefined) {
      return 'Thinking config is not supported for this model.';
    }
    return thinkingConfig === 'required' && thinking?.thinkingLevel === undefined
      ? 'Thinking level must be set for this model.'
      : undefined;
  },
  ({ generationConfig }, { affectiveDialog }) =>
    affectiveDialog === 'refused' && generationConfig?.enableAffectiveDialog !== undefined
      ? 'Affective dialog is not supported for this model.'
      : undefined,
  ({ proactivity }, { proactiveAudio }) => {
    if (proactivity === undefined || proactiveAudio === 'optional') return undefined;
    if (proactiveAudio === 'refused') return 'Proactive audio is not supported for this model.';
    return proactivity.proactiveAudio === false ? 'Proactive audio cannot be disabled.' : undefined;
  },
  ({ tools = [] }) => {
    const tool = TOOLS_REFUSED.find((name) => tools.some((one) => name in one));
    return tool && `Tool ${tool} is not supported for bidiGenerateContent.`;
  },
  ({ tools = [] }) => {
    const names = tools.flatMap(({ functionDeclarations = [] }) =>
      functionDeclarations.map(({ name }) => name),
    );
    const twice = names.find((name, at) => names.indexOf(name) !== at);
    return twice && `Duplicate function declaration found: ${twice}`;
  },
  ({ sessionResumption }, { vertexFields }) =>
    vertexFields === 'refused' && sessionResumption?.transparent === true
      ? 'Transparent session resumption is not supported by this API.'
      : undefined,
  ({ explicitVadSignal }, { vertexFields }) =>
    vertexFields === 'refused' && explicitVadSignal === true
      ? 'Explicit VAD signal is not supported by this API.'
      : undefined,
];

/** Undefined when the setup is taken. */
export function setupRefusal(setup: LiveSetupFrame, profile: ModelProfile): Refusal | undefined {
  if (isTextModel(setup.model)) {
    const reason = `${setup.model} is not found for API version v1beta, or is not supported for bidiGenerateContent.`;
    return { code: POLICY_VIOLATION, reason };
  }
  for (const rule of RULES) {
    const reason = rule(setup, profile);
    if (reason !== undefined && reason !== '') return { code: INVALID_ARGUMENT, reason };
  }
  return undefined;
}

/** Undefined when the contents are taken. */
export function contentRefusal(
  { turns = [] }: ClientContentFrame,
  setup: LiveSetupFrame,
  profile: ModelProfile,
): Refusal | undefined {
  const refuse = (reason: string) => ({ code: INVALID_ARGUMENT, reason });
  if (profile.clientContentNeedsHistoryConfig && setup.historyConfig === undefined) {
    return refuse('Client content is only supported as initial history: set history_config.');
  }
  const roles = turns.map(({ role }) => role);
  if (roles.includes(undefined) && profile.missingRole === 'refused') {
    return refuse('Please use a valid role: user, model.');
  }
  return roles.every((role) => role === undefined || role === 'user' || role === 'model')
    ? undefined
    : refuse('Please use a valid role: user, model.');
}

/** Google's text models, by their names; every other name is taken, so that new models need no new rehearsal. */
function isTextModel(model: string): boolean {
  const bare = model.slice(model.lastIndexOf('/') + 1);
  return /^gemini-\d/.test(bare) && !/live|native-audio/.test(bare);
}
