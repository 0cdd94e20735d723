/**
 * One client of the rehearsal service: answers its setup, reads its frames, refuses what the real service refuses, and
 * hands the rest to the turn-taking. Sockets are left to the service.
 */
import type { Clock, Timer } from '../../clock.js';
import { errorText } from '../../errors.js';
import {
  REHEARSAL_EARLY_FRAMES_MAX,
  REHEARSAL_SETUP_TIMEOUT_MS,
  REHEARSAL_TEXT_MAX_CHARS,
} from './rehearsal-limits.js';
import type { Log } from '../../observe/log.js';
import { CallerEar } from './caller-ear.js';
import {
  type ClientContentFrame,
  type ClientFrame,
  type FunctionResponseFrame,
  type LiveSetupFrame,
  readClientFrame,
  type RealtimeInputFrame,
  textOfContent,
} from './client-frame.js';
import { ConnectionLife } from './connection-life.js';
import type { DialogueState } from './dialogue-step.js';
import type { Dialogue, FrameKind } from './dialogue.js';
import { FunctionDeclarations } from './function-declarations.js';
import { Chaos, CLOSE_REASONS, type PointMisbehaviour, type SetupMisbehaviour } from './misbehaviour.js';
import { type ModelProfile, modelProfile, withAnySetup } from './model-profile.js';
import { rehearsalVoice } from './rehearsal-voice.js';
import type { HandleHolder, Lineage, ResumptionHandles } from './resumption-handles.js';
import type { SeededRandom } from './seeded-random.js';
import {
  contentRefusal,
  INTERNAL_ERROR,
  INVALID_ARGUMENT,
  POLICY_VIOLATION,
  type Refusal,
  setupRefusal,
} from './setup-rules.js';
import type { SpeechSynthesizer } from './speech-synthesizer.js';
import { TokenMeter } from './token-meter.js';
import { TurnTaking } from './turn-taking.js';

const LATE_SETUP = 'Deadline expired before operation could complete.';
const INVALID_HANDLE = 'Invalid session resumption handle.';

/** What a client talks with. */
export interface ChosenDialogue {
  readonly dialogue: Dialogue;
  /** Counts the dialogue's connections from 1. */
  readonly connection: number;
  /** The client asked for the rehearsal by name and not for a model of Google's. */
  readonly takesAnySetup: boolean;
}

export interface RehearsalConnectionDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly chooseDialogue: (model: string) => ChosenDialogue;
  readonly synthesizer: SpeechSynthesizer;
  readonly random: SeededRandom;
  readonly handles: ResumptionHandles;
  /** What `setupComplete` calls the conversation on this connection. */
  readonly sessionId: string;
  /** `frames` where the dialogue says in what the JSON is sent. */
  readonly send: (message: object, frames: FrameKind | undefined) => void;
  readonly bufferedAmount: () => number;
  /** Whether the client has not begun to close. */
  readonly isOpen: () => boolean;
  /** Closes the socket, for 1006 without a close frame; nothing is sent afterwards. */
  readonly close: (code: number, reason: string) => void;
}

/** What is there once setup was taken. */
interface Conversation {
  readonly setup: LiveSetupFrame;
  readonly profile: ModelProfile;
  readonly ear: CallerEar;
  readonly turns: TurnTaking;
  functions: FunctionDeclarations;
  /** Client content is history until its `turnComplete`. */
  isSeeding: boolean;
}

/** Where a conversation begins, and what goes wrong with it because it was resumed. */
interface Beginning {
  readonly state: DialogueState | undefined;
  readonly misbehave: readonly SetupMisbehaviour[];
}

