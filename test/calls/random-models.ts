/**
 * The models of one random call: each connection of the call is answered as a plan says, and what the call does with them is held
 * against the rules that hold whatever comes: one connection at a time, one greeting, a past that was heard.
 */
import { AppError } from '../../src/errors.js';
import type {
  ConnectLive,
  FunctionResponse,
  LiveConnection,
  LiveListener,
  LiveSetup,
} from '../../src/model/live-connection.js';
import type { VirtualClock } from '../../src/replay/virtual-clock.js';
import { FakeModel } from '../support/call-rig.js';
import { entering } from '../support/scopes.js';

/** How a connect is answered: after so many milliseconds, never, or with a refusal. */
export type ConnectPlan = number | 'never' | 'fails' | 'setupRefused';

export interface ConnectionPlan {
  readonly connect: ConnectPlan;
  /** The first session handle comes with the setup's answer. */
  readonly givesHandle: boolean;
  /** It dies so long after it was there. */
  readonly diesAfterMs: number | undefined;
  /** Its socket is closed so long after it was told to; never: the other side does not answer. */
  readonly closesAfterMs: number | 'never';
}

const GREETING = 'The call has begun.';
const BACK = 'Your connection to the caller was lost for a moment and is back.';
/** A tool that takes its time. */
const LOOK = 'look';
const GREETINGS_MAX = 2;

/** A model that takes its time to close, and may die by itself. */
export class RandomModel extends FakeModel {
  readonly #models: RandomModels;
  readonly #plan: ConnectionPlan;
  readonly #lookUps = new Set<string>();
  #lookUpCount = 0;
  #isOver = false;

  constructor(models: RandomModels, plan: ConnectionPlan, setup: LiveSetup, listener: LiveListener) {
    super(setup, listener);
    this.#models = models;
    this.#plan = plan;
  }

  override sendText(text: string): void {
    super.sendText(text);
    const models = this.#models;
    models.rule(!this.#isOver, `told after its end: ${text}`);
    if (text.includes(GREETING))
      models.rule(models.heard().length === 0, 'greeted, though the agent was heard');
    models.rule(this.#asked(GREETING) <= GREETINGS_MAX, 'asked for the greeting once too often');
    models.rule(this.#asked(BACK) <= 1, 'told twice that it was away');
  }

  override sendToolResponse(responses: readonly FunctionResponse[]): void {
    super.sendToolResponse(responses);
    for (const { id, name } of responses)
      this.#models.rule(
        name !== LOOK || this.#lookUps.delete(id),
        `answered, though not asked, or twice: ${id}`,
      );
  }

  /** Ids are those of one connection: the next gives them out again. */
  looksUp(): void {
    const id = `l${(this.#lookUpCount += 1)}`;
    this.#lookUps.add(id);
    this.listener.onToolCall([{ id, name: LOOK, args: {} }]);
  }

  override close(): void {
    if (this.closed) return;
    this.closed = true;
    this.#isOver = true;
    const { closesAfterMs } = this.#plan;
    if (closesAfterMs === 'never') return;
    const onClosed = (): void => this.listener.onClose({ code: 1000, reason: '', local: true });
    if (closesAfterMs === 0) onClosed();
    else this.#models.clock.setTimer(closesAfterMs, onClosed);
  }

  /** What was due in the same moment may still be said into the socket that is gone. */
  override lose(code?: number): void {
    if (this.closed) return;
    super.lose(code);
    this.#isOver = true;
  }

  /** What it does by itself once it is there. */
  begin(): void {
    const { givesHandle, diesAfterMs } = this.#plan;
    if (givesHandle) this.#models.giveHandle(this);
    if (diesAfterMs === 0) this.lose();
    else if (diesAfterMs !== undefined) this.#models.clock.setTimer(diesAfterMs, () => this.lose());
  }

  #asked(what: string): number {
    return this.texts.filter((text) => text.includes(what)).length;
  }
}

export interface RandomModelsOptions {
  readonly clock: VirtualClock;
  /** Of the connections of the call, one after the other, then again from the first. */
  readonly plans: readonly ConnectionPlan[];
  /** So many connects before belong to other calls. */
  readonly others: number;
}

export class RandomModels {
  readonly clock: VirtualClock;
  readonly all: FakeModel[] = [];
  /** Rules that did not hold. */
  readonly broken: string[] = [];
  readonly #options: RandomModelsOptions;
  readonly #own: RandomModel[] = [];
  readonly #handles = new Set<string>();
  #connects = 0;
  #connecting = 0;
  /** What the caller has heard of the agent by now. */
  heard: () => readonly string[] = () => [];
  /** Whether these words were said up to the end of a generation. */
  isWhole: (text: string) => boolean = () => false;

