/**
 * What was said in a call, in spoken order, and of the agent only what the caller heard. Bounded; past the bound the
 * oldest text goes. Times and sound are the conversation's business; this keeps words, and tells its listener when a
 * message opens, grows and is sealed.
 */
import assert from 'node:assert/strict';
import type { MessageView } from '../console/call-view.js';
import type { AgentTurn, StreamOutcome } from '../event/run-stream.js';
import { TRANSCRIPT_MAX_CHARS } from '../limits.js';

/** An agent message whose heard text is still growing. */
export interface HeardSource {
  /** What the caller has heard of it by now. */
  heardText(): string;
  /** What they will have heard of it when it has been played, where all of it has been made. */
  comingText(): string;
}

/** What becomes of each message. `before`: the message that a new one stands in front of, if not at the end. */
export interface TranscriptListener {
  opened(msg: string, role: 'user' | 'model', before: string | undefined, turn: AgentTurn | undefined): void;
  delta(msg: string, role: 'user' | 'model', text: string): void;
  /** Exactly once for each opened message, last. With an empty text nothing of it was heard. `outcome` of one that was
   * opened with a turn. */
  sealed(
    msg: string,
    role: 'user' | 'model',
    text: string,
    interrupted: boolean,
    outcome: StreamOutcome | undefined,
  ): void;
}

/** What became of an agent message. */
export interface ClosedMessage {
  readonly text: string;
  readonly interrupted: boolean;
  readonly outcome: StreamOutcome;
}

/** A message that was heard to its end may still get late words until the second tick behind it. */
const TICKS_UNTIL_SEALED = 2;

interface Entry {
  readonly msg: string;
  readonly role: 'user' | 'model';
  text: string;
  interrupted: boolean;
  source: HeardSource | undefined;
  outcome: StreamOutcome | undefined;
  isSealed: boolean;
  /** Of a message that is closed and not sealed. */
  ticksLeft: number;
}

export class Transcript {
  readonly #entries: Entry[] = [];
  /** The caller's message that is still being added to. */
  #callerEntry: Entry | undefined;
  readonly #listener: TranscriptListener;
  #count = 0;
  #closedChars = 0;

  constructor(listener: TranscriptListener) {
    this.#listener = listener;
  }

  /** The caller said something (a fragment; concatenated as it comes, and what is too much for one message begins another). A late fragment goes in front of the agent
   * message that it caused: `beforeAgent` is that message's id, undefined when the agent is not answering. */
  addCaller(fragment: string, beforeAgent: string | undefined): void {
    const found =
      beforeAgent === undefined ? -1 : this.#entries.findIndex((entry) => entry.msg === beforeAgent);
    const at = found < 0 ? this.#entries.length : found;
    const last = this.#callerEntry;
    const isFull = (last?.text.length ?? 0) + fragment.length > TRANSCRIPT_MAX_CHARS;
    if (last === undefined || last.isSealed || isFull || this.#entries[at - 1] !== last) {
      if (last !== undefined) this.#seal(last);
      this.#callerEntry = this.#open('user', at);
    }
    const entry = this.#callerEntry ?? assert.fail('a fragment has a message');
    // What is told of a message is what is kept of it, and is told first: a message that is dropped for want of room is sealed by that.
    const kept = fragment.slice(-TRANSCRIPT_MAX_CHARS);
    this.#listener.delta(entry.msg, 'user', kept);
    this.#setText(entry, entry.text + kept);
  }

