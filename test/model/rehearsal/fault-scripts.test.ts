import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { LiveServerMessage } from '@google/genai';
import { afterEach, describe, expect, it } from 'vitest';
import { loadAgents } from '../../../src/agent/agent-catalog.js';
import { systemClock } from '../../../src/clock.js';
import { readDialogue } from '../../../src/model/rehearsal/dialogue.js';
import { silentLog } from '../../../src/observe/log.js';
import { PACKAGE_ROOT } from '../../../src/package-root.js';
import { callerSound } from './live-wire.js';
import {
  answerToSetup,
  eventually,
  order,
  type RehearsalClient,
  sendSound,
  settle,
} from './rehearsal-client.js';
import { callsIn, declare, Stage } from './rehearsal-stage.js';

const folder = join(PACKAGE_ROOT, 'fixtures', 'agents', 'faults');
const ENDING = '.rehearsal.json';
/**
 * What the first connection sends, from the caller's turn on where the greeting went well, with goAway and the code that it closes
 * with; and what the newest handle meets.
 */
const FAULTS: Readonly<Record<string, readonly [sent: string, resumption: string]>> = {
  'close-mid-speech': ['heard audio 1006', 'taken'],
  'close-while-listening': ['heard audio generated complete 1011', 'taken'],
  'cut-in-during-a-tool': [
    'heard audio toolCall heard audio generated complete audio generated complete',
    'taken',
  ],
  'cut-short': ['heard audio generated complete', 'taken'],
  'empty-turn': ['heard complete', 'taken'],
  'generation-complete-missing': ['heard audio', 'taken'],
  'go-away-in-a-tool': ['heard audio toolCall goAway generated complete 1011', 'taken'],
  'go-away-then-drop': ['heard audio goAway audio generated 1011', 'taken'],
  'go-away-then-mute': ['heard audio generated complete goAway 1011', 'taken'],
  'greeting-ignored': ['interrupted complete heard audio generated complete', 'taken'],
  'mute-after-barge-in': ['heard audio interrupted complete', 'taken'],
  'mute-after-resume': ['heard audio generated complete 1011', 'taken'],
  'mute-in-a-tool': ['heard audio toolCall', 'taken'],
  'mute-mid-speech': ['heard audio', 'taken'],
  'near-silent': ['heard audio generated complete', 'taken'],
  'no-handles': ['heard audio 1011', 'no handle'],
  'no-reply': ['heard complete', 'taken'],
  outage: ['heard audio 1011', '1011'],
  'phantom-interrupted-then-mute': ['heard audio interrupted', 'taken'],
  'poisoned-resume': ['heard audio generated complete 1011', 'taken'],
  'rejected-in-a-row': ['complete heard complete', 'taken'],
  'resume-refused': ['heard audio generated complete 1011', '1011'],
  'resume-refused-for-good': ['heard audio generated complete 1011', '1007'],
  'short-life': ['heard audio generated goAway complete 1011', 'taken'],
  'silent-after-barge-in': ['heard audio interrupted complete heard', 'taken'],
  'slow-reconnect': ['heard audio 1011', 'taken'],
  'tool-result-refused': ['heard audio toolCall generated complete 1008', 'taken'],
  'turn-complete-late': ['heard audio generated complete', 'taken'],
  'turn-complete-missing': ['heard audio generated', 'taken'],
};

/** The caller's "Hello, good morning." with the silence behind it. */
const hello = callerSound('order-question', 8_400, 11_500);

let stage: Stage;

async function passes(ms: number): Promise<void> {
  await settle();
  const endMs = stage.clock.nowMs() + ms;
  await stage.until(() => stage.clock.nowMs() >= endMs, 100);
  await settle();
}

const SHORT: Readonly<Record<string, string>> = {
  inputTranscription: 'heard',
  generationComplete: 'generated',
  turnComplete: 'complete',
};

/** In short: what was sent, goAway and the close among it. */
function sentBy({ messages, closes }: RehearsalClient): string {
  const kinds = messages.flatMap((message) => (message.goAway ? ['goAway'] : order([message])));
  const once = kinds.filter((kind, n) => kind !== kinds[n - 1]).map((kind) => SHORT[kind] ?? kind);
  return [...once, ...closes.map(({ code }) => String(code))].join(' ');
}
function handleIn(messages: readonly LiveServerMessage[]): string {
  const handles = messages.flatMap(({ sessionResumptionUpdate }) => sessionResumptionUpdate?.newHandle ?? []);
  return handles.findLast((handle) => handle !== '') ?? '';
}

/** A greeting is asked for, the caller speaks, and again in the middle of the answer; functions take four seconds. */
async function talks(client: RehearsalClient, cutsIn: boolean): Promise<void> {
  client.session.sendRealtimeInput({ text: 'Greet the caller.' });
  await passes(5_000);
  sendSound(client.session, hello);
  await passes(4_000);
  if (cutsIn && client.closes.length === 0) sendSound(client.session, hello);
  await passes(2_000);
  const functionResponses = callsIn(client.messages).map(({ id = '', name = '' }) => ({
    id,
    name,
    response: { status: 'found' },
  }));
  if (functionResponses.length > 0 && client.closes.length === 0)
    client.session.sendToolResponse({ functionResponses });
  await passes(80_000);
}

/** What a client meets who comes back with the handle and speaks. */
async function resumes(handle: string): Promise<string> {
  const met = answerToSetup(stage.service.url, {
    model: 'models/rehearsal',
    sessionResumption: { handle },
  });
  await passes(4_000);
  const first = await met;
  return first.startsWith('{') ? 'taken' : first.slice(0, 4);
}

describe('the scripted faults', () => {
  afterEach(() => stage.close());

  it.each(Object.entries(FAULTS))('%s sends %j', async (name, [sent, resumption]) => {
    stage = await Stage.open(readDialogue(join(folder, `${name}${ENDING}`)));
    const client = await stage.connect({ sessionResumption: {}, ...declare(['slow_lookup']) });
    await talks(client, /barge-in|cut-in/.test(name));
    expect(sentBy(client).replace(/^audio generated complete /, '')).toBe(sent);
    client.session.close();
    await eventually(() => stage.service.connections === 0);
    const handle = handleIn(client.messages);
    expect(handle === '' ? 'no handle' : await resumes(handle)).toBe(resumption);
  });
});

describe('fixtures/agents/faults', () => {
  it('holds for each an agent of that name, and nothing else', async () => {
    const catalog = await loadAgents({
      selected: 'close-mid-speech',
      folder,
      clock: systemClock,
      log: silentLog,
    });
    const scripted = readdirSync(folder).flatMap((file) =>
      file.endsWith(ENDING) ? file.slice(0, -ENDING.length) : [],
    );
    expect(scripted.sort()).toEqual(Object.keys(FAULTS).sort());
    expect([...catalog.names].sort()).toEqual(scripted);
    for (const name of scripted) expect(catalog.find(name)?.name).toBe(name);
  });
});
