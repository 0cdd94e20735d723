/**
 * Who speaks when: the dialogue's answers, one turn at a time, cut off by the caller, followed by what waited, and by
 * silence. It holds to the order of the Live protocol (`interrupted`, then `turnComplete`, no `generationComplete`) and
 * tells when the conversation can be resumed.
 */
import type { Clock, Timer } from '../../clock.js';
import { REHEARSAL_CALL_CHAIN_MAX, REHEARSAL_WAITING_MAX } from './rehearsal-limits.js';
import type { Log } from '../../observe/log.js';
import { type FunctionResponseFrame, type LiveSetupFrame, textOfContent } from './client-frame.js';
import type { Dialogue, DialogueCall } from './dialogue.js';
import {
  DIALOGUE_START,
  type DialogueEvent,
  type DialogueState,
  type DialogueStep,
  dialogueStep,
  heardWords,
  silenceWaitMs,
} from './dialogue-step.js';
import type { FunctionDeclarations } from './function-declarations.js';
import type { Chaos, Misbehaviour, PointMisbehaviour } from './misbehaviour.js';
import type { ModelProfile } from './model-profile.js';
import { ModelTurn } from './model-turn.js';
import { type OpenCall, OpenCalls } from './open-calls.js';
import { hasPast, rememberedFacts, wasSaidBefore } from './remembered-facts.js';
import type { SeededRandom } from './seeded-random.js';
import { withoutNote } from './server-words.js';
import { writtenCalls } from './text-generation-calls.js';
import type { TokenMeter } from './token-meter.js';
import type { TurnListener } from './turn-detector.js';

/** Transcription comes in fragments that know nothing of words. */
const FRAGMENT = /.{1,9}/gsu;

export interface TurnTakingDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly random: SeededRandom;
  readonly dialogue: Dialogue;
  /** Where the dialogue stands, for a conversation that is resumed. */
  readonly state: DialogueState | undefined;
  readonly profile: ModelProfile;
  readonly setup: LiveSetupFrame;
  readonly chaos: Chaos | undefined;
  readonly tokens: TokenMeter;
  readonly functions: () => FunctionDeclarations;
  readonly callerSpeaks: () => boolean;
  readonly speak: (sentence: string) => Promise<Int16Array>;
  readonly bufferedAmount: () => number;
  readonly send: (message: object) => void;
  readonly misbehave: (misbehaviour: PointMisbehaviour) => void;
  /** Counts the client's messages from 0, which is its setup. */
  readonly lastConsumedIndex: () => number;
  /** Keeps a state and tells its handle. */
  readonly offerHandle: (state: DialogueState) => string;
}

/** An event that waits until the rehearsal has finished speaking. */
interface Waiting {
  readonly event: DialogueEvent;
  /** How many results of functions led to it. */
  readonly depth: number;
}

export class TurnTaking implements TurnListener {
  readonly #deps: TurnTakingDeps;
  readonly #openCalls: OpenCalls;
  readonly #waiting: Waiting[] = [];
  readonly #begunMs: number;
  /** The conversation began on an earlier connection. */
  readonly #goesOn: boolean;
  /** What is to go wrong once, and did. */
  readonly #wentWrong = new Set<Misbehaviour>();
  #silenceTimer: Timer | undefined;
  #state: DialogueState;
  #turn: ModelTurn | undefined;
  /** The dialogue as it was before the turn that is being spoken. */
  #stateBeforeTurn: DialogueState;
  /** The caller's turn that is going on began by interrupting us. */
  #cutIn = false;
  #isStopped = false;

  constructor(deps: TurnTakingDeps) {
    this.#deps = deps;
    this.#begunMs = deps.clock.nowMs();
    const instruction = textOfContent(deps.setup.systemInstruction);
    const fresh = {
      ...DIALOGUE_START,
      disclosed: wasSaidBefore(instruction, deps.dialogue.disclosure),
    };
    this.#state = { ...(deps.state ?? fresh), remembered: rememberedFacts(instruction) };
    this.#goesOn = deps.state !== undefined || hasPast(instruction);
    this.#stateBeforeTurn = this.#state;
    this.#openCalls = new OpenCalls(deps.clock, (call) => this.#callForgotten(call));
  }

