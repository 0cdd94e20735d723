/**
 * A whole call on a virtual clock: the real registry, call, conversation and audio path between a fake carrier socket,
 * whose caller hears what a carrier would play, and a scripted model. For tests in test/calls/.
 */
import { defineAgent, type Agent } from '../../src/agent/agent.js';
import { nextTurn } from '../../src/clock.js';
import { CallRegistry } from '../../src/call/call-registry.js';
import type { CallDeps } from '../../src/call/call-deps.js';
import { loadPrompts, PROMPT_TEXTS } from '../../src/call/prompts.js';
import type { CallView } from '../../src/console/call-view.js';
import { CALL_TAKE_UP_MAX_MS } from '../../src/handover-limits.js';
import { parseCallSid, parseStreamSid, type CallSid } from '../../src/ids.js';
import type {
  FunctionResponse,
  LiveConnection,
  LiveListener,
  LiveSetup,
} from '../../src/model/live-connection.js';
import { ModelConnectError } from '../../src/model/gemini-connect-error.js';
import { modelCapabilities } from '../../src/model/model-capabilities.js';
import type { CallObserver } from '../../src/observe/call-observer.js';
import type { RunObserver } from '../../src/observe/run-observer.js';
import { silentLog } from '../../src/observe/log.js';
import type { HangUpOutcome } from '../../src/telephony/call-control.js';
import type { MediaStream, MediaStreamListener } from '../../src/telephony/media-stream.js';
import type { CallStatus, VoiceAnswer } from '../../src/telephony/voice-door.js';
import { bareTools } from './bare-tools.js';
import { CarrierEar } from './carrier-ear.js';
import { entering, SOME_REQUEST } from './scopes.js';
import type { SharedCalls } from './shared-calls.js';
import { VirtualClock } from '../../src/replay/virtual-clock.js';
import { RunMetrics } from '../../src/run/run-metrics.js';

export const FRAME = new Uint8Array(160).fill(0xff);
/** Sixteen words for the agent to say. */
export const ANSWER =
  'one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen';
/** What `CallRegistry.counts` says when every call is over. */
export const NOTHING_LEFT = {
  calls: 0,
  streams: 0,
  models: 0,
  connecting: 0,
  timers: 0,
  functionCalls: 0,
  updates: 0,
};
/** What the model calls when it wants to hang up. */
export const END_CALL = [{ id: 'c1', name: 'end_call', args: {} }];
/** Speech for the caller's mouth: a recorded clip of ours. */
const SPEECH = loadPrompts().apology;

/** 24 kHz PCM16 of a 500 Hz tone. */
export function tone(ms: number): Uint8Array {
  const samples = new Int16Array(ms * 24);
  for (let at = 0; at < samples.length; at += 1)
    samples[at] = 8000 * Math.sin((2 * Math.PI * 500 * at) / 24_000);
  return new Uint8Array(samples.buffer);
}

export class FakeModel implements LiveConnection {
  readonly modelName = 'gemini-3.8-live';
  readonly capabilities = modelCapabilities('gemini-3.8-live');
  bufferedAmount = 0;
  readonly texts: string[] = [];
  readonly images: { mimeType: string; bytes: number }[] = [];
  readonly responses: FunctionResponse[] = [];
  audioBytes = 0;
  audioMessages = 0;
  closed = false;
  /** Its close handshake takes a second. */
  closesSlowly = false;
  readonly #clock: VirtualClock | undefined;

  constructor(
    readonly setup: LiveSetup,
    readonly listener: LiveListener,
    clock?: VirtualClock,
  ) {
    this.#clock = clock;
  }

  sendAudio(pcm16k: Uint8Array): void {
    this.audioBytes += pcm16k.length;
    this.audioMessages += 1;
  }
  sendImage(mimeType: string, image: Uint8Array): boolean {
    this.images.push({ mimeType, bytes: image.length });
    return true;
  }
  sendText(text: string): void {
    this.texts.push(text);
  }
  sendToolResponse(functionResponses: readonly FunctionResponse[]): void {
    this.responses.push(...functionResponses);
  }
  close(): void {
    if (this.closed) return;
    this.closed = true;
    const isClosed = (): void => this.listener.onClose({ code: 1000, reason: '', local: true });
    if (this.closesSlowly) this.#clock?.setTimer(1_000, isClosed);
    else isClosed();
  }

