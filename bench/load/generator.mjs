/**
 * The load in a process of its own: N simulated calls between fake carriers and a fake model, both ends here, so that
 * one clock times a frame from socket to socket. The parent speaks to it over IPC: `{ type: 'model', port }` goes up once
 * the model listens; `{ type: 'run', … }` comes down; `{ type: 'result', … }` or `{ type: 'failed', reason }` goes up.
 * One loop on an absolute schedule serves all calls, which are spread over the twenty 1 ms slots of a frame.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { FrameTracker } from './caller-frames.mjs';
import { CarrierCall } from './fake-carriers.mjs';
import { FakeModel } from './fake-model.mjs';
import { Measurements, round } from './measurements.mjs';
import { coreBusyMs, cpuTimes, residentKb } from './process-usage.mjs';
import { TurnLedger } from './turn-ledger.mjs';

const SLOTS = 20;
const MODEL_TIMEOUT_MS = 10_000;
/** Calls stay open and silent for this long before memory is read. */
const SETTLE_MS = 1_500;
/** The contract gives the server a second to close the model's socket after a hang-up. */
const HANG_UP_MS = 1_200;

class Load {
  #measured = new Measurements();
  #model;
  #slots = Array.from({ length: SLOTS }, () => []);
  #calls = [];
  #running = false;
  #nextSlotAt = 0;
  #slot = 0;

  constructor(model) {
    this.#model = model;
  }

  async run({ serverUrl, serverPid, serverCore, calls, warmupMs, seconds, bytesPerMs }) {
    const idleKb = residentKb(serverPid);
    this.#start();
    for (let index = 0; index < calls; index += 1) await this.#place(index, serverUrl, bytesPerMs);
    await sleep(warmupMs);

    const ownCpu = process.cpuUsage();
    const reading = () => ({
      at: performance.now(),
      cpu: cpuTimes(serverPid),
      coreMs: coreBusyMs(serverCore),
      monotonicUs: monotonicUs(),
    });
    const from = reading();
    this.#measured.reset(from.at);
    await sleep(seconds * 1000);
    const to = reading();
    for (const call of this.#calls) call.ledger.settle(to.at);
    const own = process.cpuUsage(ownCpu);
    const summary = this.#measured.summary();
    const loadedKb = residentKb(serverPid);

    this.#running = false;
    await sleep(SETTLE_MS);
    const settledKb = residentKb(serverPid);
    for (const call of this.#calls) call.carrier.hangUp();
    await sleep(HANG_UP_MS);
    const modelSocketsLeft = this.#model.openConnections;
    for (const call of this.#calls) call.carrier.destroy();

    const wallMs = to.at - from.at;
    return {
      seconds: round(wallMs / 1000),
      serverCpuMs: to.cpu.userMs + to.cpu.systemMs - from.cpu.userMs - from.cpu.systemMs,
      serverUserMs: to.cpu.userMs - from.cpu.userMs,
      serverCoreMs: to.coreMs - from.coreMs,
      windowUs: [from.monotonicUs, to.monotonicUs],
      residentKb: { idle: idleKb, loaded: loadedKb, settled: settledKb },
      generatorCpuShare: round((own.user + own.system) / 1000 / wallMs),
      modelSocketsLeft,
      modelStrays: this.#model.strays,
      ...summary,
    };
  }

  /** One call at a time: the model connection that opens meanwhile is this call's. */
  async #place(index, serverUrl, bytesPerMs) {
    const call = { index, measured: this.#measured, model: undefined };
    call.ledger = new TurnLedger(this.#measured);
    call.frames = new FrameTracker(this.#measured);
    call.carrier = new CarrierCall(call, bytesPerMs);
    const connection = this.#model.nextConnection();
    await call.carrier.place(serverUrl);
    const timeout = new AbortController();
    const model = await Promise.race([
      connection,
      sleep(MODEL_TIMEOUT_MS, undefined, { signal: timeout.signal }).catch(() => undefined),
    ]);
    timeout.abort();
    if (model === undefined) throw new Error(`call ${index + 1}: the server connected no model`);
    call.model = model;
    model.attach(call, performance.now());
    this.#calls.push(call);
    this.#slots[index % SLOTS].push(call);
  }

  #start() {
    this.#running = true;
    this.#nextSlotAt = performance.now();
    this.#tick();
  }

  #tick() {
    if (!this.#running) return;
    const startedAt = performance.now();
    if (startedAt >= this.#measured.windowStartAt) {
      this.#measured.generatorLagMs.push(Math.max(0, startedAt - this.#nextSlotAt));
    }
    let now = startedAt;
    while (this.#nextSlotAt <= now) {
      for (const call of this.#slots[this.#slot]) {
        call.carrier.sendFrame();
        call.carrier.returnMarks(now);
      }
      for (const call of this.#slots[(this.#slot + SLOTS / 2) % SLOTS]) call.model.tick(now);
      this.#slot = (this.#slot + 1) % SLOTS;
      this.#nextSlotAt += 1;
      now = performance.now();
    }
    setTimeout(() => this.#tick(), 1);
  }
}

/** CLOCK_MONOTONIC in microseconds, which V8's profiles use too. */
function monotonicUs() {
  return Number(process.hrtime.bigint() / 1000n);
}

const model = new FakeModel();

process.on('message', (message) => {
  if (message.type !== 'run') return;
  new Load(model).run(message).then(
    (result) => finish({ type: 'result', result }),
    (error) => finish({ type: 'failed', reason: error.stack ?? String(error) }),
  );
});

function finish(message) {
  process.send(message, () => process.exit(0));
}

process.send({ type: 'model', port: await model.listen() });
