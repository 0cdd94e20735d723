/**
 * A whole call as a test in a few lines: what the model and the phone do, at their times; the ringing, the connecting
 * and the opening of the stream are done. The real server code answers, on a virtual clock.
 */
import { join } from 'node:path';
import type { HeardMessage } from '../../src/call-tap.js';
import {
  fixtureHeader,
  type FixtureHeader,
  type FixtureLine,
  fixtureLine,
} from '../../src/fixture/fixture-format.js';
import { PACKAGE_ROOT } from '../../src/package-root.js';
import { AgentShelf } from '../../src/replay/agent-shelf.js';
import { dialogueOf } from '../../src/replay/dialogue-diff.js';
import { replay } from '../../src/replay/replay.js';

type Doing = readonly FixtureLine[];
interface Saying {
  readonly chunkMs?: number;
  readonly everyMs?: number;
  readonly end?: 'turnComplete' | 'generationComplete' | 'nothing';
}

const STREAM_SID = `MZ${'1'.padStart(32, '0')}`;
const IDS = { CallSid: `CA${'1'.padStart(32, '0')}`, AccountSid: `AC${'0'.repeat(32)}` };

function line(content: object): FixtureLine {
  return fixtureLine.parse({ dir: 'in', ...content });
}

/** What the model does `at` milliseconds after the call was announced; it is ready at 160. */
export function model(at: number) {
  const one = (content: object): Doing => [line({ at, leg: 'model', ...content })];
  return {
    says: (text: string, ms: number, saying: Saying = {}) => one({ say: { text, ms, ...saying } }),
    sends: (message: object) => one({ message }),
    closes: (code: number, reason = '') => one({ close: code, reason }),
  };
}

/** What the caller and the carrier do; the stream opens at 250. */
export function phone(at: number) {
  const one = (content: object): Doing => [line({ at, leg: 'phone', ...content })];
  return {
    /** A file of fixtures/callers. */
    plays: (file: string, ms?: number, fromMs = 0) =>
      one({ play: { file: join('..', 'callers', file), fromMs, ...(ms !== undefined && { ms }) } }),
    isSilent: (ms: number) => one({ play: { silenceMs: ms } }),
    presses: (digit: string) =>
      one({ message: { event: 'dtmf', streamSid: STREAM_SID, dtmf: { track: 'inbound_track', digit } } }),
    hangsUp: (): Doing => [
      line({ at, leg: 'phone', message: { event: 'stop', streamSid: STREAM_SID, stop: {} } }),
      line({ at: at + 5, leg: 'phone', close: 1000 }),
      line({
        at: at + 60,
        leg: 'phone',
        post: '/twilio/status',
        params: { ...IDS, CallStatus: 'completed' },
      }),
    ],
    loses: () => one({ cut: true }),
  };
}

/** The carrier's REST API answers the oldest request. */
export function rest(at: number, status = 200): Doing {
  return [line({ at, leg: 'rest', answer: { status, body: {} } })];
}

export interface PlayedCall {
  /** The transcript. */
  readonly heard: readonly HeardMessage[];
  readonly ended: string | undefined;
  /** All that crossed the edge, in order. */
  readonly lines: readonly FixtureLine[];
  /** The same for a person to read. */
  readonly dialogue: string;
}

const shelf = new AgentShelf();

export async function playedCall(
  doings: readonly Doing[],
  settings: FixtureHeader['settings'] = {},
): Promise<PlayedCall> {
  const header = fixtureHeader.parse({
    earshot: 'call',
    format: 1,
    made: 'by hand',
    server: 'test',
    agent: 'support',
    model: 'gemini-3.8-live',
    settings: { rest: true, ...settings },
  });
  const lines = [...beginning(), ...doings.flat()].sort((a, b) => a.at - b.at);
  const fixture = { path: join(PACKAGE_ROOT, 'fixtures', 'calls', 'played.ndjson'), header, lines };
  const played = await replay(fixture, { agents: await shelf.of(fixture), playsMarks: true });
  const told = played.lines.filter((one) => one.leg === 'call');
  return {
    heard: told.flatMap(({ heard }) => (heard === undefined ? [] : [heard])),
    ended: told.find(({ ended }) => ended !== undefined)?.ended,
    lines: played.lines,
    dialogue: dialogueOf(played.lines),
  };
}

function beginning(): FixtureLine[] {
  const start = {
    event: 'start',
    streamSid: STREAM_SID,
    start: {
      accountSid: IDS.AccountSid,
      callSid: IDS.CallSid,
      streamSid: STREAM_SID,
      tracks: ['inbound'],
      mediaFormat: { encoding: 'audio/x-mulaw', sampleRate: 8000, channels: 1 },
      customParameters: { token: 'token-1' },
    },
  };
  const params = { ...IDS, From: '+12025550101', To: '+12025550102', Direction: 'inbound' };
  return [
    line({ at: 0, leg: 'phone', post: '/twilio/voice', params }),
    line({ at: 120, leg: 'model', open: true }),
    line({ at: 160, leg: 'model', message: { setupComplete: {} } }),
    line({ at: 250, leg: 'phone', open: true }),
    line({ at: 250, leg: 'phone', message: start }),
  ];
}