  /** Says something at once, faster than real time: sound with its words, in pieces of 500 ms. */
  say(words: string, ms: number, end: { generationComplete?: boolean; turnComplete?: boolean } = {}): void {
    const pieces = Math.max(1, Math.round(ms / 500));
    const split = words.match(/\S+\s*/g) ?? [words];
    for (let piece = 0; piece < pieces; piece += 1) {
      this.listener.onAudio(tone(ms / pieces));
      const from = Math.floor((piece * split.length) / pieces);
      const to = Math.floor(((piece + 1) * split.length) / pieces);
      if (to > from) this.listener.onOutputTranscription(split.slice(from, to).join(''));
    }
    if (end.generationComplete !== false) this.listener.onGenerationComplete();
    if (end.turnComplete !== false) this.listener.onTurnComplete(undefined);
  }

  /** The server's side goes away. */
  lose(code = 1011): void {
    this.closed = true;
    this.listener.onClose({ code, reason: 'internal error', local: false });
  }
}

export class FakeStream implements MediaStream {
  readonly streamSid;
  bufferedAmount = 0;
  readonly sent: string[] = [];
  readonly ear: CarrierEar;
  listener: MediaStreamListener | undefined;
  closed = false;
  /** A carrier that plays sound and never says so, when false. */
  returnsMarks = true;
  /** What the carrier does after we close: tells the listener, at once. */
  readonly #clock: VirtualClock;

  constructor(
    readonly callSid: CallSid,
    clock: VirtualClock,
    id: number,
  ) {
    this.#clock = clock;
    this.streamSid = parseStreamSid(`MZ${id}`)!;
    this.ear = new CarrierEar({
      clock,
      onMark: (name) => {
        if (this.returnsMarks) this.listener?.onMark(name);
      },
    });
  }

  sendMedia(mulaw: Uint8Array, markName?: string): void {
    if (this.closed) return;
    this.sent.push('media');
    this.ear.media(mulaw);
    if (markName !== undefined) this.sendMark(markName);
  }
  sendMark(name: string): void {
    if (this.closed) return;
    this.sent.push('mark');
    this.ear.mark(name);
  }
  sendClear(): void {
    if (this.closed) return;
    this.sent.push('clear');
    this.ear.clear();
  }
  cork(): void {}
  uncork(): void {}
  close(): void {
    this.#end(1000);
  }
  terminate(): void {
    this.#end(1006);
  }
  /** The carrier's side vanishes without `stop`. */
  lose(): void {
    this.#end(1006);
  }

  #end(code: number): void {
    if (this.closed) return;
    this.closed = true;
    this.ear.hangUp();
    this.#clock.setTimer(0, () => this.listener?.onClose(code, ''));
  }
}

export interface RigOptions {
  /** At 1,000,000 ms. */
  readonly clock?: VirtualClock;
  readonly agent?: Agent;
  readonly deps?: Partial<CallDeps>;
  readonly callsMax?: number;
  /** The calls of all servers that share a store. */
  readonly shared?: SharedCalls;
  /** How the model answers a connect: ready at once (default), after some time, or not at all. */
  readonly modelReadyMs?: number | 'never' | 'fails';
  readonly hangUp?: HangUpOutcome;
  /** What the carrier does when it is to connect a caller with a human; without it there is none. */
  readonly transfer?: HangUpOutcome;
}

export class CallRig {
  readonly clock: VirtualClock;
  readonly observed: [name: string, ...args: unknown[]][] = [];
  readonly models: FakeModel[] = [];
  readonly streams: FakeStream[] = [];
  readonly hungUp: CallSid[] = [];
  readonly transferred: CallSid[] = [];
  readonly calls: CallRegistry;
  /** How the model answers the connects to come. */
  modelReadyMs: number | 'never' | 'fails';
  /** Sessions are not resumed: a handle is refused as the model's server refuses it. */
  refuseHandles = false;
  /** Every connect that was tried. */
  readonly connects: LiveSetup[] = [];
  /** The event loop is too late. */
  isOverloaded = false;
  #count = 0;

