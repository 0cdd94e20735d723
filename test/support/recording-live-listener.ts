/**
 * A LiveListener that writes down what it hears, in order, for tests to compare and to wait for.
 */
import type {
  FunctionCall,
  LiveClose,
  LiveListener,
  UsageMetadata,
} from '../../src/model/live-connection.js';

export type HeardEvent =
  | { readonly kind: 'interrupted' | 'generationComplete' }
  | { readonly kind: 'audio'; readonly pcm: Buffer }
  | { readonly kind: 'inputTranscription' | 'outputTranscription'; readonly text: string }
  | { readonly kind: 'turnComplete'; readonly reason: string | undefined }
  | { readonly kind: 'toolCall'; readonly functionCalls: readonly FunctionCall[] }
  | { readonly kind: 'toolCallCancellation'; readonly ids: readonly string[] }
  | { readonly kind: 'goAway'; readonly timeLeftMs: number }
  | { readonly kind: 'resumption'; readonly newHandle: string | undefined; readonly resumable: boolean }
  | { readonly kind: 'usage'; readonly usage: UsageMetadata }
  | { readonly kind: 'close'; readonly close: LiveClose };

export class RecordingLiveListener implements LiveListener {
  readonly events: HeardEvent[] = [];
  /** Called with every event once it is written down; may throw. */
  onEvent: (event: HeardEvent) => void = () => {};
  readonly #waiting = new Set<{ isMet: () => boolean; resolve: () => void }>();

  get kinds(): string[] {
    return this.events.map(({ kind }) => kind);
  }

  /** All sound heard, in one piece. */
  get audio(): Buffer {
    return Buffer.concat(this.events.flatMap((event) => (event.kind === 'audio' ? [event.pcm] : [])));
  }

  get closes(): LiveClose[] {
    return this.events.flatMap((event) => (event.kind === 'close' ? [event.close] : []));
  }

  /** Resolves once an event of this kind was heard, `times` times. */
  waitFor(kind: HeardEvent['kind'], times = 1): Promise<void> {
    const isMet = (): boolean => this.events.filter((event) => event.kind === kind).length >= times;
    if (isMet()) return Promise.resolve();
    return new Promise((resolve) => {
      this.#waiting.add({ isMet, resolve });
    });
  }

  onInterrupted(): void {
    this.#hear({ kind: 'interrupted' });
  }

  onAudio(pcm: Uint8Array): void {
    this.#hear({ kind: 'audio', pcm: Buffer.from(pcm) });
  }

  onInputTranscription(text: string): void {
    this.#hear({ kind: 'inputTranscription', text });
  }

  onOutputTranscription(text: string): void {
    this.#hear({ kind: 'outputTranscription', text });
  }

  onGenerationComplete(): void {
    this.#hear({ kind: 'generationComplete' });
  }

  onTurnComplete(reason: string | undefined): void {
    this.#hear({ kind: 'turnComplete', reason });
  }

  onToolCall(functionCalls: readonly FunctionCall[]): void {
    this.#hear({ kind: 'toolCall', functionCalls });
  }

  onToolCallCancellation(ids: readonly string[]): void {
    this.#hear({ kind: 'toolCallCancellation', ids });
  }

  onGoAway(timeLeftMs: number): void {
    this.#hear({ kind: 'goAway', timeLeftMs });
  }

  onSessionResumptionUpdate(newHandle: string | undefined, resumable: boolean): void {
    this.#hear({ kind: 'resumption', newHandle, resumable });
  }

  onUsageMetadata(usage: UsageMetadata): void {
    this.#hear({ kind: 'usage', usage });
  }

  onClose(close: LiveClose): void {
    this.#hear({ kind: 'close', close });
  }

  #hear(event: HeardEvent): void {
    this.events.push(event);
    for (const waiter of this.#waiting) {
      if (!waiter.isMet()) continue;
      this.#waiting.delete(waiter);
      waiter.resolve();
    }
    this.onEvent(event);
  }
}
