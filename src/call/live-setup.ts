/**
 * What a call asks of the model before the first word: the agent's instruction and voice, and what the line adds. The
 * doctor asks for the same, so that what a call would be refused is found before it.
 */
import type { Agent, AgentContext } from '../agent/agent.js';
import { instructionText } from '../agent/instruction.js';
import type { LiveSetup } from '../model/live-connection.js';
import { declarationOf } from '../tool/agent-tools.js';
import { END_CALL_DECLARATION, stopStreaming } from '../tool/built-in-tools.js';
import { LINE_RULES, said, SAID_BEFORE, TOOL_RULES, WEB_RULES } from './line-texts.js';
import type { Event } from '../event/event.js';
import { WEB_HISTORY_MAX_CHARS } from '../limits.js';

export interface SetupExtras {
  /** What is known of this caller from earlier calls. */
  readonly remembered?: string | undefined;
  readonly web?: WebSetup | undefined;
}

/** What a web client's line brings: what was said in the session before. */
export interface WebSetup {
  readonly history: readonly Event[];
}

/** Throws what the author's `instruction(ctx)` throws, and a TypeError for anything but words. */
export function liveSetup(agent: Agent, ctx: AgentContext, { remembered, web }: SetupExtras = {}): LiveSetup {
  const tools = agent.tools ?? [];
  const streaming = stopStreaming(agent);
  const rules = [
    web === undefined ? LINE_RULES : webRules(web),
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
  };
}

/** History travels in the instruction: of the ways to give a live model a past it is the one that all of them take. */
function webRules({ history }: WebSetup): string {
  const lines = history.flatMap(({ author, content }) => {
    const text = (content?.parts ?? [])
      .map((part) => (part.thought === true ? '' : (part.text ?? '')))
      .join('')
      .trim();
    return text === '' ? [] : [said(author, text)];
  });
  if (lines.length === 0) return WEB_RULES;
  return `${WEB_RULES}\n\n${SAID_BEFORE}\n${newest(lines).join('\n')}`;
}

function newest(lines: readonly string[]): readonly string[] {
  let chars = 0;
  let from = lines.length;
  while (from > 0 && (chars += (lines[from - 1]?.length ?? 0) + 1) <= WEB_HISTORY_MAX_CHARS) from -= 1;
  return lines.slice(from);
}