export class RehearsalConnection implements HandleHolder {
  readonly #deps: RehearsalConnectionDeps;
  readonly #life: ConnectionLife;
  readonly #tokens = new TokenMeter();
  #setupTimer: Timer | undefined;
  #conversation: Conversation | undefined;
  #lineage: Lineage = { resumptions: 0 };
  /** What comes while the setup takes its time; undefined when it does not. */
  #early: ClientFrame[] | undefined;
  #typedText = '';
  #frames: FrameKind | undefined;
  /** Counts from 0, which is the setup. */
  #lastConsumedIndex = -1;
  #endedMs: number | undefined;

  constructor(deps: RehearsalConnectionDeps) {
    this.#deps = deps;
    this.#life = new ConnectionLife({
      clock: deps.clock,
      send: (message) => this.#send(message),
      close: (code, reason) => this.#close({ code, reason }),
    });
    this.#setupTimer = deps.clock.setTimer(REHEARSAL_SETUP_TIMEOUT_MS, () =>
      this.#close({ code: POLICY_VIOLATION, reason: LATE_SETUP }),
    );
  }

  get endedMs(): number | undefined {
    return this.#endedMs ?? (this.#deps.isOpen() ? undefined : this.#deps.clock.nowMs());
  }

  get lineage(): Lineage {
    return this.#lineage;
  }

  /** One frame from the client, text or binary alike. Never throws. */
  receive(json: string): void {
    if (this.#endedMs !== undefined) return;
    this.#lastConsumedIndex += 1;
    this.#carefully(() => {
      const read = readClientFrame(json);
      if ('refusal' in read) this.#close({ code: INVALID_ARGUMENT, reason: read.refusal });
      else this.#frame(read.frame);
    });
  }

  #carefully(act: () => void): void {
    try {
      act();
    } catch (error) {
      this.#deps.log.error({ why: errorText(error) }, 'the rehearsal model failed on a message');
      this.#close({ code: INTERNAL_ERROR, reason: 'Internal error encountered.' });
    }
  }

  /** The socket is gone: nothing is left running. Idempotent. */
  stop(): void {
    this.#endedMs ??= this.#deps.clock.nowMs();
    this.#setupTimer?.cancel();
    this.#life.stop();
    this.#conversation?.turns.stop();
  }

  #send(message: object): void {
    if (this.#endedMs === undefined && !this.#life.isMute) this.#deps.send(message, this.#frames);
  }

  #close({ code, reason }: Refusal): void {
    if (this.#endedMs !== undefined) return;
    this.stop();
    this.#deps.close(code, reason);
  }

  #frame(frame: ClientFrame): void {
    if (frame.setup !== undefined) return this.#startSetup(frame.setup);
    const conversation = this.#conversation;
    if (conversation === undefined) {
      return this.#close({ code: INVALID_ARGUMENT, reason: 'The first message must be setup.' });
    }
    if (this.#early !== undefined) {
      this.#early = [...this.#early, frame].slice(-REHEARSAL_EARLY_FRAMES_MAX);
      return;
    }
    if (frame.realtimeInput !== undefined) return this.#realtimeInput(conversation, frame.realtimeInput);
    if (frame.clientContent !== undefined) return this.#clientContent(conversation, frame.clientContent);
    if (frame.contextUpdate !== undefined) return this.#contextUpdate(conversation, frame.contextUpdate);
    for (const response of frame.toolResponse?.functionResponses ?? []) {
      this.#functionResponse(conversation, response);
    }
  }

  #startSetup(setup: LiveSetupFrame): void {
    if (this.#conversation !== undefined) {
      return this.#close({ code: INVALID_ARGUMENT, reason: 'Setup was already received.' });
    }
    const chosen = this.#deps.chooseDialogue(setup.model);
    const { dialogue, connection } = chosen;
    this.#frames = dialogue.frames;
    const profile = profileOf(chosen);
    const refusal = setupRefusal(setup, profile);
    if (refusal !== undefined) return this.#close(refusal);
    const beginning = this.#beginning(setup.sessionResumption?.handle, dialogue);
    if ('code' in beginning) return this.#close(beginning);
    this.#setupTimer?.cancel();
    const conversation = this.#converse(setup, { ...chosen, profile, state: beginning.state });
    this.#conversation = conversation;
    const own = concerns(dialogue.setup, connection) ? dialogue.setup : undefined;
    const misbehave = [...(own?.misbehave ?? []), ...beginning.misbehave];
    const complete = () => this.#completeSetup(conversation, dialogue, misbehave);
    if (own?.delayMs === undefined) return complete();
    this.#early = [];
    this.#life.after(own.delayMs / 1_000, () => this.#carefully(complete));
  }

  #completeSetup({ turns }: Conversation, dialogue: Dialogue, misbehave: readonly SetupMisbehaviour[]): void {
    for (const one of misbehave) if (one.afterSeconds === undefined) this.#misbehave(one);
    if (this.#endedMs !== undefined) return;
    this.#life.begin(dialogue.life);
    this.#send({ setupComplete: { sessionId: this.#deps.sessionId } });
    turns.begin();
    for (const one of misbehave) {
      if (one.afterSeconds !== undefined) this.#life.after(one.afterSeconds, () => this.#misbehave(one));
    }
    const early = this.#early ?? [];
    this.#early = undefined;
    for (const frame of early) if (this.#endedMs === undefined) this.#frame(frame);
  }

  #converse(
    setup: LiveSetupFrame,
    from: ChosenDialogue & { profile: ModelProfile; state: DialogueState | undefined },
  ): Conversation {
    const { dialogue, profile } = from;
    const { clock, log, random, bufferedAmount, synthesizer, handles } = this.#deps;
    const tokens = this.#tokens;
    const voice = rehearsalVoice(
      setup.generationConfig?.speechConfig?.voiceConfig?.prebuiltVoiceConfig?.voiceName,
    );
    const turns: TurnTaking = new TurnTaking({
      clock,
      log,
      random,
      bufferedAmount,
      dialogue,
      profile,
      setup,
      tokens,
      state: from.state,
      chaos: dialogue.chaos && new Chaos(dialogue.chaos, from.connection),
      functions: () => conversation.functions,
      callerSpeaks: () => conversation.ear.callerSpeaks,
      speak: (sentence) => synthesizer.speak(voice, sentence),
      send: (message) => this.#send(message),
      misbehave: (one) => this.#misbehave(one),
      lastConsumedIndex: () => this.#lastConsumedIndex,
      offerHandle: (state) => handles.offer(state, this),
    });
    const conversation: Conversation = {
      setup,
      profile,
      turns,
      ear: new CallerEar({ clock, tokens, listener: turns, config: setup.realtimeInputConfig }),
      functions: new FunctionDeclarations(setup.tools, profile),
      isSeeding: setup.historyConfig?.initialHistoryInClientContent === true,
    };
    const instruction = textOfContent(setup.systemInstruction);
    tokens.addText(instruction);
    log.info(
      { instructionChars: instruction.length, functions: conversation.functions.count, voice },
      'rehearsal conversation; the instruction is not followed',
    );
    return conversation;
  }

  /** Where the dialogue stood by the handle, or its start; or why the handle is refused. */
  #beginning(handle: string | undefined, { resumption }: Dialogue): Beginning | Refusal {
    if (handle === undefined) return { state: undefined, misbehave: [] };
    const taken = this.#deps.handles.take(handle);
    if ('refused' in taken) {
      return taken.refused === 'in_use'
        ? { code: INTERNAL_ERROR, reason: 'Session resumption failed: the session is still connected.' }
        : { code: INVALID_ARGUMENT, reason: INVALID_HANDLE };
    }
    const { state, lineage } = taken;
    this.#lineage = lineage;
    lineage.resumptions += 1;
    if (resumption === undefined || lineage.resumptions > (resumption.times ?? Infinity)) {
      return { state, misbehave: [] };
    }
    const { refuse, misbehave = [] } = resumption;
    if (refuse === undefined) return { state, misbehave };
    return { code: refuse, reason: refuse === INVALID_ARGUMENT ? INVALID_HANDLE : CLOSE_REASONS[refuse] };
  }

  #misbehave(one: PointMisbehaviour | SetupMisbehaviour): void {
    switch (one.do) {
      case 'goAway':
        return this.#life.goAway(one);
      case 'close':
        return this.#life.closeBy(one);
      case 'mute':
        return this.#life.mute(one.forSeconds);
      case 'phantomInterrupted':
        return this.#send({ serverContent: { interrupted: true } });
      case 'leakText':
        return this.#send({ serverContent: { modelTurn: { parts: [{ text: one.text }] } } });
    }
  }

  /** Whether the input goes its usual way. */
  #passesBlock({ profile, turns }: Conversation): boolean {
    if (!turns.isBlocked || profile.inputWhileBlocked === 'waits') return true;
    if (profile.inputWhileBlocked === 'cancels') {
      turns.interrupt();
      return true;
    }
    const reason = 'Operation is not implemented, or supported, or enabled.';
    this.#close({ code: POLICY_VIOLATION, reason });
    return false;
  }

  #realtimeInput(conversation: Conversation, input: RealtimeInputFrame): void {
    conversation.isSeeding = false;
    if (input.activityEnd === undefined && !this.#passesBlock(conversation)) return;
    if (input.text !== undefined) return this.#typed(conversation, input.text);
    const refusal = conversation.ear.hear(input);
    if (refusal !== undefined) this.#close(refusal);
  }

  #clientContent(conversation: Conversation, content: ClientContentFrame): void {
    const refusal = contentRefusal(content, conversation.setup, conversation.profile);
    if (refusal !== undefined) return this.#close(refusal);
    const { turns = [], turnComplete = false } = content;
    if (conversation.isSeeding) {
      for (const turn of turns) this.#tokens.addText(textOfContent(turn));
      conversation.isSeeding = !turnComplete;
      return;
    }
    if (!this.#passesBlock(conversation)) return;
    const text = textOfContent(turns.findLast(({ role }) => role === undefined || role === 'user'));
    if (turnComplete) return this.#typed(conversation, text);
    // The real service stops speaking at once and waits for the rest before it answers.
    if (!conversation.turns.isBlocked) conversation.turns.interrupt();
    this.#typedText = `${this.#typedText} ${text}`.slice(-REHEARSAL_TEXT_MAX_CHARS);
  }

  #typed({ turns }: Conversation, text: string): void {
    const whole = `${this.#typedText} ${text}`.slice(-REHEARSAL_TEXT_MAX_CHARS);
    this.#typedText = '';
    this.#tokens.addText(whole);
    turns.typed(whole);
  }

  #contextUpdate(conversation: Conversation, update: NonNullable<ClientFrame['contextUpdate']>): void {
    this.#tokens.addText(textOfContent(update.systemInstruction));
    const tools = update.tools?.tools;
    if (tools !== undefined) conversation.functions = new FunctionDeclarations(tools, conversation.profile);
  }

  #functionResponse({ turns, profile }: Conversation, response: FunctionResponseFrame): void {
    if (turns.functionResponse(response) || profile.unknownToolResponse === 'ignored') return;
    this.#close({ code: POLICY_VIOLATION, reason: 'Requested entity was not found.' });
  }
}

/** Whether the setup's misbehaviour is for this connection of the dialogue. */
function concerns(setup: Dialogue['setup'], connection: number): boolean {
  if (setup === undefined) return false;
  const { from, connections = Infinity } = setup;
  return connection >= from && connection < from + connections;
}

function profileOf({ dialogue, takesAnySetup }: ChosenDialogue): ModelProfile {
  const stated = modelProfile(dialogue.profile);
  return takesAnySetup ? withAnySetup(stated) : stated;
}