  /** What the caller typed: a message of its own, whole at once, behind all that was said. */
  addTyped(text: string): void {
    if (this.#callerEntry !== undefined) this.#seal(this.#callerEntry);
    this.#callerEntry = undefined;
    this.#sealClosed();
    const entry = this.#open('user', this.#entries.length);
    this.#setText(entry, text);
    this.#seal(entry);
  }

  /** Opens an agent message; returns its id. */
  openAgent(source: HeardSource, turn: AgentTurn): string {
    this.#sealClosed();
    const entry = this.#open('model', this.#entries.length, turn);
    entry.source = source;
    return entry.msg;
  }

  /** Words of an agent message, as they were transcribed. */
  agentSaid(msg: string, fragment: string): void {
    const entry = this.#entries.findLast((candidate) => candidate.msg === msg);
    if (entry?.isSealed === false && fragment !== '') this.#listener.delta(msg, 'model', fragment);
  }

  /** Seals an agent message with what was heard of it. A message of which nothing was heard is removed. */
  closeAgent(msg: string, heard: ClosedMessage): void {
    const at = this.#entries.findIndex((entry) => entry.msg === msg);
    const entry = this.#entries[at];
    if (entry?.source === undefined) return;
    entry.source = undefined;
    entry.interrupted = heard.interrupted;
    entry.outcome = heard.outcome;
    if (heard.text.trim() === '') {
      // Nobody heard it: what the caller is saying goes on as if it had not been.
      this.#entries.splice(at, 1);
      return this.#seal(entry);
    }
    this.#setText(entry, heard.text);
    // What the caller said before it is complete: the answer is over.
    for (const earlier of this.#entries.slice(0, at)) if (earlier.role === 'user') this.#seal(earlier);
    if (heard.interrupted) this.#seal(entry);
  }

  /** Twice a second. */
  onTick(): void {
    for (const entry of this.#entries) {
      if (entry.isSealed || entry.source !== undefined || entry.role === 'user') continue;
      entry.ticksLeft -= 1;
      if (entry.ticksLeft <= 0) this.#seal(entry);
    }
  }

  /** The call is over: every message is as it is. */
  end(): void {
    for (const entry of this.#entries) if (entry.source === undefined) this.#seal(entry);
  }

  /** Late words of an agent message that is closed already and was heard whole; of an open one there is no need. */
  amend(msg: string, text: string): void {
    const entry = this.#entries.findLast((candidate) => candidate.msg === msg);
    if (entry === undefined || entry.source !== undefined || entry.isSealed) return;
    this.#setText(entry, text);
  }

  /** A clip of ours that the caller heard, in front of the message `before`, or last. */
  addRecorded(text: string, before?: string): void {
    const found = before === undefined ? -1 : this.#entries.findIndex(({ msg }) => msg === before);
    const entry = this.#open('model', found < 0 ? this.#entries.length : found);
    this.#setText(entry, text);
    this.#seal(entry);
  }

  /** What a message has come to, or will with what is being played; undefined where that is nothing, or is not known. */
  textOf(msg: string): string | undefined {
    const entry = this.#entries.findLast((candidate) => candidate.msg === msg);
    const text = (entry?.source?.comingText() ?? entry?.text ?? '').trim();
    return text === '' ? undefined : text;
  }

  /** The messages by now, oldest first. */
  messages(): MessageView[] {
    return this.#entries
      .map((entry) => ({
        msg: entry.msg,
        role: entry.role,
        text: (entry.source?.heardText() ?? entry.text).trim(),
        interrupted: entry.interrupted,
      }))
      .filter((message) => message.text !== '');
  }

  #open(role: 'user' | 'model', at: number, turn?: AgentTurn): Entry {
    this.#count += 1;
    const msg = `m${this.#count}`;
    const entry: Entry = {
      msg,
      role,
      text: '',
      interrupted: false,
      source: undefined,
      outcome: undefined,
      isSealed: false,
      ticksLeft: TICKS_UNTIL_SEALED,
    };
    this.#listener.opened(msg, role, this.#entries[at]?.msg, turn);
    this.#entries.splice(at, 0, entry);
    return entry;
  }

  #seal(entry: Entry): void {
    if (entry.isSealed) return;
    entry.isSealed = true;
    // As it is, spaces and all: the pieces together are the whole.
    const text = entry.text.trim() === '' ? '' : entry.text;
    this.#listener.sealed(entry.msg, entry.role, text, entry.interrupted, entry.outcome);
  }

  /** A new message has begun: the closed ones before it get no more words. */
  #sealClosed(): void {
    for (const entry of this.#entries) {
      if (entry.role === 'model' && entry.source === undefined) this.#seal(entry);
    }
  }

  #setText(entry: Entry, text: string): void {
    this.#closedChars += text.length - entry.text.length;
    entry.text = text;
    while (this.#closedChars > TRANSCRIPT_MAX_CHARS) this.#dropOldest();
  }

  /** Drops the oldest closed message; of the only one what is too much. Open ones are bounded by themselves. */
  #dropOldest(): void {
    const closed = this.#entries.filter((entry) => entry.source === undefined);
    const oldest = closed[0];
    if (oldest === undefined) return assert.fail('closed text belongs to a closed message');
    if (closed.length === 1) {
      oldest.text = oldest.text.slice(-TRANSCRIPT_MAX_CHARS);
      this.#closedChars = oldest.text.length;
      return;
    }
    this.#seal(oldest);
    this.#entries.splice(this.#entries.indexOf(oldest), 1);
    if (oldest === this.#callerEntry) this.#callerEntry = undefined;
    this.#closedChars -= oldest.text.length;
  }
}
