/**
 * One soak: three servers on one store, a model, a carrier, callers and watchers; what happens to them in the middle; and what is
 * found out about every call when all is over.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '../../src/clock.js';
import { RUN_KEPT_AFTER_END_MS } from '../../src/limits.js';
import { pause } from '../support/wait-until.js';
import { type Account, lineProblems, type Problem, textProblems, timelineOf } from './call-checks.js';
import { type CallPlan, planCall } from './call-plan.js';
import { type Idle, idleGrowth, memoryGrowth } from './growth.js';
import { Lateness } from './lateness.js';
import { type Told, toldByEvents, type WordedEvent } from './same-text.js';
import { unexpectedLines } from './server-log.js';
import { type CallOutcome, SoakCaller } from './soak-caller.js';
import { SoakFront } from './soak-front.js';
import { eventsOf, faultWords, type SoakEventName, type SoakOptions } from './soak-options.js';
import { layOut, SoakServer } from './soak-server.js';
import { SoakWatcher } from './soak-watcher.js';
import { StandIn } from './stand-in.js';
import { SoakDisk } from './store-trouble.js';

/** Between the beginnings of two calls: sixty come within a quarter of a minute. */
const STAGGER_MS = 250;
const SAMPLE_MS = 1_000;
/** A lock behind which the store gives a statement up (SQLITE_BUSY_MAX_MS), and one within which it waits. */
const LONG_LOCK_MS = 7_000;
const SHORT_LOCK_MS = 3_000;
const FULL_MS = 7_000;
const ANSWERED_MAX_MS = 1_000;
/** What waited for the store is tried again within this time (STORE_RETRY_MAX_MS). */
const RECOVERY_MS = 3_000;
/** What is told last, and what is still being stored, comes within these. */
const ENDED_MAX_MS = 10_000;
const TOLD_MAX_MS = 20_000;
const IDLE_MAX_MS = 30_000;
/** RUN_KEPT_AFTER_END_MS, and a little. */
const SETTLED_MAX_MS = RUN_KEPT_AFTER_END_MS + 10_000;
const EXIT_MAX_MS = 60_000;
/** Numbers of calls that are no part of the soak. */
const WARM_UP_NUMBER = 0x00ff_0000;

/** A call that is over, with what was told of it at once; its events are read at the end. */
interface HeldCall {
  readonly plan: CallPlan;
  readonly callSid: string;
  readonly wasOpened: boolean;
  readonly accounts: readonly Account[];
  readonly areWhole: boolean;
}

export interface SoakReport {
  readonly calls: number;
  readonly problems: readonly Problem[];
  readonly lines: readonly string[];
  readonly plans: ReadonlyMap<number, CallPlan>;
  /** What model and caller did in a call, in order. */
  readonly notes: ReadonlyMap<number, readonly string[]>;
}

export class SoakRun {
  readonly #options: SoakOptions;
  readonly #root = mkdtempSync(join(tmpdir(), 'earshot-soak-'));
  readonly #disk = SoakDisk.open(mkdtempSync(join(tmpdir(), 'earshot-soak-data-')));
  readonly #problems: Problem[] = [];
  readonly #lines: string[] = [];
  readonly #plans = new Map<number, CallPlan>();
  readonly #notes = new Map<number, string[]>();
  readonly #held: HeldCall[] = [];
  readonly #callers = new Map<number, SoakCaller>();
  readonly #residentMb: number[] = [];
  readonly #cpuMs = new Map<SoakServer, number>();
  #mostAtOnce = 0;
  #latePhones = 0;
  readonly #lateness = new Lateness(systemClock);
  readonly #servers: SoakServer[] = [];
  #happening = Promise.resolve();
  #standIn!: StandIn;
  #front!: SoakFront;
  #isSampling = true;

  private constructor(options: SoakOptions) {
    this.#options = options;
  }

  static async start(options: SoakOptions): Promise<SoakRun> {
    const run = new SoakRun(options);
    try {
      await run.#open();
    } catch (error) {
      await run.close();
      throw error;
    }
    return run;
  }

