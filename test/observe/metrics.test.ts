import { readFileSync } from 'node:fs';
import { afterEach, describe, expect, it } from 'vitest';
import { END_CALL, STOP_STREAMING } from '../../src/tool/built-in-tools.js';
import { END_REASONS } from '../../src/call/end-reason.js';
import { systemClock } from '../../src/clock.js';
import { ERROR_CODES } from '../../src/errors.js';
import { STREAM_OUTCOMES } from '../../src/event/run-stream.js';
import {
  DROP_REASONS,
  HANDOFF_OUTCOMES,
  RECONNECT_OUTCOMES,
  RECONNECT_REASONS,
  safeObserver,
  type CallObserver,
} from '../../src/observe/call-observer.js';
import { RUN_MODES, type RunObserver, TOOL_OUTCOMES } from '../../src/observe/run-observer.js';
import { type Metrics, createMetrics } from '../../src/observe/metrics.js';
import { CARRIER_ANOMALIES } from '../../src/telephony/carrier-anomaly.js';
import { MEDIA_REFUSALS } from '../../src/telephony/media-stream-server.js';
import { STREAM_EVENTS, WEBHOOK_REFUSALS } from '../../src/telephony/webhooks.js';
import { namedRows } from '../tidy/document-rules.js';

const MODEL = 'gemini-3.8-live';

let open: Metrics[] = [];

function make(): Metrics {
  const metrics = createMetrics({
    version: '1.2.3',
    agent: 'support',
    model: MODEL,
    endReasons: END_REASONS,
    tools: [END_CALL, STOP_STREAMING],
    refusals: [...new Set([...WEBHOOK_REFUSALS, ...MEDIA_REFUSALS])],
    anomalies: CARRIER_ANOMALIES,
    streamEvents: STREAM_EVENTS,
    storeBacklog: () => backlog,
    strayErrors: () => strays,
  });
  open.push(metrics);
  return metrics;
}

afterEach(() => {
  for (const metrics of open) metrics.close();
  open = [];
  backlog = { events: 0, bytes: 0, isFailing: false };
  strays = { exception: 0, rejection: 0 };
});

// --- What the document says ---------------------------------------------------------------------------------------

interface DocumentedMetric {
  readonly name: string;
  readonly type: string;
  readonly labels: readonly string[];
  /** A histogram's first and last bucket, in seconds. */
  readonly range: readonly [number, number] | undefined;
}

const DOCUMENT = {
  path: 'docs/metrics.md',
  text: readFileSync(new URL('../../docs/metrics.md', import.meta.url), 'utf8'),
};
const ROWS = namedRows(DOCUMENT);

function namesIn(cell: string): string[] {
  return [...cell.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name);
}

function readRange(cell: string): [number, number] | undefined {
  const [, low, high, unit] = /([\d.]+)–([\d.]+) (ms|s)\b/.exec(cell) ?? [];
  const scale = unit === 'ms' ? 1000 : 1;
  return low === undefined ? undefined : [Number(low) / scale, Number(high) / scale];
}

const METRICS: readonly DocumentedMetric[] = ROWS.filter(
  ({ names, cells }) => names.length === 1 && cells.length === 3,
).map(({ names: [name = ''], cells: [, kind = ''] }) => ({
  name,
  type: /^\w+/.exec(kind)?.[0] ?? '',
  labels: namesIn(kind),
  range: readRange(kind),
}));

/** The values of a metric's label: its own row, or that of the label wherever it stands. Undefined: not closed. */
function documentedValues(metric: string, label: string): string[] | undefined {
  const row =
    ROWS.find(({ names }) => names[0] === metric && names[1] === label) ??
    ROWS.find(({ names, cells }) => names.length === 1 && names[0] === label && cells.length === 2);
  return row === undefined ? undefined : namesIn(row.cells[1] ?? '');
}

// --- What moves each metric ---------------------------------------------------------------------------------------

type Source =
  | keyof CallObserver
  | keyof RunObserver
  | 'refused'
  | 'anomalies'
  | 'streamEvents'
  | 'observerFaults'
  | 'eventsLost'
  | 'storeBacklog'
  | 'strayErrors';

