/**
 * What was said in a call, in spoken order, and of the agent only what the caller heard. Bounded; past the bound the
 * oldest text goes. Times and sound are the conversation's business; this keeps words.
 */
import assert from 'node:assert/strict';
import type { MessageView } from '../console/call-view.js';
import { TRANSCRIPT_MAX_CHARS } from '../limits.js';

/** An agent message whose heard text is still growing. */
export interface HeardSource {
  /** What the caller has heard of it by now. */
  heardText(): string;
}

interface Entry {
  readonly msg: string;
  readonly role: 'user' | 'model';
  text: string;
  interrupted: boolean;
  source: HeardSource | undefined;
}

export class Transcript {
  readonly #entries: Entry[] = [];
  /** The caller's message that is still being added to. */
  #callerEntry: Entry | undefined;
  #count = 0;
  #closedChars = 0;

  /** The caller said something (a fragment; concatenated as it comes). A late fragment goes in front of the agent
   * message that it caused: `beforeAgent` is that message's id, undefined when the agent is not answering. */
  addCaller(fragment: string, beforeAgent: string | undefined): void {
    const found =
      beforeAgent === undefined ? -1 : this.#entries.findIndex((entry) => entry.msg === beforeAgent);
    const at = found < 0 ? this.#entries.length : found;
    if (this.#callerEntry === undefined || this.#entries[at - 1] !== this.#callerEntry) {
      this.#callerEntry = this.#make('user', undefined);
      this.#entries.splice(at, 0, this.#callerEntry);
    }
    this.#setText(this.#callerEntry, this.#callerEntry.text + fragment);
  }

  /** Opens an agent message; returns its id. */
  openAgent(source: HeardSource): string {
    const entry = this.#make('model', source);
    this.#entries.push(entry);
    return entry.msg;
  }

  /** Seals an agent message with what was heard of it. A message of which nothing was heard is removed. */
  closeAgent(msg: string, heard: { text: string; interrupted: boolean }): void {
    const at = this.#entries.findIndex((entry) => entry.msg === msg);
    const entry = this.#entries[at];
    if (entry?.source === undefined) return;
    entry.source = undefined;
    entry.interrupted = heard.interrupted;
    if (heard.text.trim() === '') this.#entries.splice(at, 1);
    else this.#setText(entry, heard.text);
  }

  /** Late words of an agent message that is closed already and was heard whole; of an open one there is no need. */
  amend(msg: string, text: string): void {
    const entry = this.#entries.findLast((candidate) => candidate.msg === msg);
    if (entry === undefined || entry.source !== undefined) return;
    this.#setText(entry, text);
  }

  /** A clip of ours that the caller heard. */
  addRecorded(text: string): void {
    const entry = this.#make('model', undefined);
    this.#entries.push(entry);
    this.#setText(entry, text);
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

  #make(role: 'user' | 'model', source: HeardSource | undefined): Entry {
    this.#count += 1;
    return { msg: `m${this.#count}`, role, text: '', interrupted: false, source };
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
    this.#entries.splice(this.#entries.indexOf(oldest), 1);
    if (oldest === this.#callerEntry) this.#callerEntry = undefined;
    this.#closedChars -= oldest.text.length;
  }
}
