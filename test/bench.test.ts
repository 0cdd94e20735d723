import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';

const folder = new URL('../bench/', import.meta.url);
const run = promisify(execFile);

async function load(file: string): Promise<Record<string, unknown>> {
  return (await import(new URL(file, folder).href)) as Record<string, unknown>;
}

function jsonLines(text: string): Record<string, unknown>[] {
  return text
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}

const spreadShape = { count: expect.any(Number), p50: expect.any(Number), p99: expect.any(Number) };

describe('the benchmark of long sessions', () => {
  it('tells for how long each reading held the event loop', async () => {
    const script = fileURLToPath(new URL('large-session.mjs', folder));
    const { stdout } = await run(process.execPath, [script, '--events=300']);
    const results = jsonLines(stdout);
    expect(results.map(({ read, events }) => [read, events])).toEqual([
      ['whole', 300],
      ['history', 300],
    ]);
    for (const result of results) {
      expect(result).toMatchObject({ heldMs: { median: expect.any(Number), max: expect.any(Number) } });
      expect(result).toHaveProperty('commit');
    }
  }, 120_000);
});

describe('the benchmark of whole calls', () => {
  it('drives the bare relay and reports one JSON object a line, then a table', async () => {
    const script = fileURLToPath(new URL('calls.mjs', folder));
    const { stdout } = await run(process.execPath, [
      script,
      '--only',
      'relay',
      '--calls=2',
      '--seconds=1',
      '--warmup=1',
    ]);
    const [result, summary, ...more] = jsonLines(stdout);
    expect(result).toMatchObject({
      bench: 'calls',
      target: 'relay',
      node: process.version,
      cpu: expect.any(String),
      date: expect.any(String),
      calls: 2,
      cpuMsPerCallSecond: expect.any(Number),
      dryMsPerCallMinute: expect.any(Number),
      residentMb: { idle: expect.any(Number), loaded: expect.any(Number), settled: expect.any(Number) },
      frameToModelMs: spreadShape,
      framesLost: 0,
      framesUnknown: 0,
      mediaWithoutSpeech: 0,
      callsDropped: 0,
      fault: null,
    });
    expect(result).toHaveProperty('commit');
    expect(result).toHaveProperty('dirty');
    expect(summary).toMatchObject({ bench: 'calls-summary', target: 'relay' });
    expect(more).toEqual([]);
    expect(stdout).toContain('CPU ms/call-s');
  }, 120_000);

  it('ends with an exit code other than 0 when it is asked for what it does not know', async () => {
    const script = fileURLToPath(new URL('calls.mjs', folder));
    await expect(run(process.execPath, [script, '--calls', 'none'])).rejects.toMatchObject({ code: 1 });
  });
});

interface Ledger {
  beginTurn(): void;
  chunkSent(ms: number, now: number): void;
  mediaArrived(ms: number, now: number): void;
  interruptedSent(now: number): void;
  clearArrived(now: number): void;
  settle(now: number): void;
}

interface Measured {
  reset(now: number): void;
  dryMs: number;
  heardMs: number;
  interruptedToClearMs: number[];
  clearsUnasked: number;
}

async function newLedger(): Promise<{ ledger: Ledger; measured: Measured }> {
  const { TurnLedger } = (await load('load/turn-ledger.mjs')) as {
    TurnLedger: new (measured: Measured) => Ledger;
  };
  const { Measurements } = (await load('load/measurements.mjs')) as { Measurements: new () => Measured };
  const measured = new Measurements();
  measured.reset(0);
  const ledger = new TurnLedger(measured);
  ledger.beginTurn();
  return { ledger, measured };
}

describe('the account of a dry carrier', () => {
  it('counts the time without sound while the model had already sent more', async () => {
    const { ledger, measured } = await newLedger();
    ledger.chunkSent(500, 100);
    ledger.mediaArrived(100, 110);
    ledger.mediaArrived(100, 250);
    expect(measured.dryMs).toBe(40);
    ledger.settle(400);
    expect(measured.dryMs).toBe(90);
  });

  it('counts neither the wait for the first sound nor silence that the model itself made', async () => {
    const { ledger, measured } = await newLedger();
    ledger.chunkSent(100, 100);
    ledger.mediaArrived(100, 400);
    ledger.chunkSent(100, 700);
    ledger.mediaArrived(100, 703);
    expect(measured.dryMs).toBe(3);
    ledger.settle(2_000);
    expect(measured.dryMs).toBe(3);
  });

  it('times clear from interrupted, and takes back the sound that was dropped', async () => {
    const { ledger, measured } = await newLedger();
    ledger.chunkSent(500, 100);
    ledger.mediaArrived(500, 110);
    ledger.interruptedSent(200);
    ledger.clearArrived(204);
    expect(measured.interruptedToClearMs).toEqual([4]);
    expect(measured.heardMs).toBe(94);
    ledger.settle(900);
    expect(measured.dryMs).toBe(0);
    ledger.clearArrived(950);
    expect(measured.clearsUnasked).toBe(1);
  });
});

interface Tracker {
  nextLevel: number;
  sent(now: number): void;
  arrived(level: number, now: number): void;
}

describe("a caller's frame at the model's end", () => {
  it('is known again by its loudness, also when frames before it were lost', async () => {
    const { FrameTracker, FRAME_PAYLOADS, PIECE_READERS } = (await load('load/caller-frames.mjs')) as {
      FrameTracker: new (measured: object) => Tracker;
      FRAME_PAYLOADS: string[];
      PIECE_READERS: { mulaw8k: { level(window: Buffer): number } };
    };
    const levels = FRAME_PAYLOADS.map((payload) =>
      PIECE_READERS.mulaw8k.level(Buffer.from(payload, 'base64').subarray(72, 88)),
    );
    expect(levels).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
    expect(PIECE_READERS.mulaw8k.level(Buffer.alloc(16, 0xff))).toBe(-1);

    const delays: number[] = [];
    const measured = {
      windowStartAt: 0,
      framesLost: 0,
      framesUnknown: 0,
      addFrameToModel: (sentAt: number, now: number) => delays.push(now - sentAt),
    };
    const tracker = new FrameTracker(measured);
    for (let i = 0; i < 12; i += 1) tracker.sent(i * 20);
    for (const level of [0, 1, 4, 5, 6, 7, 0]) tracker.arrived(level, 200);
    expect(delays).toEqual([200, 180, 120, 100, 80, 60, 40]);
    expect(measured).toMatchObject({ framesLost: 2, framesUnknown: 0 });
    tracker.arrived(7, 210);
    expect(measured.framesUnknown).toBe(1);
  });
});