/** What waits for the store, as each test leaves it. */
let backlog = { events: 0, bytes: 0, isFailing: false };
let strays = { exception: 0, rejection: 0 };

interface Move {
  readonly by: Source;
  readonly move: (metrics: Metrics) => void;
}

const FAILING = { events: 3, bytes: 2_700, isFailing: true };
const STORE_CODES = Object.keys(ERROR_CODES).filter((code) => code.startsWith('store_'));

/** Everything that moves a metric, with every value of its labels. */
const MOVES: Readonly<Record<string, Move>> = {
  earshot_time_to_first_event_seconds: {
    by: 'onFirstEvent',
    move: ({ runObserver }) => {
      runObserver('bidi').onFirstEvent('greeting', 300);
      for (const mode of RUN_MODES) runObserver(mode).onFirstEvent('reply', 700);
    },
  },
  earshot_inter_delta_gap_seconds: {
    by: 'onDeltaGap',
    move: ({ runObserver }) => {
      for (const mode of RUN_MODES) runObserver(mode).onDeltaGap('model', 40);
      runObserver('bidi').onDeltaGap('tool', 900);
    },
  },
  earshot_streams_started_total: {
    by: 'onStreamStarted',
    move: ({ runObserver }) => {
      for (const mode of RUN_MODES) runObserver(mode).onStreamStarted();
    },
  },
  earshot_streams_total: {
    by: 'onStreamEnded',
    move: ({ runObserver }) => {
      for (const mode of RUN_MODES) {
        for (const outcome of STREAM_OUTCOMES) runObserver(mode).onStreamEnded(outcome);
      }
    },
  },
  earshot_turn_latency_seconds: { by: 'onTurnLatency', move: ({ observer }) => observer.onTurnLatency(650) },
  earshot_barge_in_clear_seconds: {
    by: 'onBargeInClear',
    move: ({ observer }) => observer.onBargeInClear(0.4),
  },
  earshot_playout_underruns_total: { by: 'onUnderrun', move: ({ observer }) => observer.onUnderrun() },
  earshot_audio_dropped_seconds_total: {
    by: 'onAudioDropped',
    move: ({ observer }) => {
      for (const direction of ['inbound', 'outbound'] as const) {
        for (const reason of DROP_REASONS[direction]) observer.onAudioDropped(direction, reason, 20);
      }
    },
  },
  earshot_calls_active: { by: 'onCallActive', move: ({ observer }) => observer.onCallActive(1) },
  earshot_calls_total: {
    by: 'onCallEnded',
    move: ({ observer }) => {
      for (const reason of END_REASONS) {
        observer.onCallEnded('inbound', reason, 0);
        observer.onCallEnded('outbound', reason, 0);
      }
    },
  },
  earshot_call_duration_seconds: {
    by: 'onCallEnded',
    move: ({ observer }) => observer.onCallEnded('inbound', 'agent_ended', 61_000),
  },
  earshot_tool_calls_total: {
    by: 'onToolCall',
    move: ({ runObserver }) => {
      for (const outcome of TOOL_OUTCOMES) runObserver('bidi').onToolCall('end_call', outcome);
      runObserver('none').onToolCall('stop_streaming', 'done');
      runObserver('bidi').onToolCall('unknown', 'error');
      runObserver('sse').onToolCall('a name that the model made up', 'error');
    },
  },
  earshot_tool_duration_seconds: {
    by: 'onToolDuration',
    move: ({ runObserver }) => {
      for (const tool of ['end_call', 'stop_streaming', 'a name that the model made up'])
        runObserver('none').onToolDuration(tool, 1_200);
    },
  },
  earshot_calls_taken_over_total: {
    by: 'onCallTakenOver',
    move: ({ observer }) => observer.onCallTakenOver(),
  },
  earshot_handoffs_total: {
    by: 'onHandoff',
    move: ({ observer }) => {
      for (const outcome of HANDOFF_OUTCOMES) observer.onHandoff('cold', outcome);
    },
  },
  earshot_model_reconnects_total: {
    by: 'onModelReconnect',
    move: ({ observer }) => {
      for (const reason of RECONNECT_REASONS)
        for (const outcome of RECONNECT_OUTCOMES) observer.onModelReconnect(reason, outcome);
    },
  },
  earshot_model_tokens_total: {
    by: 'onTokens',
    move: ({ runObserver }) => {
      for (const modality of ['TEXT', 'AUDIO', 'IMAGE', 'VIDEO', 'DOCUMENT', 'SMELL']) {
        runObserver('bidi').onTokens('input', modality, 5);
        runObserver('none').onTokens('output', modality, 7);
      }
    },
  },
  earshot_requests_refused_total: {
    by: 'refused',
    move: ({ refused }) => {
      for (const reason of [...WEBHOOK_REFUSALS, ...MEDIA_REFUSALS]) refused.inc({ reason });
    },
  },
  earshot_carrier_anomalies_total: {
    by: 'anomalies',
    move: ({ anomalies }) => CARRIER_ANOMALIES.forEach((kind) => anomalies.inc({ kind })),
  },
  earshot_carrier_stream_events_total: {
    by: 'streamEvents',
    move: ({ streamEvents }) => STREAM_EVENTS.forEach((event) => streamEvents.inc({ event })),
  },
  earshot_store_waiting_events: { by: 'storeBacklog', move: () => void (backlog = FAILING) },
  earshot_store_waiting_bytes: { by: 'storeBacklog', move: () => void (backlog = FAILING) },
  earshot_store_failing: { by: 'storeBacklog', move: () => void (backlog = FAILING) },
  earshot_events_lost_total: {
    by: 'eventsLost',
    move: ({ eventsLost }) => STORE_CODES.forEach((reason) => eventsLost.inc({ reason })),
  },
  earshot_stray_errors_total: {
    by: 'strayErrors',
    move: () => void (strays = { exception: 1, rejection: 1 }),
  },
  earshot_observer_faults_total: { by: 'observerFaults', move: ({ observerFaults }) => observerFaults.inc() },
};
/** Moved by nobody's call. */
const BY_ITSELF = ['earshot_info', 'earshot_event_loop_lag_seconds'];