  async run(): Promise<SoakReport> {
    const startedMs = systemClock.nowMs();
    const last = this.#servers.at(-1)!;
    const idle = await this.#warmUp(last);
    const cpuBefore = process.cpuUsage();
    this.#lateness.start();
    const sampling = this.#sample(last);
    const numbers = await this.#placeCalls();
    await this.#happening;
    const isIdle = await this.#becomesIdle(last);
    this.#isSampling = false;
    await sampling;
    this.#lateness.stop();
    if (!isIdle) this.#problem('growth', `not all is over: ${JSON.stringify(await last.alive())}`);
    for (const what of await this.#idleGrowth(last, idle)) this.#problem('growth', what);
    const grown = memoryGrowth(this.#residentMb);
    if (grown !== undefined) this.#problem('growth', grown);
    await this.#judgeCalls(last);
    await this.#stopServers();
    this.#summarize(startedMs, cpuBefore);
    return {
      calls: numbers,
      problems: this.#problems,
      lines: this.#lines,
      plans: this.#plans,
      notes: this.#notes,
    };
  }

  async close(): Promise<void> {
    await Promise.all(this.#servers.map((server) => server.process.kill()));
    await this.#front?.close();
    await this.#standIn?.close();
    this.#disk.close();
    rmSync(this.#disk.folder, { recursive: true, force: true });
    rmSync(this.#root, { recursive: true, force: true });
  }

  async #open(): Promise<void> {
    layOut(this.#root);
    this.#standIn = await StandIn.start({
      planOf: (number) => this.#planOf(number),
      tell: (number, what) => this.#note(number, `model: ${what}`),
    });
    this.#front = await SoakFront.start();
    // Each end of a server needs another one that takes over.
    const ends = eventsOf(this.#options).filter(({ name }) => name === 'sigterm' || name === 'sigkill');
    for (const name of ['A', 'B', 'C'].slice(0, 1 + ends.length)) {
      this.#servers.push(
        await SoakServer.start(name, this.#root, {
          PORT: '0',
          GEMINI_API_KEY: 'key-of-the-model',
          GOOGLE_GEMINI_BASE_URL: this.#standIn.url,
          DATA_DIR: this.#disk.folder,
          DATABASE_URL: `sqlite:${this.#disk.database}`,
          EARSHOT_DEBUG: 'on',
          MAX_CALLS: String(2 * this.#options.atOnce + 20),
        }),
      );
    }
    this.#front.target = this.#servers[0]!.url;
  }

  #planOf(number: number): CallPlan {
    const known = this.#plans.get(number);
    if (known !== undefined) return known;
    const { seed, calls, only } = this.#options;
    const isWarmUp = number >= WARM_UP_NUMBER;
    const drawn = isWarmUp
      ? planCall({ seed, calls: 1, only: 'none' }, 0)
      : planCall({ seed, calls, only: faultWords(only) }, number);
    const plan = isWarmUp
      ? { ...drawn, number, turns: drawn.turns.slice(0, 1), endsBy: 'caller' as const }
      : drawn;
    this.#plans.set(number, plan);
    return plan;
  }

  /** One call, so that all that a server opens once is open; then what it has open with nothing going on. */
  async #warmUp(server: SoakServer): Promise<Idle> {
    const plan = this.#planOf(WARM_UP_NUMBER);
    await new SoakCaller({ plan, seed: this.#options.seed, url: server.url }).run(() => {});
    await this.#becomesIdle(server);
    this.#plans.delete(WARM_UP_NUMBER);
    return idleOf(server);
  }

  async #placeCalls(): Promise<number> {
    const { calls, atOnce, onlyCall } = this.#options;
    const numbers =
      onlyCall === undefined ? Array.from({ length: calls }, (_, number) => number) : [onlyCall];
    const events = eventsOf(this.#options);
    const going = new Set<Promise<void>>();
    const holding: Promise<void>[] = [];
    for (const [begun, number] of numbers.entries()) {
      while (going.size >= atOnce) await Promise.race(going);
      for (const { name } of events.filter(({ afterCalls }) => afterCalls === begun)) {
        this.#happening = this.#happening.then(() => this.#happens(name)).then(() => pause(RECOVERY_MS));
      }
      const call = this.#call(number, (held) => void holding.push(held));
      going.add(call);
      this.#mostAtOnce = Math.max(this.#mostAtOnce, going.size);
      void call.finally(() => going.delete(call));
      await pause(STAGGER_MS);
    }
    await Promise.all(going);
    await Promise.all(holding);
    return numbers.length;
  }

  /** One call; what is to be found out behind it is handed to `holds`, so that the next call need not wait for it. */
  async #call(number: number, holds: (held: Promise<void>) => void): Promise<void> {
    const plan = this.#planOf(number);
    const watchers: SoakWatcher[] = [];
    const server = this.#servers.find(({ url }) => url === this.#front.target)!;
    const caller = new SoakCaller({ plan, seed: this.#options.seed, url: this.#front.url });
    this.#callers.set(number, caller);
    const outcome = await caller.run(() => {
      watchers.push(new SoakWatcher(server.url, caller.phone.callSid));
      if (plan.fault.watcher !== undefined)
        watchers.push(new SoakWatcher(server.url, caller.phone.callSid, plan.fault.watcher));
    });
    for (const note of [...outcome.notes, ...timelineOf(outcome.record)]) this.#note(number, note);
    holds(this.#hold(outcome, watchers, server));
  }

  async #hold(outcome: CallOutcome, watchers: readonly SoakWatcher[], server: SoakServer): Promise<void> {
    const accounts: Account[] = [];
    let endReason = 'no reason known';
    for (const each of this.#servers) {
      const page = await endedPage(each, outcome.callSid);
      if (page === undefined) continue;
      accounts.push({ by: `the page of ${each.name}`, told: page['messages'] as Told[] });
      if (typeof page['endReason'] === 'string') endReason = `${page['endReason']} at ${each.name}`;
    }
    const wasKilled = server.isGone && outcome.record.streams.length > 0 && accounts.length === 0;
    const deadlineMs = systemClock.nowMs() + TOLD_MAX_MS;
    for (const watcher of watchers) {
      watcher.catchUp();
      while (!watcher.hasEnded && systemClock.nowMs() < deadlineMs) await pause(100);
      watcher.leave();
      if (watcher.isReader) accounts.push({ by: 'a watcher', told: watcher.told });
    }
    const { plan, callSid, record, answeredAtMs } = outcome;
    const areWhole = record.streams.length === 1 && !wasKilled && !server.isGone;
    this.#held.push({ plan, callSid, wasOpened: record.streams.length > 0, accounts, areWhole });
    const lateWithin = (fromMs: number, toMs: number): number =>
      this.#lateness.within(answeredAtMs + fromMs, answeredAtMs + toMs);
    this.#problems.push(...lineProblems(outcome, endReason, lateWithin));
    if (record.pacing.framesSkipped > 0) this.#latePhones += 1;
  }

  async #happens(name: SoakEventName): Promise<void> {
    this.#lines.push(`${name} after ${this.#callers.size} calls`);
    switch (name) {
      case 'store-locked':
        return this.#disk.lock(LONG_LOCK_MS);
      case 'store-locked-again':
        return this.#disk.lock(SHORT_LOCK_MS);
      case 'store-full': {
        const pids = this.#servers.filter(({ isGone }) => !isGone).map((server) => server.process.pid);
        const isFilled = await this.#disk.fill(FULL_MS, pids);
        const how = this.#disk.isMounted ? 'a disk of its own was full' : 'the largest file was limited';
        this.#lines.push(
          isFilled ? `store-full: ${how}` : 'store-full: not possible here (neither mount nor prlimit)',
        );
        return undefined;
      }
      case 'sigterm':
        return this.#moveFrom('SIGTERM');
      case 'sigkill':
        return this.#moveFrom('SIGKILL');
    }
  }

  /** From here on the next server takes what comes in. */
  async #moveFrom(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    const at = this.#servers.findIndex(({ url }) => url === this.#front.target);
    this.#front.target = this.#servers[at + 1]!.url;
    // Who stops a server on purpose lets it answer what it has been asked.
    if (signal === 'SIGTERM') await pause(ANSWERED_MAX_MS);
    this.#servers[at]!.process.signal(signal);
    if (signal === 'SIGKILL') await this.#servers[at]!.process.exit;
  }

  async #sample(server: SoakServer): Promise<void> {
    while (this.#isSampling) {
      await pause(SAMPLE_MS);
      for (const each of this.#servers) if (!each.isGone) this.#cpuMs.set(each, each.usage.cpuMs);
      if (this.#front.target === server.url) this.#residentMb.push(server.usage.residentMb);
    }
  }

  async #becomesIdle(server: SoakServer): Promise<boolean> {
    const deadlineMs = systemClock.nowMs() + IDLE_MAX_MS;
    while (Object.keys(await server.alive()).some((name) => name !== 'workers')) {
      if (systemClock.nowMs() > deadlineMs) return false;
      await pause(500);
    }
    // Kept HTTP connections are closed after five seconds without a request.
    await pause(6_000);
    return true;
  }

  /** What watchers may still ask for is kept for a minute; so a call alone is not waited for. */
  async #idleGrowth(server: SoakServer, before: Idle): Promise<string[]> {
    const deadlineMs = systemClock.nowMs() + (this.#options.onlyCall === undefined ? SETTLED_MAX_MS : 0);
    for (;;) {
      const after = await idleOf(server);
      const grown = idleGrowth(before, after);
      this.#lines.push(`idle before: ${JSON.stringify(before)}, after: ${JSON.stringify(after)}`);
      if (grown.length === 0 || this.#options.onlyCall !== undefined) return [];
      if (systemClock.nowMs() > deadlineMs) return grown;
      this.#lines.pop();
      await pause(SAMPLE_MS);
    }
  }

  async #judgeCalls(reader: SoakServer): Promise<void> {
    for (const { plan, callSid, wasOpened, accounts, areWhole } of this.#held) {
      const path = `/apps/${plan.agent}/users/${encodeURIComponent(plan.from)}/sessions/${callSid}`;
      const answer = await reader.get(path);
      const store =
        answer?.status === 200
          ? toldByEvents(answer.body['events'] as WordedEvent[])
          : { status: answer?.status ?? 0 };
      this.#problems.push(...textProblems(plan.number, wasOpened, { store, accounts, areWhole }));
    }
    if (this.#latePhones > 0) {
      const what = `${this.#latePhones} phones were so late that they left frames out: the machine was too busy to trust what else is told here`;
      this.#problem('harness', what);
    }
    if (this.#standIn.strangers > 0)
      this.#problem('harness', `${this.#standIn.strangers} connections of no call`);
  }

  async #stopServers(): Promise<void> {
    const killed = eventsOf(this.#options).some(({ name }) => name === 'sigkill')
      ? this.#servers.at(-2)
      : undefined;
    for (const server of this.#servers) {
      if (server !== killed && !server.isGone) server.process.signal('SIGTERM');
      const code = await Promise.race([server.process.exit, pause(EXIT_MAX_MS).then(() => 'none')]);
      if (server !== killed && code !== 0)
        this.#problem('growth', `server ${server.name} ended with ${code}`);
      if (this.#options.logs !== undefined) {
        mkdirSync(this.#options.logs, { recursive: true });
        writeFileSync(join(this.#options.logs, `${server.name}.log`), server.process.output);
      }
      for (const line of unexpectedLines(server.process.output)) {
        this.#problem('log', `server ${server.name} logged: ${line}`);
      }
    }
  }

  #summarize(startedMs: number, cpuBefore: NodeJS.CpuUsage): void {
    const seconds = (systemClock.nowMs() - startedMs) / 1_000;
    const { user, system } = process.cpuUsage(cpuBefore);
    const harness = (user + system) / 1e6 / seconds;
    const servers = [...this.#cpuMs.values()].reduce((sum, ms) => sum + ms, 0) / 1_000 / seconds;
    const struck = [...this.#plans.values()].filter(({ fault }) => fault.model !== undefined);
    const missed = struck.filter(({ number }) => this.#standIn.call(number)?.hasStruck !== true);
    this.#lines.push(
      `${seconds.toFixed(0)} s, ${this.#mostAtOnce} calls at once at most; servers ${servers.toFixed(2)} cores; harness ${harness.toFixed(2)} cores, its loop late by ${this.#lateness.most.toFixed(0)} ms at most`,
      `${struck.length} faults of the model planned, ${missed.length} of them did not come about: ${missed.map(({ number, fault }) => `${number} ${fault.name}`).join(', ')}`,
      `resident MB of the last server: ${this.#residentMb.filter((_, index) => index % 10 === 0).join(', ')}`,
    );
  }

  #note(number: number, what: string): void {
    const notes = this.#notes.get(number) ?? [];
    const at = this.#callers.get(number)?.elapsedMs;
    notes.push(what.startsWith('model: ') ? `${at ?? '?'} ${what}` : what);
    this.#notes.set(number, notes);
  }

  #problem(kind: Problem['kind'], what: string): void {
    this.#problems.push({ kind, what });
  }
}

async function idleOf(server: SoakServer): Promise<Idle> {
  return { sockets: server.usage.sockets, timers: await server.timers() };
}

/** The page of a call that is over, or undefined where this server knows of none. */
async function endedPage(server: SoakServer, callSid: string): Promise<Record<string, unknown> | undefined> {
  const deadlineMs = systemClock.nowMs() + ENDED_MAX_MS;
  for (;;) {
    const answer = await server.get(`/calls/${callSid}`);
    if (answer === undefined || answer.status !== 200) return undefined;
    if (answer.body['state'] === 'ended' || systemClock.nowMs() > deadlineMs) return answer.body;
    await pause(200);
  }
}