  /** The model waits in silence for a function's result. */
  get isBlocked(): boolean {
    return this.#turn !== undefined && this.#openCalls.anyBlocks;
  }

  /** The conversation may begin. */
  begin(): void {
    this.#becomeIdle();
  }

  /** Nothing is left running. Idempotent. */
  stop(): void {
    this.#isStopped = true;
    this.#silenceTimer?.cancel();
    this.#turn?.cancel();
    this.#turn = undefined;
    this.#waiting.length = 0;
  }

  onTurnStart(): void {
    this.#signalVoice('START');
    this.#silenceTimer?.cancel();
    const { setup, profile } = this.#deps;
    if (setup.realtimeInputConfig?.activityHandling === 'NO_INTERRUPTION') return;
    if (this.isBlocked && profile.inputWhileBlocked === 'waits') return;
    this.#cutIn = this.interrupt();
  }

  onTurnEnd(voicedMs: number): void {
    this.#signalVoice('END');
    const { setup, dialogue } = this.#deps;
    const cutIn = this.#cutIn;
    this.#cutIn = false;
    const isAnswered = this.#turn === undefined;
    if (setup.inputAudioTranscription !== undefined) {
      const written = cutIn || !isAnswered ? undefined : heardWords(dialogue, this.#state);
      const fragments = written?.match(FRAGMENT) ?? [`(speech, ${(voicedMs / 1_000).toFixed(1)} s)`];
      for (const text of fragments) this.#deps.send({ serverContent: { inputTranscription: { text } } });
    }
    // We began to speak (or were told not to be interrupted) while the caller spoke: that was no turn to answer.
    if (isAnswered) this.#answer({ type: 'caller_finished', cutIn });
    else if (this.isBlocked) this.#wait({ event: { type: 'caller_finished', cutIn: false }, depth: 0 });
  }

  /** Both forms that the service has for it. */
  #signalVoice(edge: 'START' | 'END'): void {
    const { setup, clock, send } = this.#deps;
    if (setup.explicitVadSignal !== true) return;
    const audioOffset = `${((clock.nowMs() - this.#begunMs) / 1_000).toFixed(3)}s`;
    send({ voiceActivity: { voiceActivityType: `ACTIVITY_${edge}`, audioOffset } });
    const vadSignalType = edge === 'START' ? 'VAD_SIGNAL_TYPE_SOS' : 'VAD_SIGNAL_TYPE_EOS';
    send({ voiceActivityDetectionSignal: { vadSignalType } });
  }

  /** Typed text is answered at once; where a function blocks, after it. */
  typed(text: string): void {
    const event = { type: 'text', text } as const;
    if (this.isBlocked) return this.#wait({ event, depth: 0 });
    this.interrupt();
    this.#answer(event);
  }

  /** Whether there was a call that could be answered. */
  functionResponse(frame: FunctionResponseFrame): boolean {
    const call = this.#openCalls.get(frame.id);
    if (call === undefined) return false;
    const { response = {}, scheduling } = frame;
    const partial = frame.willContinue === true && !call.blocking;
    if (!partial) this.#openCalls.forget(call.id);
    this.#deps.tokens.addResult(JSON.stringify(response));
    const isSilent = scheduling === 'SILENT' && !call.blocking;
    const event = { type: 'result', result: { call: call.wish, response, partial } } as const;
    const depth = call.depth + 1;
    if (this.#turn?.awaits(call.id) === true) {
      // What comes in parts is spoken about when it is whole.
      if (partial) return true;
      const { reply } = dialogueStep(this.#deps.dialogue, this.#state, event);
      this.#turn.functionAnswered(call.id, isSilent ? undefined : reply, depth);
    } else if (isSilent) {
      this.#becomeIdle();
    } else if (scheduling === 'INTERRUPT') {
      this.#speakNow({ event, depth });
    } else {
      this.#wait({ event, depth });
      this.#becomeIdle();
    }
    return true;
  }

  /** A turn that waits for the call goes on as if there were nothing to say about its result. */
  #callForgotten({ id, wish, depth }: OpenCall): void {
    this.#deps.log.warn({ id, function: wish.name }, 'the rehearsal forgets a call that was not answered');
    this.#turn?.functionAnswered(id, undefined, depth);
  }

