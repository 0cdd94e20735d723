/**
 * The tools that an agent has without its author's doing: the line's own, and the one that stops streaming tools.
 */
import type { Agent } from '../agent/agent.js';
import type { ToolCallControl } from '../agent/tool-context.js';
import type { FunctionDeclaration } from '../model/live-connection.js';
import type { StreamingTools } from './streaming-tools.js';
import { errorResponse, type Response } from './tool-result.js';

export const END_CALL = 'end_call';
export const STOP_STREAMING = 'stop_streaming';

export interface BuiltInTool {
  readonly declaration: FunctionDeclaration;
  /** Never throws or rejects. */
  run(args: Readonly<Record<string, unknown>>, streaming: StreamingTools): Response | Promise<Response>;
}

export const END_CALL_DECLARATION: FunctionDeclaration = {
  name: END_CALL,
  description:
    'Hangs up the telephone. Call it once the conversation is over and you have said goodbye; the line is cut when the caller has heard your goodbye.',
  parametersJsonSchema: { type: 'object', properties: {} },
};

/** Hangs up; every live conversation has it. */
export function endCall(line: ToolCallControl): BuiltInTool {
  return {
    declaration: END_CALL_DECLARATION,
    run() {
      const answer = line.hangUp();
      if (answer.kind === 'unavailable') return errorResponse(answer.why);
      return {
        status: 'ending',
        message: 'The line is cut when your goodbye has been heard. Say nothing more after it.',
      };
    },
  };
}

/** Stops a streaming tool; there when the agent has one. */
export function stopStreaming(agent: Agent): BuiltInTool | undefined {
  const names = (agent.tools ?? []).filter(({ kind }) => kind === 'streaming').map(({ name }) => name);
  if (names.length === 0) return undefined;
  return {
    declaration: {
      name: STOP_STREAMING,
      description: 'Stops a tool that is running and reports by itself.',
      parametersJsonSchema: {
        type: 'object',
        properties: {
          function_name: { type: 'string', enum: names, description: 'The name of the tool to stop.' },
        },
        required: ['function_name'],
      },
    },
    async run(args, streaming) {
      const name = args['function_name'];
      if (typeof name !== 'string')
        return errorResponse('function_name: the name of the tool to stop is needed.');
      return (await streaming.stop(name))
        ? { status: 'stopped', message: `${name} has been stopped. It reports nothing more.` }
        : { status: 'none active', message: `${name} is not running: there is nothing to stop.` };
    },
  };
}
