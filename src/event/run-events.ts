/**
 * A run told as events: what was said, called, answered and lost, in the order in which it happened. Whoever carries the run
 * says what happens; ids, authors and times are given here.
 */
import {
  type Event,
  type EventActions,
  type FunctionCall,
  type FunctionResponse,
  NO_ACTIONS,
  type Part,
} from './event.js';
import {
  type AgentTurn,
  type Role,
  type RunClock,
  RunStream,
  type StreamOutcome,
  type TokenUse,
  type WithdrawnCall,
} from './run-stream.js';
import { newId } from '../ids.js';

export interface RunEventsOptions {
  readonly invocationId: string;
  /** Author of what is not the user's. */
  readonly agentName: string;
  readonly clock: RunClock;
  /** Told when a listener threw. */
  readonly onFault: (error: unknown) => void;
}

export interface CalledOptions {
  /** As the model wrote them, where more than the calls has to be kept. */
  readonly parts?: readonly Part[] | undefined;
  /** Calls whose results come later. */
  readonly longRunningToolIds?: readonly string[];
}

export interface RespondedOptions {
  /** What changed with it. */
  readonly actions?: EventActions;
  /** Another response of the same calls follows. */
  readonly isPending?: boolean;
  /** The calls were told before as given up: this is what has become of them after all. */
  readonly isLate?: boolean;
  /** Where the event must have this id, so that it is told once. */
  readonly eventId?: string | undefined;
}

export class RunEvents {
  readonly stream: RunStream;
  readonly #options: RunEventsOptions;

  constructor(options: RunEventsOptions) {
    this.#options = options;
    this.stream = new RunStream(options);
  }

  /** The answer that the run is was asked for at this time. */
  asked(atMs: number): void {
    this.stream.emit({ type: 'asked', atMs });
  }

  opened(msg: string, role: Role, before?: string, turn?: AgentTurn): void {
    this.stream.emit({ type: 'opened', msg, role, before, ...(turn && { turn }) });
  }

  /** Words as they were transcribed: of the agent ahead of what is heard. */
  delta(msg: string, role: Role, text: string): void {
    const transcription =
      role === 'user' ? { inputTranscription: { text } } : { outputTranscription: { text } };
    const event = this.#event(role, {
      content: { role, parts: [{ text }] },
      partial: true,
      ...transcription,
    });
    this.stream.emit({ type: 'delta', msg, role, event });
  }

  /** A message is over. `text` is what was heard of it; with none it never was. `outcome` where it was opened with a turn. */
  sealed(msg: string, role: Role, text: string, interrupted: boolean, outcome?: StreamOutcome): void {
    const event =
      text === ''
        ? undefined
        : this.#event(role, {
            content: { role, parts: [{ text }] },
            turnComplete: true,
            ...(interrupted && { interrupted }),
          });
    this.stream.emit({ type: 'sealed', msg, role, event, ...(outcome && { outcome }) });
  }

  called(
    functionCalls: readonly FunctionCall[],
    { parts, longRunningToolIds = [] }: CalledOptions = {},
  ): void {
    const content = {
      role: 'model',
      parts: parts ?? functionCalls.map((functionCall) => ({ functionCall })),
    } as const;
    const event = this.#event('model', {
      content,
      ...(longRunningToolIds.length > 0 && { longRunningToolIds }),
    });
    this.stream.emit({ type: 'event', event });
  }

  responded(
    functionResponses: readonly FunctionResponse[],
    { actions = NO_ACTIONS, isPending = false, isLate = false, eventId }: RespondedOptions = {},
  ): void {
    const parts = functionResponses.map((functionResponse) => ({ functionResponse }));
    const longRunningToolIds = isPending ? functionResponses.flatMap(({ id }) => id ?? []) : [];
    // As in ADK: the role is the user's, the author the agent that called.
    const event = this.#event('model', {
      content: { role: 'user', parts },
      actions,
      ...(longRunningToolIds.length > 0 && { longRunningToolIds }),
      ...(eventId !== undefined && { id: eventId }),
    });
    this.stream.emit({ type: 'event', event, ...(isLate && { isLate }) });
  }

  /** The model took calls back: they are not answered. */
  withdrawn(calls: readonly WithdrawnCall[]): void {
    this.stream.emit({ type: 'withdrawn', calls });
  }

  /** State or artifacts changed, with nothing else to tell it. */
  changed(actions: EventActions): void {
    this.stream.emit({ type: 'event', event: this.#event('model', { actions }) });
  }

  /** A tool ended the run: the control event that says so, in the place of a word of the model's. */
  endedByTool(): void {
    this.stream.emit({ type: 'event', event: this.#event('model', { finishReason: 'END_INVOCATION' }) });
  }

  /** Something went wrong. `errorMessage` is for clients too: nothing about the inside. `fatal`: the run is over because of it. */
  failed(
    errorCode: string,
    errorMessage: string,
    { endsMsg, fatal }: { readonly endsMsg?: string | undefined; readonly fatal?: boolean } = {},
  ): void {
    const event = this.#event('model', { errorCode, errorMessage });
    this.stream.emit({ type: 'event', event, endsMsg, fatal });
  }

  used(usage: TokenUse): void {
    this.stream.emit({ type: 'used', usage });
  }

  ready(): void {
    this.stream.emit({ type: 'ready' });
  }

  /** Nothing follows. `outcome` of the answer that the run is, where it was asked for. */
  over(outcome?: StreamOutcome): void {
    this.stream.emit({ type: 'over', ...(outcome && { outcome }) });
  }

  #event(role: Role, content: Partial<Event>): Event {
    const { invocationId, agentName, clock } = this.#options;
    const author = role === 'user' ? 'user' : agentName;
    const timestamp = clock.wallMs() / 1000;
    return { id: newId(), invocationId, author, timestamp, actions: NO_ACTIONS, ...content };
  }
}
