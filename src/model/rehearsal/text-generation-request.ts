/**
 * Reads the body of a text request as strictly as the real service: first its form, then what must hold between its
 * fields. What it returns can be answered; everything else is a refusal that names the field.
 */
import { z } from 'zod';
import { REHEARSAL_DECLARATIONS_MAX } from './rehearsal-limits.js';
import { readProtoJson } from './proto-json.js';
import { GENERATE_REQUEST_FIELDS } from './text-generation-fields.js';
import { historyFault } from './text-generation-history.js';
import { invalidArgument, invalidFields, type TextRefusal } from './text-generation-refusal.js';

const record = z.record(z.string(), z.unknown());
const partSchema = z.looseObject({
  text: z.string().optional(),
  thought: z.boolean().optional(),
  thoughtSignature: z.string().optional(),
  functionCall: z
    .object({ id: z.string().optional(), name: z.string().default(''), args: record.optional() })
    .optional(),
  functionResponse: z
    .object({ id: z.string().optional(), name: z.string().default(''), response: record.optional() })
    .optional(),
});
const contentSchema = z.object({ role: z.string().optional(), parts: z.array(partSchema).default([]) });
const declarationSchema = z.object({
  name: z.string().default(''),
  parameters: z.unknown().optional(),
  parametersJsonSchema: z.unknown().optional(),
});
const requestSchema = z.object({
  contents: z.array(contentSchema).default([]),
  systemInstruction: contentSchema.optional(),
  tools: z.array(z.object({ functionDeclarations: z.array(declarationSchema).default([]) })).default([]),
  toolConfig: z
    .object({
      functionCallingConfig: z
        .object({ mode: z.unknown().optional(), allowedFunctionNames: z.array(z.string()).optional() })
        .optional(),
    })
    .optional(),
  generationConfig: z
    .object({
      candidateCount: z.number().optional(),
      maxOutputTokens: z.number().optional(),
      stopSequences: z.array(z.string()).default([]),
      responseMimeType: z.string().optional(),
      responseSchema: z.unknown().optional(),
      responseJsonSchema: z.unknown().optional(),
    })
    .optional(),
});

export type TextPart = z.infer<typeof partSchema>;
export type TextContent = z.infer<typeof contentSchema>;
export type GenerateRequest = z.infer<typeof requestSchema>;

export interface DeclaredFunction {
  readonly name: string;
  /** A JSON schema, its types in small or capital letters. */
  readonly schema: unknown;
}

/** Names as the service takes them: https://ai.google.dev/api/caching#FunctionDeclaration */
const FUNCTION_NAME = /^[A-Za-z_][\w.:-]{0,127}$/;
const RESPONSE_TYPES = ['text/plain', 'application/json', 'text/x.enum'];

/** `model` is the name in the path, without `models/`. */
export function readGenerateRequest(
  body: string,
  model: string,
): { readonly request: GenerateRequest } | { readonly refusal: TextRefusal } {
  let json: unknown;
  try {
    json = JSON.parse(body);
  } catch {
    return { refusal: invalidArgument('Invalid JSON payload received. The body is not JSON.') };
  }
  const { value, violations } = readProtoJson(GENERATE_REQUEST_FIELDS, json);
  if (violations.length > 0) return { refusal: invalidFields(violations) };
  const parsed = requestSchema.safeParse(value);
  if (!parsed.success) {
    const at = parsed.error.issues[0]?.path.join('.') ?? '';
    return { refusal: invalidArgument(`Invalid value at '${at}'`) };
  }
  const fault =
    historyFault(parsed.data.contents, model) ?? toolFault(parsed.data) ?? configFault(parsed.data);
  return fault === undefined ? { request: parsed.data } : { refusal: invalidArgument(fault) };
}

export function declaredFunctions(request: GenerateRequest): DeclaredFunction[] {
  return request.tools.flatMap(({ functionDeclarations }) =>
    functionDeclarations.map(({ name, parameters, parametersJsonSchema }) => ({
      name,
      schema: parametersJsonSchema ?? parameters,
    })),
  );
}

export type CallingMode = 'AUTO' | 'ANY' | 'NONE';

/** What the client lets the model call. VALIDATED concerns the form of arguments, which ours always have. */
export function callingMode(request: GenerateRequest): CallingMode {
  const mode = request.toolConfig?.functionCallingConfig?.mode;
  return mode === 'ANY' || mode === 'NONE' ? mode : 'AUTO';
}

function toolFault(request: GenerateRequest): string | undefined {
  const names = new Set<string>();
  const count = request.tools.reduce((sum, tool) => sum + tool.functionDeclarations.length, 0);
  if (count > REHEARSAL_DECLARATIONS_MAX)
    return `At most ${REHEARSAL_DECLARATIONS_MAX} function declarations are supported.`;
  for (const [tool, { functionDeclarations }] of request.tools.entries()) {
    for (const [index, declaration] of functionDeclarations.entries()) {
      const place = `tools[${tool}].function_declarations[${index}]`;
      if (!FUNCTION_NAME.test(declaration.name)) {
        return `* GenerateContentRequest.${place}.name: Invalid function name.`;
      }
      if (declaration.parameters !== undefined && declaration.parametersJsonSchema !== undefined) {
        return `* GenerateContentRequest.${place}: parameters and parameters_json_schema exclude one another.`;
      }
      if (names.has(declaration.name)) return `Duplicate function declaration found: ${declaration.name}`;
      names.add(declaration.name);
    }
  }
  const calling = request.toolConfig?.functionCallingConfig;
  const allowed = calling?.allowedFunctionNames ?? [];
  if (calling?.mode === 'ANY' && names.size === 0) {
    return 'Function calling config is set without function_declarations.';
  }
  if (allowed.length > 0 && calling?.mode !== 'ANY' && calling?.mode !== 'VALIDATED') {
    return 'allowed_function_names is only set when the function calling mode is ANY or VALIDATED.';
  }
  const unknown = allowed.find((name) => !names.has(name));
  return unknown === undefined ? undefined : `allowed_function_names has an undeclared name: ${unknown}`;
}

function configFault(request: GenerateRequest): string | undefined {
  const config = request.generationConfig;
  if (config === undefined) return undefined;
  if ((config.maxOutputTokens ?? 1) < 1) return 'max_output_tokens must be positive.';
  if ((config.candidateCount ?? 1) !== 1) return 'Only one candidate can be specified.';
  if (config.stopSequences.length > 5) return 'The number of stop_sequences must be at most 5.';
  const type = config.responseMimeType;
  if (type !== undefined && type !== '' && !RESPONSE_TYPES.includes(type)) {
    return `* GenerateContentRequest.generation_config.response_mime_type: must be one of ${RESPONSE_TYPES.join(', ')}.`;
  }
  return undefined;
}
