/**
 * The tools of one run in text: the model's calls carried out as on a line, but nobody is on one, and what comes late is told
 * by the event alone.
 */
import type { Agent, AgentContext } from '../agent/agent.js';
import type { Event } from '../event/event.js';
import type { RunEvents } from '../event/run-events.js';
import type { FunctionCall, FunctionResponse } from '../model/live-connection.js';
import type { TextPart } from '../model/text-model.js';
import type { Log } from '../observe/log.js';
import type { RunSecrets } from '../tool/run-secrets.js';
import { ToolCalls } from '../tool/tool-calls.js';
import { NO_LINE, type ToolRuns } from '../tool/tool-runs.js';

export interface TextToolsOptions {
  readonly agent: Agent;
  readonly identity: AgentContext;
  readonly history: readonly Event[];
  readonly events: RunEvents;
  readonly tools: ToolRuns;
  readonly secrets: RunSecrets;
  readonly log: Log;
}

export class TextTools {
  readonly #calls: ToolCalls;
  #isOver = false;

  constructor({ agent, identity, history, events, tools, secrets, log }: TextToolsOptions) {
    this.#calls = new ToolCalls({
      host: {
        events,
        // All of a round's answers go with the next request.
        answer: () => {},
        update: ({ text }) =>
          log.info({ chars: text.length }, 'a tool of a run in text has more to say: nobody hears it'),
        forgetUpdate: () => {},
        endInvocation: () => {
          events.endedByTool();
          this.#isOver = true;
        },
        enter: (happens) => happens(),
      },
      work: (listener) =>
        tools.open({
          agent,
          identity,
          builtIn: [],
          history,
          callControl: NO_LINE,
          isLive: false,
          secrets,
          listener,
          listen: (hear) => events.stream.listen(hear),
        }),
      autoExecute: agent.runConfig?.autoExecuteTools ?? true,
      autoRespond: agent.runConfig?.autoRespondTools ?? true,
      responses: 'group',
      log,
    });
    this.#isAnswered = agent.runConfig?.autoRespondTools ?? true;
  }

  readonly #isAnswered: boolean;

  async answer(
    functionCalls: readonly FunctionCall[],
    parts: readonly TextPart[],
  ): Promise<{ readonly responses: readonly FunctionResponse[]; readonly isOver: boolean }> {
    // Each request is answered by itself: an id that comes again is another call.
    this.#calls.forgetIds();
    const responses = await this.#calls.dispatch(functionCalls, parts);
    return { responses: this.#isAnswered ? responses : [], isOver: this.#isOver };
  }

  /** The run is over. */
  close(): Promise<void> {
    return this.#calls.close();
  }
}
