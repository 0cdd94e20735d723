/**
 * What must hold in the `contents` of a text request, and what its turns are. A turn of the user's begins with words
 * and goes on through function calls and their responses until the model has answered.
 */
import type { TextContent, TextPart } from './text-generation-request.js';

/** Fields of a part that say something about its data and are none themselves. */
const NOT_DATA = new Set([
  'thought',
  'thoughtSignature',
  'partMetadata',
  'videoMetadata',
  'mediaResolution',
  'mediaProcessing',
  'speechMetadata',
]);
/** What Google documents for calls that did not come from its model. */
const SIGNATURE_SUBSTITUTES = new Set([
  'skip_thought_signature_validator',
  'context_engineering_is_the_way_to_go',
]);

export function isModel(content: TextContent): boolean {
  return content.role === 'model';
}

export function callsIn(content: TextContent): NonNullable<TextPart['functionCall']>[] {
  return content.parts.flatMap(({ functionCall }) => functionCall ?? []);
}

export function responsesIn(content: TextContent): NonNullable<TextPart['functionResponse']>[] {
  return content.parts.flatMap(({ functionResponse }) => functionResponse ?? []);
}

/** Without the model's thoughts, which are not part of what it said. */
export function textOf(content: TextContent): string {
  return content.parts.flatMap(({ text, thought }) => (thought === true ? [] : (text ?? []))).join('');
}

/** The first thing that the service would refuse, in its form; undefined when there is none. */
export function historyFault(contents: readonly TextContent[], model: string): string | undefined {
  if (contents.length === 0) return '* GenerateContentRequest.contents: contents is not specified';
  for (const [index, content] of contents.entries()) {
    const fault = contentFault(content, `* GenerateContentRequest.contents[${index}]`);
    if (fault !== undefined) return fault;
  }
  const last = contents.at(-1);
  if (last !== undefined && isModel(last)) return 'Requests ending with a model turn are not supported.';
  return callFault(contents) ?? (signsCalls(model) ? signatureFault(contents) : undefined);
}

/** Gemini 3 and what `latest` means want each call back with the signature it came with; Gemini 2 does not. */
export function signsCalls(model: string): boolean {
  return !/^gemini-[12]\b/.test(model);
}

function contentFault(content: TextContent, place: string): string | undefined {
  if (content.role !== undefined && !['', 'user', 'model', 'function'].includes(content.role)) {
    return 'Please use a valid role: user, model.';
  }
  if (content.parts.length === 0) return `${place}.parts: contents.parts must not be empty.`;
  for (const [index, part] of content.parts.entries()) {
    const fields = Object.keys(part).filter((name) => !NOT_DATA.has(name));
    if (fields.length === 0) {
      return `${place}.parts[${index}].data: required oneof field 'data' must have one initialized field`;
    }
    if (fields.length > 1) return `${place}.parts[${index}].data: only one field of oneof 'data' may be set`;
    const call = part.functionCall;
    if (call?.name === '') return `${place}.parts[${index}].function_call.name: Name cannot be empty.`;
    if (part.functionResponse?.name === '') {
      return `${place}.parts[${index}].function_response.name: Name cannot be empty.`;
    }
  }
  return undefined;
}

function callFault(contents: readonly TextContent[]): string | undefined {
  for (const [index, content] of contents.entries()) {
    const responses = responsesIn(content);
    const before = contents[index - 1];
    const calls = before !== undefined && isModel(before) ? callsIn(before) : [];
    if (responses.length > 0 && isModel(content)) return 'Function responses must not have the role model.';
    if (responses.length !== calls.length) {
      if (responses.length > 0 && calls.length === 0) {
        return 'A function response turn must come immediately after a function call turn.';
      }
      return 'The number of function response parts must equal the number of function call parts of the turn before.';
    }
    if (callsIn(content).length === 0) continue;
    if (!isModel(content)) return 'Function calls must have the role model.';
    if (before === undefined || isModel(before)) {
      return 'A function call turn must come immediately after a user turn or a function response turn.';
    }
  }
  return undefined;
}

/** The first call of each step of the current turn. https://ai.google.dev/gemini-api/docs/thought-signatures */
function signatureFault(contents: readonly TextContent[]): string | undefined {
  const start = contents.findLastIndex((content) => !isModel(content) && responsesIn(content).length === 0);
  for (const [index, content] of contents.entries()) {
    if (index <= start) continue;
    const call = content.parts.find(({ functionCall }) => functionCall !== undefined);
    if (call === undefined) continue;
    const signature = call.thoughtSignature ?? '';
    if (signature === '') {
      const name = call.functionCall?.name ?? '';
      return `Function call is missing a thought_signature in functionCall parts. Additional data, function call \`default_api:${name}\`, position ${index + 1}.`;
    }
    if (!SIGNATURE_SUBSTITUTES.has(signature) && !isOurs(signature)) return 'Corrupted thought signature.';
  }
  return undefined;
}

const SIGNATURE_FORM = /^rehearsal signature \d+$/;

/** The signature of the `ordinal`th call of a conversation, base64 as the real ones are. */
export function callSignature(ordinal: number): string {
  return Buffer.from(`rehearsal signature ${ordinal}`).toString('base64');
}

function isOurs(signature: string): boolean {
  return SIGNATURE_FORM.test(Buffer.from(signature, 'base64').toString('utf8'));
}
