/**
 * The tools that every agent has because the line needs them. Tools of an agent's own are not built yet: a call of any
 * other name is answered with an error that the model can speak about, so that it never waits.
 */
import type { FunctionCall, FunctionDeclaration, FunctionResponse } from '../model/live-connection.js';

export const END_CALL = 'end_call';

export const BUILT_IN_TOOLS: readonly FunctionDeclaration[] = [
  {
    name: END_CALL,
    description:
      'Hangs up the telephone. Call it once the conversation is over and you have said goodbye; the line is cut when the caller has heard your goodbye.',
    parametersJsonSchema: { type: 'object', properties: {} },
  },
];

/** Answers every call of one group; `ends` when the agent wants to hang up. */
export function answerTools(
  functionCalls: readonly FunctionCall[],
  note: string | undefined,
): { readonly responses: readonly FunctionResponse[]; readonly ends: boolean } {
  const responses = functionCalls.map(({ id, name }, index) => {
    const known = name === END_CALL;
    const response = known
      ? {
          status: 'ending',
          message: 'The line is cut when your goodbye has been heard. Say nothing more after it.',
        }
      : { error: `There is no tool named ${name}.`, message: 'Tell the caller that you cannot do that.' };
    return { id, name, response: index === 0 && note !== undefined ? { ...response, note } : response };
  });
  return { responses, ends: functionCalls.some(({ name }) => name === END_CALL) };
}
