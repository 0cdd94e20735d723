/**
 * H5: after every call in `fixtures/calls` the committed events, the page that a client makes of the frames, and the call's own
 * transcript say the same, word for word.
 */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { storedMessages, type ClientState } from '../../src/client/index.js';
import { nextTurn } from '../../src/clock.js';
import type { Event } from '../../src/event/event.js';
import type { RunStream } from '../../src/event/run-stream.js';
import { SpokenOrder } from '../../src/event/spoken-order.js';
import { readFixture } from '../../src/fixture/fixture-reader.js';
import { PACKAGE_ROOT } from '../../src/package-root.js';
import { AgentShelf } from '../../src/replay/agent-shelf.js';
import { replay } from '../../src/replay/replay.js';
import { VirtualClock } from '../../src/replay/virtual-clock.js';
import { StoredFirst } from '../../src/run/stored-first.js';
import { Broadcast } from '../../src/wire/broadcast.js';
import { MemorySink } from '../wire/memory-sink.js';

const FOLDER = join(PACKAGE_ROOT, 'fixtures', 'calls');
const FILES = readdirSync(FOLDER).filter((name) => name.endsWith('.ndjson'));
const shelf = new AgentShelf();

/** A run, followed as the server does, into a list and into frames. */
class FollowedRun {
  readonly committed: Event[] = [];
  readonly sink = new MemorySink();
  readonly #broadcast = new Broadcast({ clock: new VirtualClock() });
  #teller: StoredFirst | undefined;

  follow(run: RunStream): void {
    const order = new SpokenOrder((event) => this.committed.push(event));
    run.listen((item) => order.hear(item));
    const teller = new StoredFirst({
      broadcast: this.#broadcast,
      append: () => Promise.resolve({ stored: true, seq: 0 }),
      clock: new VirtualClock(),
      onFault: (error) => {
        throw error;
      },
    });
    this.#teller = teller;
    this.#broadcast.watch(this.sink, { fromStart: true });
    run.listen((item) => teller.hear(item));
  }

  async end(): Promise<ClientState> {
    await this.#teller?.told;
    this.#broadcast.end();
    while (this.#teller !== undefined && !this.sink.isGone) await nextTurn();
    return this.sink.state;
  }
}

const wordsOf = ({ content }: Event): string => content?.parts?.map(({ text }) => text ?? '').join('') ?? '';

describe('store, page and transcript of a call', () => {
  it.each(FILES)('%s', async (name) => {
    const fixture = await readFixture(join(FOLDER, name));
    const followed = new FollowedRun();
    const { lines } = await replay(fixture, {
      agents: await shelf.of(fixture),
      onRun: (_call, run) => followed.follow(run),
    });
    const page = await followed.end();
    const committed = followed.committed.map((event) => wordsOf(event)).filter((words) => words !== '');
    expect(
      storedMessages(page)
        .map(({ text }) => text)
        .toSorted(),
    ).toEqual(committed.toSorted());
    expect(page.messages.filter(({ status }) => status === 'open')).toEqual([]);
    const heard = lines.flatMap((line) =>
      line.leg === 'call' && line.heard !== undefined ? [line.heard.text] : [],
    );
    // A recording keeps no digits once a key was pressed.
    const asKept = (text: string): string =>
      fixture.header.made === 'recorded' ? text.replaceAll(/\d/g, '5') : text;
    expect(committed.map((words) => asKept(words.trim()))).toEqual(heard.map((words) => asKept(words)));
  });
});