  constructor(options: RigOptions = {}) {
    this.clock = options.clock ?? new VirtualClock(1_000_000);
    const observer = new Proxy({} as CallObserver & RunObserver, {
      get:
        (_target, name) =>
        (...args: unknown[]) =>
          void this.observed.push([String(name), ...args]),
    });
    const agent =
      options.agent ??
      defineAgent({ name: 'support', instruction: 'Be brief.', greeting: 'Hello, how can I help?' });
    const tools = bareTools(this.clock);
    this.modelReadyMs = options.modelReadyMs ?? 0;
    this.calls = new CallRegistry({
      agents: {
        default: agent,
        find: (name) => (name === agent.name ? agent : undefined),
        named: (name) => (name === agent.name ? agent : undefined),
        names: [agent.name],
      },
      callsMax: options.callsMax ?? 1_000,
      kept: options.shared?.open(this.clock),
      overloaded: () => this.isOverloaded,
      deps: {
        clock: this.clock,
        log: silentLog,
        observer,
        connectLive: (setup, listener, signal, { clock }) =>
          this.#connect(setup, entering(listener, clock), signal, this.modelReadyMs),
        callControl: {
          whyNoTransfer: options.transfer === undefined ? 'Nobody is there.' : undefined,
          transfer: async (callSid) => {
            this.transferred.push(callSid);
            return options.transfer ?? { kind: 'unavailable' };
          },
          hangUp: async (callSid) => {
            this.hungUp.push(callSid);
            return options.hangUp ?? { kind: 'done' };
          },
        },
        openTools: (run) => tools.open(run),
        prompts: loadPrompts(),
        callMaxMs: 30 * 60_000,
        idleRepromptMs: 15_000,
        greetingProtectionMs: 0,
        ...options.deps,
        openRun: (call, run, history) => {
          const metrics = new RunMetrics({ run, observer });
          run.listen((item) => metrics.hear(item));
          options.deps?.openRun?.(call, run, history);
        },
      },
    });
  }

  /** A new call's webhook. */
  ring(
    callSid = `CA${(this.#count += 1)}`,
    from = '+15550100001',
  ): { callSid: CallSid; answer: VoiceAnswer } {
    const sid = parseCallSid(callSid)!;
    const answer = this.calls.onVoice({
      callSid: sid,
      accountSid: 'AC1',
      from,
      to: '+15550100002',
      direction: 'inbound',
      stirVerstat: undefined,
      agentName: undefined,
      request: SOME_REQUEST,
    });
    return { callSid: sid, answer };
  }

  /** Opens the media stream that an answer asks for. */
  open(callSid: CallSid, answer: VoiceAnswer): FakeStream {
    const stream = new FakeStream(callSid, this.clock, this.streams.length + 1);
    this.streams.push(stream);
    const token = answer.kind === 'stream' ? answer.token : '';
    const accepted = this.calls.acceptStream(
      { callSid, streamSid: stream.streamSid, accountSid: 'AC1', customParameters: { token } },
      stream,
      [],
    );
    if ('refused' in accepted) throw new Error(`refused: ${accepted.refused}`);
    stream.listener = entering(accepted.listener, accepted.scope.clock);
    return stream;
  }

  /** The carrier asks what follows the stream. */
  after(callSid: CallSid): VoiceAnswer {
    const answer = this.calls.onAfter(callSid, SOME_REQUEST);
    if (answer instanceof Promise) throw new Error('only a call of another server is answered later');
    return answer;
  }

  /** The same for a call that another server may have had; its time passes while it is looked up. */
  async afterElsewhere(callSid: CallSid): Promise<VoiceAnswer> {
    const answer = Promise.resolve(this.calls.onAfter(callSid, SOME_REQUEST));
    await this.advance(CALL_TAKE_UP_MAX_MS + 100);
    return answer;
  }