// --- Reading a registry -------------------------------------------------------------------------------------------

interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string | number>>;
  readonly value: number;
}

async function samplesOf(metrics: Metrics, name: string): Promise<Sample[]> {
  const metric = metrics.registry.getSingleMetric(name);
  if (metric === undefined) throw new Error(`there is no ${name}`);
  const { values } = (await metric.get()) as {
    values: { metricName?: string; labels: object; value: number }[];
  };
  return values.map(({ metricName, labels, value }) => ({
    name: metricName ?? name,
    labels: labels as Sample['labels'],
    value,
  }));
}

/** The sum of what a metric has counted; of a histogram its number of observations. */
async function totalOf(metrics: Metrics, { name, type }: DocumentedMetric): Promise<number> {
  const counted = type === 'histogram' ? `${name}_count` : name;
  const samples = await samplesOf(metrics, name);
  return samples.filter((each) => each.name === counted).reduce((sum, { value }) => sum + value, 0);
}

function ownLabels(samples: readonly Sample[]): string[] {
  return [...new Set(samples.flatMap(({ labels }) => Object.keys(labels)))].filter((label) => label !== 'le');
}

function valuesOf(samples: readonly Sample[], label: string): string[] {
  return [...new Set(samples.map(({ labels }) => String(labels[label])))].toSorted();
}