  /** Cuts off our own speech, and the caller only where the model does so. */
  #speakNow(waiting: Waiting): void {
    const { callerSpeaks, profile } = this.#deps;
    const waits = callerSpeaks() && profile.interruptWhileCallerSpeaks === 'waits';
    if (waits) return this.#wait(waiting);
    this.interrupt({ cancelsCalls: false });
    this.#answer(waiting.event, waiting.depth);
  }

  #wait(waiting: Waiting): void {
    this.#waiting.push(waiting);
    if (this.#waiting.length <= REHEARSAL_WAITING_MAX) return;
    this.#waiting.shift();
    this.#deps.log.warn({}, 'too much waits for the rehearsal to finish speaking; the oldest is forgotten');
  }

  /** Nothing is being said: what waited is answered, else the state can be resumed and silence begins. */
  #becomeIdle(): void {
    while (this.#turn === undefined && !this.#deps.callerSpeaks()) {
      const next = this.#waiting.shift();
      if (next === undefined) break;
      this.#answer(next.event, next.depth);
    }
    if (this.#turn !== undefined) return;
    this.#offerHandle();
    this.#watchSilence();
  }

  #watchSilence(): void {
    this.#silenceTimer?.cancel();
    const waitMs = silenceWaitMs(this.#deps.dialogue, this.#state);
    if (waitMs === undefined || this.#isStopped) return;
    this.#silenceTimer = this.#deps.clock.setTimer(waitMs, () => {
      const isBusy = this.#deps.callerSpeaks() || this.#openCalls.count > 0;
      if (isBusy) this.#watchSilence();
      else if (this.#turn === undefined) this.#answer({ type: 'silence' });
    });
  }

  /** Stops the turn that is generated or, by its estimate, still heard. Whether something of one had been said. */
  interrupt({ cancelsCalls = true } = {}): boolean {
    const turn = this.#turn;
    if (turn === undefined) return false;
    this.#turn = undefined;
    turn.cancel();
    // A turn of which nothing was said comes again; a key that was pressed stays pressed.
    if (turn.isLost) {
      this.#state = { ...this.#stateBeforeTurn, digits: this.#state.digits };
    }
    this.#noteDisclosure(turn);
    const ids = cancelsCalls ? this.#openCalls.cancelAll() : [];
    if (ids.length > 0) this.#deps.send({ toolCallCancellation: { ids } });
    this.#deps.send({ serverContent: { interrupted: true } });
    // Where the completion went along with the last sound, it is not sent twice.
    if (!turn.isCompleted) this.#completeTurn(this.#idleContent, turn.soundSentMs);
    this.#offerHandle();
    turn.wasInterrupted();
    return turn.spoke;
  }

  #answer(event: DialogueEvent, depth = 0): void {
    if (this.#isStopped) return;
    this.#silenceTimer?.cancel();
    const step = this.#stepTo(event);
    if (step.reply === undefined) {
      this.#state = step.state;
      // A result that nobody speaks about is no turn.
      if (event.type === 'result') return;
      this.#completeTurn(this.#idleContent, 0);
      return this.#becomeIdle();
    }
    this.#stateBeforeTurn = this.#state;
    this.#state = step.state;
    const misbehave = [
      ...step.reply.misbehave.filter((one) => this.#happens(one)),
      ...(this.#deps.chaos?.draw() ?? []),
    ];
    this.#sendNotResumable();
    const turn: ModelTurn = new ModelTurn(
      {
        clock: this.#deps.clock,
        log: this.#deps.log,
        random: this.#deps.random,
        profile: this.#deps.profile,
        tokens: this.#deps.tokens,
        speak: this.#deps.speak,
        sendContent: (serverContent) => this.#deps.send({ serverContent }),
        sendMessage: (message) => this.#deps.send(message),
        bufferedAmount: this.#deps.bufferedAmount,
        transcribe: this.#deps.setup.outputAudioTranscription !== undefined,
        openCalls: (wishes, callDepth) => this.#openFunctions(wishes, callDepth),
        sendCalls: (calls) => this.#sendCalls(calls),
        onUnanswered: (id) => this.#openCalls.forget(id),
        misbehave: (one) => this.#deps.misbehave(one),
        completeTurn: (content) => this.#completeTurn(content, turn.soundSentMs),
        onOver: () => {
          this.#turn = undefined;
          this.#noteDisclosure(turn);
          this.#becomeIdle();
        },
      },
      { ...step.reply, misbehave },
      { disclosure: step.disclosure ?? '', depth },
    );
    this.#turn = turn;
  }

  #happens(one: Misbehaviour): boolean {
    if (one.once !== true) return true;
    if (this.#goesOn || this.#wentWrong.has(one)) return false;
    this.#wentWrong.add(one);
    return true;
  }

  /** What the dialogue says; where it has no rule for a text in which functions are written out, those are called. */
  #stepTo(event: DialogueEvent): DialogueStep {
    const step = dialogueStep(this.#deps.dialogue, this.#state, event);
    if (event.type !== 'text' || !step.isOther) return step;
    const functions = this.#deps.functions();
    const written = writtenCalls((name) => functions.has(name), withoutNote(event.text.trim()));
    if (written === undefined) return step;
    const calls = written.map(({ name, args }): DialogueCall => {
      const said = { at: 'end', thenSay: '{result}', ifError: '{result}' } as const;
      return args === undefined ? { name, args: {}, ...said } : { name, args, ...said, isVerbatim: true };
    });
    return { ...step, reply: { say: '', thought: undefined, calls, misbehave: [], messages: [] } };
  }

  #openFunctions(wishes: readonly DialogueCall[], depth: number): OpenCall[] {
    const functions = this.#deps.functions();
    const declared = wishes.filter(({ name }) => functions.has(name));
    if (declared.length === 0) return [];
    if (depth >= REHEARSAL_CALL_CHAIN_MAX) {
      this.#deps.log.warn({ depth }, 'the rehearsal calls functions in a circle and stops');
      return [];
    }
    return declared.map((wish) => this.#openCalls.open(wish, functions.blocks(wish.name), depth));
  }

  #sendCalls(calls: readonly OpenCall[]): void {
    const functions = this.#deps.functions();
    const functionCalls = calls.map(({ id, wish }) => ({
      id,
      name: wish.name,
      args: wish.isVerbatim === true ? wish.args : functions.argsFor(wish.name, wish.args),
    }));
    this.#deps.send({ toolCall: { functionCalls } });
  }

  /** A disclosure that was cut off comes again in front of the next answer. */
  #noteDisclosure(turn: ModelTurn): void {
    if (turn.disclosureHeard) this.#state = { ...this.#state, disclosed: true };
  }

  #completeTurn(content: object, spokenMs: number): void {
    const serverContent = { ...content, turnComplete: true };
    const usageMetadata = this.#deps.tokens.usageOfTurn(spokenMs / 1_000);
    if (this.#deps.profile.messages === 'single') {
      this.#deps.send({ serverContent });
      this.#deps.send({ usageMetadata });
    } else {
      this.#deps.send({ serverContent, usageMetadata });
    }
  }

  #sendNotResumable(): void {
    this.#sendResumption({ newHandle: '', resumable: false });
  }

  /** A client that resumes transparently is told which of its messages the handle holds. */
  #sendResumption(update: { newHandle: string; resumable: boolean }): void {
    const { setup, lastConsumedIndex, send } = this.#deps;
    if (setup.sessionResumption === undefined) return;
    const index = { lastConsumedClientMessageIndex: String(lastConsumedIndex()) };
    const isTransparent = setup.sessionResumption.transparent === true;
    send({ sessionResumptionUpdate: isTransparent ? { ...update, ...index } : update });
  }

  /** Of an idle conversation; while a function runs it cannot be resumed without loss. */
  #offerHandle(): void {
    if (this.#deps.setup.sessionResumption === undefined || this.#isStopped) return;
    const isNeverGiven = this.#deps.dialogue.resumption?.handles === false;
    if (isNeverGiven || this.#openCalls.count > 0) return this.#sendNotResumable();
    const newHandle = this.#deps.offerHandle(this.#state);
    this.#sendResumption({ newHandle, resumable: true });
  }

  /** What goes with a `turnComplete` after which nothing more comes. */
  get #idleContent(): object {
    return this.#deps.profile.interactionStatus ? { interactionStatus: 'IDLE' } : {};
  }
}
