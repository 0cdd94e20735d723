/**
 * One client of the rehearsal service: answers its setup, listens for the ends of the caller's turns, and lets the
 * dialogue speak. It holds to the order of the Live protocol (`interrupted`, then `turnComplete`, no
 * `generationComplete`) and leaves sockets to the service.
 */
import type { Clock, Timer } from '../../clock.js';
import { errorText } from '../../errors.js';
import { REHEARSAL_SETUP_TIMEOUT_MS, REHEARSAL_TEXT_MAX_CHARS } from '../../limits.js';
import type { Log } from '../../observe/log.js';
import {
  type ClientFrame,
  type LiveSetupFrame,
  readClientFrame,
  type RealtimeInputFrame,
} from './client-frame.js';
import {
  DIALOGUE_START,
  type Dialogue,
  type DialogueEvent,
  type DialogueState,
  dialogueStep,
} from './dialogue.js';
import { ModelTurn } from './model-turn.js';
import { rehearsalVoice } from './rehearsal-voice.js';
import type { ResumptionHandles } from './resumption-handles.js';
import type { SeededRandom } from './seeded-random.js';
import type { SpeechSynthesizer, SpeechVoice } from './speech-synthesizer.js';
import { TurnDetector, type TurnListener } from './turn-detector.js';
import { TokenMeter } from './token-meter.js';

const TURN_START_MS = 120;
const TURN_SILENCE_MS = 650;
/** What a client may ask for with `silenceDurationMs` and `prefixPaddingMs`. */
const TURN_START_RANGE_MS = [20, 1_000] as const;
const TURN_SILENCE_RANGE_MS = [200, 5_000] as const;

const INVALID_FRAME = 1007;
const INTERNAL_ERROR = 1011;
const POLICY = 1008;

export interface RehearsalConnectionDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly dialogue: Dialogue;
  readonly synthesizer: SpeechSynthesizer;
  readonly random: SeededRandom;
  readonly handles: ResumptionHandles;
  readonly send: (message: object) => void;
  readonly bufferedAmount: () => number;
  /** Closes the socket; nothing is sent afterwards. */
  readonly close: (code: number, reason: string) => void;
}

export class RehearsalConnection implements TurnListener {
  readonly #deps: RehearsalConnectionDeps;
  readonly #tokens = new TokenMeter();
  #setup: LiveSetupFrame | undefined;
  #setupTimer: Timer | undefined;
  #voice: SpeechVoice = 'slt';
  #functionNames: ReadonlySet<string> = new Set();
  #detector: TurnDetector;
  #dialogueState: DialogueState = DIALOGUE_START;
  #turn: ModelTurn | undefined;
  /** The dialogue as it was before the turn that is being spoken. */
  #stateBeforeTurn: DialogueState = DIALOGUE_START;
  /** The caller's turn that is going on began by interrupting us. */
  #cutIn = false;
  /** With the client's own activity signals: when the caller's turn began. */
  #activityStartMs: number | undefined;
  #typedText = '';
  #functionCalls = 0;
  #closed = false;