  constructor(options: RandomModelsOptions) {
    this.#options = options;
    this.clock = options.clock;
  }

  /** The connection that is open now. */
  get open(): RandomModel | undefined {
    return this.#own.find((model) => !model.closed);
  }

  get connections(): number {
    return this.#own.length;
  }

  get resumed(): number {
    return this.#own.filter((model) => model.setup.resumptionHandle !== undefined).length;
  }

  get isAtRest(): boolean {
    return this.#connecting === 0 && this.all.every((model) => model.closed);
  }

  /** What the models were told, in texts and results, that matches `what`; each once for each time. */
  told(what: RegExp): string[] {
    const all = this.#own.flatMap(({ texts, responses }) => [
      ...texts,
      ...responses.map((one) => JSON.stringify(one)),
    ]);
    return all.flatMap((one) => one.match(what) ?? []);
  }

  readonly connect: ConnectLive = (setup, listener, signal, { clock }) => {
    this.#connects += 1;
    const heard = entering(listener, clock);
    if (this.#connects <= this.#options.others) {
      const other = new FakeModel(setup, heard);
      this.all.push(other);
      return Promise.resolve(other);
    }
    this.rule(this.open === undefined, 'a second connection at a time');
    this.rule(this.#connecting === 0, 'a second connect at a time');
    this.#expectPast(setup);
    const { plans, others } = this.#options;
    const plan = plans[(this.#connects - others - 1) % plans.length]!;
    return this.#answer(plan, new RandomModel(this, plan, setup, heard), signal);
  };

  /** Kept for the test: thrown into the call, it would be the call's own fault. */
  rule(holds: boolean, otherwise: string): void {
    if (!holds) this.broken.push(otherwise);
  }

  giveHandle(model: FakeModel): void {
    const handle = `h${this.#handles.size + 1}`;
    this.#handles.add(handle);
    model.listener.onSessionResumptionUpdate(handle, true);
  }

  #answer(plan: ConnectionPlan, model: RandomModel, signal: AbortSignal): Promise<LiveConnection> {
    const { connect } = plan;
    if (connect === 'fails') return Promise.reject(new Error('unreachable'));
    if (connect === 'setupRefused') return Promise.reject(new AppError('model_setup_refused', 'no'));
    this.#connecting += 1;
    return new Promise<LiveConnection>((resolve, reject) => {
      signal.addEventListener('abort', () => {
        if (this.all.includes(model)) return;
        this.#connecting -= 1;
        reject(new Error('aborted'));
      });
      const ready = (): void => {
        if (signal.aborted) return;
        this.#connecting -= 1;
        this.all.push(model);
        this.#own.push(model);
        resolve(model);
        void beginLater(model);
      };
      if (connect === 0) ready();
      else if (connect !== 'never') this.clock.setTimer(connect, ready);
    });
  }

  /** A session is told only what was heard, and a handle is one that was given. */
  #expectPast({ instruction, resumptionHandle }: LiveSetup): void {
    const told = [...instruction.matchAll(/^You: (".*")$/gm)].map(
      ([, text = '']) => JSON.parse(text) as string,
    );
    const heard = this.heard();
    // What has been made to its end is being played: of one that is cut the model is told afterwards.
    for (const text of told.map((each) => each.trim()))
      this.rule(heard.includes(text) || this.isWhole(text), `told, though not heard: ${text}`);
    this.rule(resumptionHandle === undefined || this.#handles.has(resumptionHandle), 'an unknown handle');
  }
}

/** As with a real one, nothing comes of a connection before whoever asked for it has it. */
async function beginLater(model: RandomModel): Promise<void> {
  for (let turn = 0; turn < 5; turn += 1) await Promise.resolve();
  model.begin();
}