describe('the metrics and their document', () => {
  it('are the same list, each with its type', () => {
    const { registry } = make();
    const registered = registry
      .getMetricsAsArray()
      .filter(({ name }) => name.startsWith('earshot_'))
      .map(({ name, type }) => `${name} ${String(type)}`);
    expect(METRICS.map(({ name, type }) => `${name} ${type}`).toSorted()).toEqual(registered.toSorted());
    expect(METRICS.length).toBeGreaterThan(15);
  });

  it('have a source each, and every source has one', () => {
    expect([...Object.keys(MOVES), ...BY_ITSELF].toSorted()).toEqual(
      METRICS.map(({ name }) => name).toSorted(),
    );
    const { observer, runObserver } = make();
    const observers = [observer, ...RUN_MODES.map((mode) => runObserver(mode))];
    const told = new Set(observers.flatMap((each) => Object.keys(each)));
    const sources = new Set(Object.values(MOVES).map(({ by }) => by));
    expect([...sources].toSorted()).toEqual(
      [
        ...told,
        'refused',
        'anomalies',
        'streamEvents',
        'observerFaults',
        'eventsLost',
        'storeBacklog',
        'strayErrors',
      ].toSorted(),
    );
  });

  it.each(METRICS.filter(({ name }) => name in MOVES))(
    '$name moves by its source, and alone',
    async (metric) => {
      const metrics = make();
      expect(await totalOf(metrics, metric)).toBe(0);
      MOVES[metric.name]?.move(metrics);
      expect(await totalOf(metrics, metric)).toBeGreaterThan(0);
      const source = MOVES[metric.name]?.by;
      for (const other of METRICS) {
        if (!(other.name in MOVES) || MOVES[other.name]?.by === source) continue;
        expect(await totalOf(metrics, other)).toBe(0);
      }
    },
  );

  it.each(METRICS)('$name has exactly the labels, and of a closed set the values, listed', async (metric) => {
    const metrics = make();
    MOVES[metric.name]?.move(metrics);
    const samples = await samplesOf(metrics, metric.name);
    expect(ownLabels(samples)).toEqual(metric.labels);
    for (const label of metric.labels) {
      const values = documentedValues(metric.name, label);
      if (values === undefined) expect(['version', 'agent', 'model']).toContain(label);
      else expect(valuesOf(samples, label)).toEqual(values.toSorted());
    }
  });

  it.each(METRICS.filter(({ type }) => type === 'counter'))(
    '$name begins at 0 in every series',
    async (metric) => {
      const metrics = make();
      const before = await samplesOf(metrics, metric.name);
      expect(before.length).toBeGreaterThan(0);
      expect(before.every(({ value }) => value === 0)).toBe(true);
      MOVES[metric.name]?.move(metrics);
      expect(await samplesOf(metrics, metric.name)).toHaveLength(before.length);
    },
  );
});

describe('a histogram', () => {
  const histograms = METRICS.filter(({ type }) => type === 'histogram');

  it.each(histograms)('$name has buckets over the documented range, none too wide', async (metric) => {
    const metrics = make();
    MOVES[metric.name]?.move(metrics);
    const bounds = (await samplesOf(metrics, metric.name)).flatMap(({ labels }) =>
      typeof labels['le'] === 'number' ? [labels['le']] : [],
    );
    const buckets = [...new Set(bounds)];
    expect(metric.range).toBeDefined();
    expect([buckets[0], buckets.at(-1)]).toEqual(metric.range);
    for (const [at, bound] of buckets.slice(1).entries()) {
      const ratio = bound / (buckets[at] ?? Number.NaN);
      expect(ratio).toBeGreaterThan(1);
      expect(ratio).toBeLessThanOrEqual(3);
    }
  });

  it.each(histograms)('$name puts what is usual inside its buckets', async (metric) => {
    const metrics = make();
    MOVES[metric.name]?.move(metrics);
    const samples = (await samplesOf(metrics, metric.name)).filter(({ name }) => name.endsWith('_bucket'));
    const [first = 0, last = 0] = metric.range ?? [];
    const inside = samples.filter(({ labels }) => labels['le'] === last);
    const all = samples.filter(({ labels }) => labels['le'] === '+Inf');
    const below = samples.filter(({ labels }) => labels['le'] === first);
    expect(inside.map(({ value }) => value)).toEqual(all.map(({ value }) => value));
    expect(below.every(({ value }) => value === 0)).toBe(true);
  });

  it('takes milliseconds and gives seconds', async () => {
    const metrics = make();
    metrics.observer.onTurnLatency(650);
    metrics.observer.onBargeInClear(0.4);
    metrics.observer.onCallEnded('inbound', 'agent_ended', 61_000);
    const text = await metrics.registry.metrics();
    expect(text).toContain('earshot_turn_latency_seconds_sum 0.65\n');
    expect(text).toContain('earshot_barge_in_clear_seconds_sum 0.0004\n');
    expect(text).toContain('earshot_call_duration_seconds_sum 61\n');
  });
});