  /** The carrier's word on the call's status. */
  status(callSid: CallSid, status: CallStatus): void {
    this.calls.onStatus(callSid, status, SOME_REQUEST);
  }

  /** The stream that the carrier asks for at `/twilio/after`, when the one before was lost. */
  reopen(callSid: CallSid): FakeStream {
    return this.open(callSid, this.after(callSid));
  }

  /** A call with both ends up. The promise of the connect is awaited. */
  async call(): Promise<{ callSid: CallSid; stream: FakeStream; model: FakeModel }> {
    const { callSid, answer } = this.ring();
    await this.settle();
    const stream = this.open(callSid, answer);
    await this.settle();
    return { callSid, stream, model: this.models.at(-1)! };
  }

  /** A live call whose greeting has been said and heard. */
  async greeted(): Promise<{ callSid: CallSid; stream: FakeStream; model: FakeModel }> {
    const call = await this.call();
    call.model.say('Hello, how can I help?', 1_000);
    await this.advance(1_500);
    return call;
  }

  /** The caller speaks for so long, in real time. */
  async speak(stream: FakeStream, ms: number): Promise<void> {
    for (let at = 0; at < ms; at += 20) {
      const from = (at * 8) % (SPEECH.length - 160);
      await this.frames(stream, 20, SPEECH.subarray(from, from + 160));
    }
  }

  /** The caller is silent for so long, in real time, with frames coming. */
  async frames(stream: FakeStream, ms: number, frame: Uint8Array = FRAME): Promise<void> {
    for (let at = 0; at < ms; at += 20) {
      stream.listener?.onMedia(frame, Math.round(this.clock.nowMs() - 1_000_000));
      await this.advance(20);
    }
  }

  async advance(ms: number): Promise<void> {
    for (let left = ms; left > 0; left -= 20) {
      this.clock.advance(Math.min(20, left));
      await this.settle();
    }
  }

  /** Lets promises that are due resolve. */
  async settle(): Promise<void> {
    for (let turn = 0; turn < 6; turn += 1) await Promise.resolve();
  }

  /** Lets what tools do by promises and turns of the loop be done. */
  async turns(): Promise<void> {
    for (let turn = 0; turn < 6; turn += 1) await nextTurn();
  }

  view(callSid: CallSid): CallView {
    return this.calls.find(callSid)!;
  }

  /** The transcript, a line a message; that the caller was asked to wait is left out. */
  said(callSid: CallSid): string[] {
    return this.view(callSid)
      .messages.map(({ role, text }) => `${role}: ${text}`)
      .filter((line) => line !== `model: ${PROMPT_TEXTS.hold}`);
  }

  /** The model is lost for good: no connect succeeds any more. */
  loseModel(model: FakeModel, code?: number): void {
    this.modelReadyMs = 'fails';
    model.lose(code);
  }

  /** What was observed by that name, in order. */
  seen(name: keyof CallObserver | keyof RunObserver): unknown[][] {
    return this.observed.filter(([seen]) => seen === name).map(([, ...args]) => args);
  }

  #connect(
    setup: LiveSetup,
    listener: LiveListener,
    signal: AbortSignal,
    readyMs: number | 'never' | 'fails',
  ): Promise<LiveConnection> {
    const model = new FakeModel(setup, listener, this.clock);
    this.connects.push(setup);
    return new Promise((resolve, reject) => {
      signal.addEventListener('abort', () => reject(new Error('aborted')));
      if (this.refuseHandles && setup.resumptionHandle !== undefined)
        return reject(new ModelConnectError('model_setup_refused', 'no such session'));
      if (readyMs === 'fails') return reject(new Error('unreachable'));
      if (readyMs === 'never') return undefined;
      const ready = (): void => {
        if (signal.aborted) return;
        this.models.push(model);
        resolve(model);
      };
      if (readyMs === 0) ready();
      else this.clock.setTimer(readyMs, ready);
      return undefined;
    });
  }
}
