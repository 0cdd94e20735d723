/**
 * The Prometheus metrics, named and defined by `docs/metrics.md`: base units, closed label sets, no personal data.
 * Counters with a closed label set start at 0, so that a rate over the first failure is not lost.
 */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { Counter, Gauge, Histogram, Registry, collectDefaultMetrics } from 'prom-client';
import { STREAM_OUTCOMES } from '../event/run-stream.js';
import {
  type CallObserver,
  DROP_REASONS,
  HANDOFF_KINDS,
  HANDOFF_OUTCOMES,
  RECONNECT_OUTCOMES,
  RECONNECT_REASONS,
} from './call-observer.js';
import { RUN_MODES, type RunMode, type RunObserver, TOOL_OUTCOMES } from './run-observer.js';
import { type StoreBacklog, type StoreMetrics, storeMetrics } from './store-metrics.js';

export interface MetricsOptions {
  readonly version: string;
  readonly agent: string;
  readonly model: string;
  /** The model of the text modes; absent where there are none. */
  readonly textModel?: string | undefined;
  /** The closed label sets that other parts own. */
  readonly endReasons: readonly string[];
  /** What an agent can call on a line; in text it has no functions yet. */
  readonly tools: readonly string[];
  readonly refusals: readonly string[];
  readonly anomalies: readonly string[];
  readonly streamEvents: readonly string[];
  /** What waits for the store, where there is one. */
  readonly storeBacklog?: (() => StoreBacklog) | undefined;
  /** Errors of the process for which nobody waited, since its start. */
  readonly strayErrors?: (() => StrayErrorCounts) | undefined;
}

/** By how they came. */
export type StrayErrorCounts = Readonly<Record<(typeof STRAY_KINDS)[number], number>>;

const NOTHING_WAITS: StoreBacklog = { events: 0, bytes: 0, isFailing: false };

const MODALITIES = ['text', 'audio', 'image', 'video', 'document'];
const OTHER_MODALITY = 'other';
/** The name of every tool that the agent does not have. */
const UNKNOWN_TOOL = 'unknown';
const STRAY_KINDS = ['exception', 'rejection'] as const;
const TOKEN_DIRECTIONS = ['input', 'output'];
const CALL_DIRECTIONS = ['inbound', 'outbound', 'web'];
const LATENCY_SECONDS = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1, 1.25, 1.5, 2, 3, 5, 10];
const GAP_SECONDS = [0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 0.75, 1, 2, 5, 10];
const BARGE_IN_SECONDS = [0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1];
const TOOL_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 20, 60];
const DURATION_SECONDS = [5, 15, 30, 60, 120, 180, 300, 600, 900, 1800, 3600];

export interface Metrics extends StoreMetrics {
  readonly registry: Registry;
  readonly observer: CallObserver;
  /** Of the runs in one mode. */
  readonly runObserver: (mode: RunMode) => RunObserver;
  /** Refused webhooks and sockets, and malformed carrier messages, by kind. */
  readonly refused: Counter<'reason'>;
  readonly anomalies: Counter<'kind'>;
  readonly observerFaults: Counter;
  /** Twilio's own word on media streams. */
  readonly streamEvents: Counter<'event'>;
  /** 99th percentile of event-loop lag since the last call of this, in milliseconds. */
  loopLagMs(): number;
  close(): void;
}

/** Makes a registry of its own, so that tests can run many servers in one process. */
export function createMetrics(options: MetricsOptions): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const registers = [registry];
  const info = new Gauge({
    name: 'earshot_info',
    help: 'Always 1; its labels say what runs.',
    labelNames: ['version', 'agent', 'model'] as const,
    registers,
  });
  info.set({ version: options.version, agent: options.agent, model: options.model }, 1);
  const lag = monitorEventLoopDelay({ resolution: 10 });
  lag.enable();
  const loopLag = new Gauge({
    name: 'earshot_event_loop_lag_seconds',
    help: '99th percentile of event-loop lag since the last scrape.',
    registers: [],
    collect() {
      this.set(lagMs(lag) / 1000);
      lag.reset();
    },
  });
  registry.registerMetric(loopLag);
  strayMetrics(registry, options.strayErrors ?? (() => ({ exception: 0, rejection: 0 })));
  const admission = monitorEventLoopDelay({ resolution: 10 });
  admission.enable();
  return {
    registry,
    observer: createCallObserver(registers, options),
    runObserver: createRunObservers(registers, options),
    ...doorMetrics(registers, options),
    ...storeMetrics(registers, options.storeBacklog ?? (() => NOTHING_WAITS)),
    observerFaults: new Counter({
      name: 'earshot_observer_faults_total',
      help: 'Exceptions thrown by observers and swallowed.',
      registers,
    }),
    loopLagMs() {
      const worst = lagMs(admission);
      admission.reset();
      return worst;
    },
    close() {
      lag.disable();
      admission.disable();
      registry.clear();
    },
  };
}