  constructor(deps: RehearsalConnectionDeps) {
    this.#deps = deps;
    this.#detector = new TurnDetector({ startMs: TURN_START_MS, silenceMs: TURN_SILENCE_MS }, this);
    this.#setupTimer = deps.clock.setTimer(REHEARSAL_SETUP_TIMEOUT_MS, () =>
      this.#close(POLICY, 'Deadline expired before operation could complete.'),
    );
  }

  /** One frame from the client, text or binary alike. Never throws. */
  receive(json: string): void {
    if (this.#closed) return;
    try {
      const read = readClientFrame(json);
      if ('refusal' in read) this.#close(INVALID_FRAME, read.refusal);
      else this.#frame(read.frame);
    } catch (error) {
      this.#deps.log.error({ why: errorText(error) }, 'the rehearsal model failed on a message');
      this.#close(INTERNAL_ERROR, 'Internal error encountered.');
    }
  }

  /** The socket is gone: nothing is left running. Idempotent. */
  stop(): void {
    this.#closed = true;
    this.#setupTimer?.cancel();
    this.#turn?.cancel();
    this.#turn = undefined;
  }

  onTurnStart(): void {
    if (this.#setup?.realtimeInputConfig?.activityHandling === 'NO_INTERRUPTION') return;
    this.#cutIn = this.#interrupt();
  }

  onTurnEnd(voicedMs: number): void {
    if (this.#setup?.inputAudioTranscription !== undefined) {
      const text = `(speech, ${(voicedMs / 1_000).toFixed(1)} s)`;
      this.#deps.send({ serverContent: { inputTranscription: { text } } });
    }
    const cutIn = this.#cutIn;
    this.#cutIn = false;
    // We began to speak (or were told not to be interrupted) while the caller spoke: that was no turn to answer.
    if (this.#turn === undefined) this.#answer({ type: 'caller_finished', cutIn });
  }

  #close(code: number, reason: string): void {
    if (this.#closed) return;
    this.stop();
    this.#deps.close(code, reason);
  }

  #frame(frame: ClientFrame): void {
    if (frame.setup !== undefined) return this.#startSetup(frame.setup);
    if (this.#setup === undefined) return this.#close(INVALID_FRAME, 'The first message must be setup.');
    if (frame.realtimeInput !== undefined) return this.#realtimeInput(this.#setup, frame.realtimeInput);
    if (frame.clientContent !== undefined) return this.#clientContent(frame.clientContent);
    for (const { id } of frame.toolResponse?.functionResponses ?? []) this.#turn?.functionResponse(id);
  }

  #startSetup(setup: LiveSetupFrame): void {
    if (this.#setup !== undefined) return this.#close(INVALID_FRAME, 'Setup was already received.');
    const handle = setup.sessionResumption?.handle;
    if (handle !== undefined) {
      const resumed = this.#deps.handles.take(handle);
      if (resumed === undefined) return this.#close(INVALID_FRAME, 'Invalid session resumption handle.');
      this.#dialogueState = resumed;
    }
    this.#setupTimer?.cancel();
    this.#setup = setup;
    this.#voice = rehearsalVoice(
      setup.generationConfig?.speechConfig?.voiceConfig?.prebuiltVoiceConfig?.voiceName,
    );
    const declared = setup.tools?.flatMap((tool) => tool.functionDeclarations ?? []) ?? [];
    this.#functionNames = new Set(declared.map(({ name }) => name));
    const detection = setup.realtimeInputConfig?.automaticActivityDetection;
    this.#detector = new TurnDetector(
      {
        startMs: within(TURN_START_RANGE_MS, detection?.prefixPaddingMs ?? TURN_START_MS),
        silenceMs: within(TURN_SILENCE_RANGE_MS, detection?.silenceDurationMs ?? TURN_SILENCE_MS),
      },
      this,
    );
    const instruction = setup.systemInstruction?.parts?.map(({ text }) => text ?? '').join('') ?? '';
    this.#tokens.addText(instruction);
    this.#deps.log.info(
      { instructionChars: instruction.length, functions: declared.length, voice: this.#voice },
      'rehearsal conversation; the instruction is not followed',
    );
    this.#deps.send({ setupComplete: {} });
    this.#offerHandle();
  }

  #realtimeInput(setup: LiveSetupFrame, input: RealtimeInputFrame): void {
    const manual = setup.realtimeInputConfig?.automaticActivityDetection?.disabled === true;
    if (input.audio !== undefined) return this.#audio(input.audio, manual);
    if (input.text !== undefined) return this.#typed(input.text);
    if (input.activityStart !== undefined || input.activityEnd !== undefined) {
      if (!manual) {
        return this.#close(INVALID_FRAME, 'Explicit activity control needs automatic detection disabled.');
      }
      if (input.activityStart !== undefined) this.#activityStarted();
      if (input.activityEnd !== undefined) this.#activityEnded();
      return;
    }
    if (input.audioStreamEnd === true && !manual) this.#detector.flush();
  }

  #audio(audio: { mimeType: string; data: string }, manual: boolean): void {
    const rateHz = pcmRateHz(audio.mimeType);
    if (rateHz === undefined) return this.#close(INVALID_FRAME, 'Unsupported audio mime type.');
    const pcm = Buffer.from(audio.data, 'base64');
    this.#tokens.addHeard(pcm.length / 2 / rateHz);
    if (!manual) this.#detector.push(pcm, rateHz);
  }

  #activityStarted(): void {
    if (this.#activityStartMs !== undefined) return;
    this.#activityStartMs = this.#deps.clock.nowMs();
    this.onTurnStart();
  }

  #activityEnded(): void {
    if (this.#activityStartMs === undefined) return;
    const voicedMs = this.#deps.clock.nowMs() - this.#activityStartMs;
    this.#activityStartMs = undefined;
    this.onTurnEnd(voicedMs);
  }

  #clientContent({ turns = [], turnComplete = false }: NonNullable<ClientFrame['clientContent']>): void {
    const last = turns.findLast(({ role }) => role === undefined || role === 'user');
    const text = last?.parts?.map((part) => part.text ?? '').join(' ') ?? '';
    if (turnComplete) return this.#typed(text);
    // The real service stops speaking at once and waits for the rest before it answers.
    this.#interrupt();
    this.#typedText = `${this.#typedText} ${text}`.slice(-REHEARSAL_TEXT_MAX_CHARS);
  }

  #typed(text: string): void {
    const whole = `${this.#typedText} ${text}`.slice(-REHEARSAL_TEXT_MAX_CHARS);
    this.#typedText = '';
    this.#tokens.addText(whole);
    this.#interrupt();
    this.#answer({ type: 'text', text: whole });
  }

  /** Stops the turn that is generated or, by its estimate, still heard. Whether there was one. */
  #interrupt(): boolean {
    const turn = this.#turn;
    if (turn === undefined) return false;
    this.#turn = undefined;
    turn.cancel();
    // A turn of which nothing was said comes again; a key that was pressed stays pressed.
    if (!turn.spoke) {
      this.#dialogueState = { ...this.#stateBeforeTurn, digits: this.#dialogueState.digits };
    }
    this.#noteDisclosure(turn);
    if (turn.openCallId !== undefined) {
      this.#deps.send({ toolCallCancellation: { ids: [turn.openCallId] } });
    }
    this.#deps.send({ serverContent: { interrupted: true } });
    this.#completeTurn(turn.soundSentMs / 1_000);
    return turn.spoke;
  }

  #answer(event: DialogueEvent): void {
    const step = dialogueStep(this.#deps.dialogue, this.#dialogueState, event);
    if (step.reply === undefined) {
      this.#completeTurn(0);
      return;
    }
    this.#stateBeforeTurn = this.#dialogueState;
    this.#dialogueState = step.state;
    if (this.#setup?.sessionResumption !== undefined) {
      this.#deps.send({ sessionResumptionUpdate: { resumable: false } });
    }
    const turn: ModelTurn = new ModelTurn(
      {
        clock: this.#deps.clock,
        log: this.#deps.log,
        random: this.#deps.random,
        speak: (sentence) => this.#deps.synthesizer.speak(this.#voice, sentence),
        send: this.#deps.send,
        bufferedAmount: this.#deps.bufferedAmount,
        transcribe: this.#setup?.outputAudioTranscription !== undefined,
        isDeclared: (name) => this.#functionNames.has(name),
        newFunctionCallId: () => `function-call-${++this.#functionCalls}`,
        onHeard: () => {
          this.#turn = undefined;
          this.#noteDisclosure(turn);
          this.#completeTurn(turn.soundSentMs / 1_000);
        },
      },
      step.reply,
      step.disclosure,
    );
    this.#turn = turn;
  }

  /** A disclosure that was cut off comes again in front of the next answer. */
  #noteDisclosure(turn: ModelTurn): void {
    if (turn.disclosureHeard) this.#dialogueState = { ...this.#dialogueState, disclosed: true };
  }

  #completeTurn(spokenSeconds: number): void {
    this.#deps.send({
      serverContent: { turnComplete: true },
      usageMetadata: this.#tokens.usageOfTurn(spokenSeconds),
    });
    this.#offerHandle();
  }

  #offerHandle(): void {
    if (this.#setup?.sessionResumption === undefined) return;
    const newHandle = this.#deps.handles.offer(this.#dialogueState);
    this.#deps.send({ sessionResumptionUpdate: { newHandle, resumable: true } });
  }
}

function within([least, most]: readonly [number, number], value: number): number {
  return Math.min(most, Math.max(least, value));
}

/** The rate of `audio/pcm;rate=16000`; Gemini takes 16 kHz where none is stated. */
function pcmRateHz(mimeType: string): number | undefined {
  const rate = /^audio\/pcm(?:\s*;\s*rate=(\d{4,6}))?$/i.exec(mimeType.trim());
  if (rate === null) return undefined;
  const rateHz = Number(rate[1] ?? 16_000);
  return rateHz >= 8_000 && rateHz <= 48_000 ? rateHz : undefined;
}