describe('what is counted', () => {
  it('is seconds of dropped sound, and tokens as reported', async () => {
    const metrics = make();
    metrics.observer.onAudioDropped('inbound', 'backlog_age', 40);
    metrics.runObserver('bidi').onTokens('output', 'AUDIO', 25);
    metrics.runObserver('bidi').onTokens('output', 'SMELL', 3);
    const text = await metrics.registry.metrics();
    expect(text).toContain(
      'earshot_audio_dropped_seconds_total{direction="inbound",reason="backlog_age"} 0.04\n',
    );
    expect(text).toContain('earshot_model_tokens_total{direction="output",modality="audio"} 25\n');
    expect(text).toContain('earshot_model_tokens_total{direction="output",modality="other"} 3\n');
  });

  it('is a function by its name in every mode, and unknown by a name that no agent has', async () => {
    const metrics = make();
    for (const mode of RUN_MODES) {
      metrics.runObserver(mode).onToolCall('end_call', 'done');
      metrics.runObserver(mode).onToolCall('made_up', 'error');
    }
    const text = await metrics.registry.metrics();
    expect(text).toContain('earshot_tool_calls_total{tool="end_call",outcome="done"} 3\n');
    expect(text).toContain('earshot_tool_calls_total{tool="unknown",outcome="error"} 3\n');
  });

  it('is a call without a stream among the ended ones, not among the durations', async () => {
    const metrics = make();
    metrics.observer.onCallEnded('inbound', 'busy', 0);
    const text = await metrics.registry.metrics();
    expect(text).toContain('earshot_calls_total{direction="inbound",end_reason="busy"} 1\n');
    expect(text).toContain('earshot_call_duration_seconds_count 0\n');
  });

  it('is how many calls are active, up and down', async () => {
    const metrics = make();
    for (const change of [1, 1, -1] as const) metrics.observer.onCallActive(change);
    expect(await metrics.registry.metrics()).toContain('earshot_calls_active 1\n');
  });

  it('is each server’s own in one process', async () => {
    const [one, other] = [make(), make()];
    one.observer.onUnderrun();
    expect(await one.registry.metrics()).toContain('earshot_playout_underruns_total 1\n');
    expect(await other.registry.metrics()).toContain('earshot_playout_underruns_total 0\n');
  });

  it('says what runs, and stands beside the process’s own metrics', async () => {
    const text = await make().registry.metrics();
    expect(text).toContain(`earshot_info{version="1.2.3",agent="support",model="${MODEL}"} 1\n`);
    expect(text).toContain('process_cpu_seconds_total');
  });
});

describe('event-loop lag', () => {
  function block(ms: number): void {
    const untilMs = systemClock.nowMs() + ms;
    while (systemClock.nowMs() < untilMs);
  }

  async function turnOfLoop(): Promise<void> {
    await new Promise((resolve) => {
      systemClock.setTimer(25, () => resolve(undefined));
    });
  }

  it('rises when the loop was held up, for the scrape and for admission apart', async () => {
    const metrics = make();
    const scraped = async (): Promise<number> =>
      (await samplesOf(metrics, 'earshot_event_loop_lag_seconds'))[0]?.value ?? Number.NaN;
    await turnOfLoop();
    let lagMs = 0;
    let lagSeconds = 0;
    while (lagMs < 100 || lagSeconds < 0.1) {
      block(200);
      await turnOfLoop();
      lagMs = Math.max(lagMs, metrics.loopLagMs());
      lagSeconds = Math.max(lagSeconds, await scraped());
    }
    // Each reader begins anew with its own look, and nothing has run since.
    expect(metrics.loopLagMs()).toBe(0);
    expect(await scraped()).toBe(0);
  });
});

describe('an observer that throws', () => {
  it('is counted and reaches nobody, and the others’ methods still work', () => {
    const faults: unknown[] = [];
    const metrics = make();
    const fault = new Error('no room for another series');
    const broken: CallObserver = {
      ...metrics.observer,
      onUnderrun() {
        throw fault;
      },
    };
    const safe = safeObserver(broken, (error) => faults.push(error));
    safe.onUnderrun();
    safe.onTurnLatency(650);
    expect(faults).toEqual([fault]);
  });
});