/** The process counts them before there is a registry; they are read at each scrape. */
function strayMetrics(registry: Registry, counts: () => StrayErrorCounts): void {
  const strays = new Counter({
    name: 'earshot_stray_errors_total',
    help: 'Errors for which nobody waited, thrown in a timer or by a promise.',
    labelNames: ['kind'] as const,
    registers: [],
    collect() {
      this.reset();
      for (const kind of STRAY_KINDS) this.inc({ kind }, counts()[kind]);
    },
  });
  registry.registerMetric(strays);
}

function doorMetrics(
  registers: Registry[],
  options: MetricsOptions,
): Pick<Metrics, 'refused' | 'anomalies' | 'streamEvents'> {
  const refused = new Counter({
    name: 'earshot_requests_refused_total',
    help: 'Webhooks and media sockets refused at the door.',
    labelNames: ['reason'] as const,
    registers,
  });
  const anomalies = new Counter({
    name: 'earshot_carrier_anomalies_total',
    help: 'Carrier messages that were malformed or out of place.',
    labelNames: ['kind'] as const,
    registers,
  });
  const streamEvents = new Counter({
    name: 'earshot_carrier_stream_events_total',
    help: 'Twilio’s stream status callbacks.',
    labelNames: ['event'] as const,
    registers,
  });
  for (const reason of options.refusals) refused.inc({ reason }, 0);
  for (const kind of options.anomalies) anomalies.inc({ kind }, 0);
  for (const event of options.streamEvents) streamEvents.inc({ event }, 0);
  return { refused, anomalies, streamEvents };
}

/** The histogram counts whole sampling intervals; what is above its 10 ms resolution is lag. */
function lagMs(histogram: ReturnType<typeof monitorEventLoopDelay>): number {
  const p99Ms = histogram.percentile(99) / 1e6;
  return Number.isFinite(p99Ms) ? Math.max(0, p99Ms - 10) : 0;
}

function createCallObserver(registers: Registry[], options: MetricsOptions): CallObserver {
  return {
    ...callMetrics(registers, options.endReasons),
    ...turnMetrics(registers),
    ...soundMetrics(registers),
  };
}

function createRunObservers(registers: Registry[], options: MetricsOptions): Metrics['runObserver'] {
  const streams = streamMetrics(registers, options);
  const tools = toolMetrics(registers, options);
  const tokens = tokenMetrics(registers);
  return (mode) => ({ ...streams(mode), ...tools, ...tokens });
}

function callMetrics(
  registers: Registry[],
  endReasons: readonly string[],
): Pick<CallObserver, 'onCallActive' | 'onCallEnded' | 'onCallTakenOver' | 'onHandoff' | 'onModelReconnect'> {
  const active = new Gauge({
    name: 'earshot_calls_active',
    help: 'Calls with an open media stream.',
    registers,
  });
  const total = new Counter({
    name: 'earshot_calls_total',
    help: 'Calls that ended on this server, by who called whom and why they ended.',
    labelNames: ['direction', 'end_reason'] as const,
    registers,
  });
  for (const direction of CALL_DIRECTIONS) {
    for (const end_reason of endReasons) total.inc({ direction, end_reason }, 0);
  }
  const duration = new Histogram({
    name: 'earshot_call_duration_seconds',
    help: 'From the media stream’s start to the end of the call.',
    buckets: DURATION_SECONDS,
    registers,
  });
  const takenOver = new Counter({
    name: 'earshot_calls_taken_over_total',
    help: 'Calls that another server had and that went on here; they are in earshot_calls_total of both.',
    registers,
  });
  const handoffs = new Counter({
    name: 'earshot_handoffs_total',
    help: 'Callers that were to be connected with a human, by what came of it.',
    labelNames: ['kind', 'outcome'] as const,
    registers,
  });
  for (const kind of HANDOFF_KINDS) {
    for (const outcome of HANDOFF_OUTCOMES) handoffs.inc({ kind, outcome }, 0);
  }
  return {
    onHandoff: (kind, outcome) => handoffs.inc({ kind, outcome }),
    ...reconnectMetrics(registers),
    onCallTakenOver: () => takenOver.inc(),
    onCallActive: (change) => active.inc(change),
    onCallEnded(callDirection, endReason, durationMs) {
      total.inc({ direction: callDirection, end_reason: endReason });
      if (durationMs > 0) duration.observe(durationMs / 1000);
    },
  };
}

function reconnectMetrics(registers: Registry[]): Pick<CallObserver, 'onModelReconnect'> {
  const reconnects = new Counter({
    name: 'earshot_model_reconnects_total',
    help: 'Calls that went on to another connection of their model, by why and by what came of it.',
    labelNames: ['reason', 'outcome'] as const,
    registers,
  });
  for (const reason of RECONNECT_REASONS) {
    for (const outcome of RECONNECT_OUTCOMES) reconnects.inc({ reason, outcome }, 0);
  }
  return { onModelReconnect: (reason, outcome) => reconnects.inc({ reason, outcome }) };
}

