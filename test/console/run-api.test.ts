/** What the text routes answer, over real HTTP, while the store, the ids and the bodies are as they may be. */
import { bareTools } from '../support/bare-tools.js';
import type { AddressInfo } from 'node:net';
import express from 'express';
import { afterEach, describe, expect, it } from 'vitest';
import { defineAgent } from '../../src/agent/agent.js';
import { addRunRoutes } from '../../src/console/run-api.js';
import { StoreError } from '../../src/errors.js';
import type { Event } from '../../src/event/event.js';
import type { GenerateText } from '../../src/model/text-model.js';
import { silentLog } from '../../src/observe/log.js';
import type { RunObserver } from '../../src/observe/run-observer.js';
import { systemClock } from '../../src/clock.js';
import { eventText } from '../../src/run/run-happenings.js';
import { TextRuns } from '../../src/run/text-runs.js';
import { Stage } from '../support/stage.js';
import { waitUntil } from '../support/wait-until.js';

let close: (() => Promise<void>) | undefined;

afterEach(async () => {
  await close?.();
  close = undefined;
});

const answers: GenerateText = async function* () {
  yield { type: 'text', text: 'Here it is.' };
  yield { type: 'end', finishReason: 'STOP', parts: [] };
};
const fails: GenerateText = async function* () {
  yield { type: 'text', text: 'Here' };
  throw new Error('the model is gone');
};

/** The routes over a store that loses the events of these numbers, counted from 0; `stored` is what it holds. */
async function open(generate: GenerateText, lost: readonly number[], code: StoreError['code']) {
  const stored: string[] = [];
  let appended = 0;
  const runs = new TextRuns({
    agent: defineAgent({ name: 'support', instruction: 'Be brief.' }),
    generate,
    store: { createSession: async () => true, getSession: async () => undefined },
    writer: {
      append: async (_session: unknown, event: Event) => {
        appended += 1;
        if (lost.includes(appended - 1)) return { stored: false, error: new StoreError(code, 'why') };
        stored.push(eventText(event));
        return { stored: true, seq: appended };
      },
    },
    isBusy: () => false,
    tools: bareTools(systemClock),
    recall: async () => undefined,
    observerOf: () => new Proxy({} as RunObserver, { get: () => () => {} }),
    clock: systemClock,
    log: silentLog,
  });
  const app = express().use(express.json());
  addRunRoutes(app, {
    runs: {
      start: (request, signal) => runs.start(request, signal),
      broadcastOf: () => undefined,
      counts: () => ({}),
    },
    log: silentLog,
  });
  const http = app.listen(0, '127.0.0.1');
  await new Promise((resolve) => http.once('listening', resolve));
  close = () => new Promise((resolve) => http.close(() => resolve()));
  const run = async () => {
    const response = await fetch(`http://127.0.0.1:${(http.address() as AddressInfo).port}/run`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify(Stage.message('s1', 'Where is it?')),
    });
    return { status: response.status, body: (await response.json()) as Record<string, unknown> };
  };
  return { run, stored };
}

function textsOf(body: Record<string, unknown>): string[] {
  return (body['messages'] as { text: string }[]).map(({ text }) => text);
}

describe('POST /run, where not all could be stored', () => {
  for (const code of ['store_failed', 'store_no_session', 'store_refused'] as const)
    for (const lost of [[0], [1], [0, 1]])
      it(`says ${code} of the events ${lost.join(' and ')}, and calls only what is stored said`, async () => {
        const { run, stored } = await open(answers, lost, code);
        const { status, body } = await run();
        expect({ status, code: body['code'] }).toEqual({ status: 503, code });
        expect(body['error']).toMatch(/could not be stored/u);
        expect(textsOf(body)).toEqual(stored);
        expect(stored).toHaveLength(2 - lost.length);
      });

  it.each([[[0]], [[1]], [[0, 1]]])(
    'says first why the run failed, where it did (lost: %j)',
    async (lost) => {
      const { run, stored } = await open(fails, lost, 'store_failed');
      const { status, body } = await run();
      expect({ status, code: body['code'] }).toEqual({ status: 502, code: 'internal_error' });
      expect(body['error']).toMatch(/failed.*could not be stored/u);
      expect(textsOf(body)).toEqual(stored.filter((text) => text !== ''));
    },
  );

  it('answers 200 with both messages where all was', async () => {
    const { run, stored } = await open(answers, [], 'store_failed');
    const { status, body } = await run();
    expect({ status, texts: textsOf(body), code: body['code'] }).toEqual({
      status: 200,
      texts: ['Where is it?', 'Here it is.'],
      code: undefined,
    });
    expect(stored).toEqual(textsOf(body));
  });

  it('says store_no_session where the session is deleted while the model answers', async () => {
    const stage = await Stage.open();
    close = () => stage.close();
    stage.textModel.answer = () => {};
    const answered = stage.run('s1', 'Where is it?', 'ada');
    await waitUntil('the model to be asked', async () => stage.textModel.asked.length > 0);
    const asked = stage.textModel.asked[0]!;
    const path = `${stage.url}/apps/support/users/ada/sessions/s1`;
    expect((await fetch(path, { method: 'DELETE' })).status).toBe(204);
    asked.answers('Here ', 'it is.');
    const { status, body } = await answered;
    expect({ status, code: body['code'] }).toEqual({ status: 503, code: 'store_no_session' });
    expect(textsOf(body)).not.toContain('Here it is.');
    expect((await fetch(path)).status).toBe(404);
  });
});
