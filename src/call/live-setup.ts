/**
 * What a call asks of the model before the first word: the agent's instruction and voice, and what the line adds. The
 * doctor asks for the same, so that what a call would be refused is found before it.
 */
import type { Agent, AgentContext } from '../agent/agent.js';
import { instructionText } from '../agent/instruction.js';
import type { LiveSetup } from '../model/live-connection.js';
import { declarationOf } from '../tool/agent-tools.js';
import { END_CALL_DECLARATION, stopStreaming } from '../tool/built-in-tools.js';
import { LINE_RULES, SAID_BEFORE, SAID_LAST, TOOL_RULES, WEB_RULES } from './line-texts.js';
import type { Event } from '../event/event.js';
import { saidBefore } from './said-before.js';

export interface SetupExtras {
  /** What is known of this caller from earlier calls. */
  readonly remembered?: string | undefined;
  /** Whether the line is a web client's; else it is a telephone's. */
  readonly isWeb?: boolean;
  /** What was said and done in the session before. */
  readonly history?: readonly Event[];
  /** Of a connection that follows another in one call. */
  readonly again?: AnotherConnection | undefined;
}

export interface AnotherConnection {
  /** The session that is resumed; without one it is a new one. */
  readonly resumptionHandle: string | undefined;
}

/** Throws what the author's `instruction(ctx)` throws, and a TypeError for anything but words. */
export function liveSetup(
  agent: Agent,
  ctx: AgentContext,
  { remembered, isWeb = false, history = [], again }: SetupExtras = {},
): LiveSetup {
  const tools = agent.tools ?? [];
  const streaming = stopStreaming(agent);
  const resumptionHandle = again?.resumptionHandle;
  const before = saidBefore(history, {
    invocationId: again && ctx.invocationId,
    heading: resumptionHandle === undefined ? SAID_BEFORE : SAID_LAST,
  });
  const rules = [
    isWeb ? WEB_RULES : LINE_RULES,
    ...(before === undefined ? [] : [before]),
    ...(tools.length > 0 ? [TOOL_RULES] : []),
    ...(remembered === undefined ? [] : [remembered]),
  ];
  return {
    agentName: agent.name,
    instruction: [instructionText(agent, ctx), ...rules].join('\n\n'),
    voice: agent.runConfig?.speechConfig?.voiceConfig?.prebuiltVoiceConfig.voiceName,
    languageCode: agent.runConfig?.speechConfig?.languageCode,
    functionDeclarations: [
      END_CALL_DECLARATION,
      ...(streaming === undefined ? [] : [streaming.declaration]),
      ...tools.map(declarationOf),
    ],
    ...(resumptionHandle !== undefined && { resumptionHandle }),
  };
}