/** The three numbers, in every mode. */
function streamMetrics(registers: Registry[], options: MetricsOptions) {
  const firstEvent = new Histogram({
    name: 'earshot_time_to_first_event_seconds',
    help: 'Start of a turn (greeting: stream start; reply: last voiced caller frame; text: message received) to its first event forwarded.',
    labelNames: ['mode', 'turn', 'model'] as const,
    buckets: LATENCY_SECONDS,
    registers,
  });
  const gap = new Histogram({
    name: 'earshot_inter_delta_gap_seconds',
    help: 'Between consecutive deltas of one message.',
    labelNames: ['mode', 'cause'] as const,
    buckets: GAP_SECONDS,
    registers,
  });
  const started = new Counter({
    name: 'earshot_streams_started_total',
    help: 'Agent messages begun; in the text modes, answers asked for.',
    labelNames: ['mode'] as const,
    registers,
  });
  const ended = new Counter({
    name: 'earshot_streams_total',
    help: 'The same, ended, by outcome; completion rate is done / (all - interrupted).',
    labelNames: ['mode', 'outcome'] as const,
    registers,
  });
  for (const mode of RUN_MODES) {
    started.inc({ mode }, 0);
    for (const outcome of STREAM_OUTCOMES) ended.inc({ mode, outcome }, 0);
  }
  return (mode: RunMode): Omit<RunObserver, 'onToolCall' | 'onToolDuration' | 'onTokens'> => {
    const model = mode === 'bidi' ? options.model : (options.textModel ?? '');
    return {
      onStreamStarted: () => started.inc({ mode }),
      onFirstEvent: (turn, waitMs) => firstEvent.observe({ mode, turn, model }, waitMs / 1000),
      onDeltaGap: (cause, gapMs) => gap.observe({ mode, cause }, gapMs / 1000),
      onStreamEnded: (outcome) => ended.inc({ mode, outcome }),
    };
  };
}

function turnMetrics(registers: Registry[]): Pick<CallObserver, 'onTurnLatency' | 'onBargeInClear'> {
  const latency = new Histogram({
    name: 'earshot_turn_latency_seconds',
    help: 'Last voiced caller frame to first agent sound written to the carrier.',
    buckets: LATENCY_SECONDS,
    registers,
  });
  const bargeIn = new Histogram({
    name: 'earshot_barge_in_clear_seconds',
    help: 'From `interrupted` read to `clear` written.',
    buckets: BARGE_IN_SECONDS,
    registers,
  });
  return {
    onTurnLatency: (latencyMs) => latency.observe(latencyMs / 1000),
    onBargeInClear: (elapsedMs) => bargeIn.observe(elapsedMs / 1000),
  };
}

function soundMetrics(registers: Registry[]): Pick<CallObserver, 'onUnderrun' | 'onAudioDropped'> {
  const underruns = new Counter({
    name: 'earshot_playout_underruns_total',
    help: 'Times the carrier ran dry in the middle of an agent message.',
    registers,
  });
  const dropped = new Counter({
    name: 'earshot_audio_dropped_seconds_total',
    help: 'Sound that was not passed on.',
    labelNames: ['direction', 'reason'] as const,
    registers,
  });
  for (const direction of ['inbound', 'outbound'] as const) {
    for (const reason of DROP_REASONS[direction]) dropped.inc({ direction, reason }, 0);
  }
  return {
    onUnderrun: () => underruns.inc(),
    onAudioDropped: (direction, reason, droppedMs) => dropped.inc({ direction, reason }, droppedMs / 1000),
  };
}

function toolMetrics(
  registers: Registry[],
  options: MetricsOptions,
): Pick<RunObserver, 'onToolCall' | 'onToolDuration'> {
  const tools = new Counter({
    name: 'earshot_tool_calls_total',
    help: 'Function calls of the model, by tool and outcome.',
    labelNames: ['tool', 'outcome'] as const,
    registers,
  });
  for (const tool of [...options.tools, UNKNOWN_TOOL]) {
    for (const outcome of TOOL_OUTCOMES) tools.inc({ tool, outcome }, 0);
  }
  const duration = new Histogram({
    name: 'earshot_tool_duration_seconds',
    help: 'From a function call to its result, guards and waiting included; of pending ones, none.',
    labelNames: ['tool'] as const,
    buckets: TOOL_SECONDS,
    registers,
  });
  const known = new Set(options.tools);
  const labelOf = (tool: string): string => (known.has(tool) ? tool : UNKNOWN_TOOL);
  return {
    onToolCall: (tool, outcome) => tools.inc({ tool: labelOf(tool), outcome }),
    onToolDuration: (tool, durationMs) => duration.observe({ tool: labelOf(tool) }, durationMs / 1000),
  };
}

function tokenMetrics(registers: Registry[]): Pick<RunObserver, 'onTokens'> {
  const tokens = new Counter({
    name: 'earshot_model_tokens_total',
    help: 'Tokens by the model’s own usage reports.',
    labelNames: ['direction', 'modality'] as const,
    registers,
  });
  for (const direction of TOKEN_DIRECTIONS) {
    for (const modality of [...MODALITIES, OTHER_MODALITY]) tokens.inc({ direction, modality }, 0);
  }
  return {
    onTokens(direction, modality, count) {
      const known = modality.toLowerCase();
      tokens.inc({ direction, modality: MODALITIES.includes(known) ? known : OTHER_MODALITY }, count);
    },
  };
}
