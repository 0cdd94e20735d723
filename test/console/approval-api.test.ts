/** Waiting calls and the ledger over HTTP: the whole server, and its store at the same file. */
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/clock.js';
import { silentLog } from '../../src/observe/log.js';
import { openStore } from '../../src/store/open-store.js';
import type { Store } from '../../src/store/store.js';
import { Stage } from '../support/stage.js';

const KEY = { appName: 'support', userId: '+15550100007', id: 'CA1' };
const JSON_BODY = { 'Content-Type': 'application/json' };
const REQUESTED_MS = Date.UTC(2026, 0, 2, 3, 4, 5, 678);

let stage: Stage | undefined;
let store: Store | undefined;

afterEach(async () => {
  await store?.close();
  await stage?.close();
  store = undefined;
  stage = undefined;
});

async function start(environment: Record<string, string> = {}): Promise<{ url: string; store: Store }> {
  stage = await Stage.open(environment);
  store = await openStore(`sqlite:${join(stage.folder, 'earshot.db')}`, {
    clock: systemClock,
    log: silentLog,
  });
  await store.createSession(KEY);
  return { url: stage.url, store };
}

async function add(to: Store, id: string, requestedAtMs = REQUESTED_MS): Promise<void> {
  await to.addPendingCall({
    id,
    session: KEY,
    callSid: 'CA1',
    invocationId: 'run-1',
    callId: `call-of-${id}`,
    tool: 'process_refund',
    args: { order_id: 'A-1' },
    kind: 'approval',
    guards: ['limits'],
    requestedAtMs,
  });
}

async function ask(url: string, init: RequestInit = {}) {
  const response = await fetch(url, init);
  const body = (await response.json()) as Record<string, unknown>;
  return { status: response.status, body };
}

function decide(url: string, id: string, body: string, headers: Record<string, string> = JSON_BODY) {
  return ask(`${url}/approvals/${id}`, { method: 'POST', headers, body });
}

describe('approvals', () => {
  it('are listed while they wait, page by page, oldest first', async () => {
    const { url, store: kept } = await start();
    expect(await ask(`${url}/approvals`)).toEqual({ status: 200, body: { approvals: [] } });
    for (const [at, id] of ['p3', 'p1', 'p2'].entries()) await add(kept, id, REQUESTED_MS + at);
    const first = await ask(`${url}/approvals?limit=2`);
    expect(first.body['approvals']).toMatchObject([{ id: 'p3' }, { id: 'p1' }]);
    const second = await ask(`${url}/approvals?limit=2&after=${String(first.body['next'])}`);
    expect(second.body).toEqual({
      approvals: [
        {
          id: 'p2',
          callSid: 'CA1',
          sessionId: 'CA1',
          tool: 'process_refund',
          args: { order_id: 'A-1' },
          kind: 'approval',
          waitsFor: 'decision',
          requestedAt: '2026-01-02T03:04:05.680Z',
        },
      ],
    });
    for (const query of ['limit=0', 'limit=x', 'after=x', 'after=a&after=b'])
      expect((await ask(`${url}/approvals?${query}`)).status).toBe(400);
  });

  it('that are being worked at are told apart, and decided like others', async () => {
    const { url, store: kept } = await start();
    await kept.addPendingCall({
      id: 'p1',
      session: KEY,
      callSid: 'CA1',
      invocationId: 'run-1',
      callId: 'c1',
      tool: 'search',
      args: {},
      kind: 'longRunning',
      guards: [],
      requestedAtMs: REQUESTED_MS,
      isWorking: true,
    });
    const listed = async () => (await ask(`${url}/approvals`)).body['approvals'];
    expect(await listed()).toMatchObject([{ id: 'p1', kind: 'longRunning', waitsFor: 'handler' }]);
    await kept.handOverPendingCall('p1');
    expect(await listed()).toMatchObject([{ id: 'p1', waitsFor: 'decision' }]);
    expect((await decide(url, 'p1', '{"decision":"deny"}')).status).toBe(200);
  });

  it('are decided once; a repeat changes nothing and tells what was decided', async () => {
    const { url, store: kept } = await start();
    await add(kept, 'p1');
    await add(kept, 'p2');
    const answer = { status: 200, body: { id: 'p1', decision: 'approve' } };
    expect(await decide(url, 'p1', '{"decision":"approve","by":"Grace"}')).toEqual(answer);
    expect(await decide(url, 'p1', '{"decision":"deny"}')).toEqual(answer);
    expect(await decide(url, 'p1', '{"decision":"approve","by":"Grace"}')).toEqual(answer);
    expect(await kept.findPendingCall('p1')).toMatchObject({ id: 'p1', decision: 'approve' });
    expect((await ask(`${url}/approvals`)).body['approvals']).toMatchObject([{ id: 'p2' }]);
    await kept.settlePendingCall('p2');
    expect(await decide(url, 'p2', '{"decision":"approve"}')).toEqual({
      status: 200,
      body: { id: 'p2', decision: null },
    });
    expect(await kept.findPendingCall('p2')).not.toHaveProperty('decision');
  });

  it.each([
    ['a good body', '{"decision":"approve"}', JSON_BODY],
    ['a bad body', '{"decision":7}', JSON_BODY],
    ['a body that is no JSON', '{"decision":', JSON_BODY],
    ['a body of another kind', 'decision=approve', { 'Content-Type': 'text/plain' }],
    ['an empty body', '', {}],
    ['a large body', JSON.stringify({ by: 'x'.repeat(100_000) }), JSON_BODY],
  ])('that nobody asked for are not found, with %s', async (_, body, headers) => {
    const { url, store: kept } = await start();
    await add(kept, 'p1');
    for (const id of ['unknown', 'P1', '%00', '..%2Fp1', 'x'.repeat(1_000)])
      expect((await decide(url, id, body, headers as Record<string, string>)).status).toBe(404);
    expect((await kept.listPendingCalls()).items).toHaveLength(1);
  });

  it.each([
    ['{}', 400, 'decision'],
    ['{"decision":"maybe"}', 400, 'decision'],
    ['{"decision":true}', 400, 'decision'],
    ['{"decision":"approve","by":7}', 400, 'by'],
    ['{"decision":"approve","by":""}', 400, 'by'],
    [JSON.stringify({ decision: 'approve', by: 'a\0' }), 400, 'by'],
    [JSON.stringify({ decision: 'approve', by: '日'.repeat(200) }), 400, 'by'],
    ['{"decision":"approve","note":"x"}', 400, 'note'],
    ['[]', 400, 'decision'],
    ['{"decision":', 400, 'JSON'],
    ['', 400, 'decision'],
    [JSON.stringify({ decision: 'approve', by: 'x'.repeat(100_000) }), 413, ''],
  ])('are not decided by the body %#, which is told what is wrong', async (body, status, word) => {
    const { url, store: kept } = await start();
    await add(kept, 'p1');
    const answer = await decide(url, 'p1', body);
    expect(answer).toMatchObject({ status, body: { error: expect.stringContaining(word) as string } });
    expect((await kept.listPendingCalls()).items).toHaveLength(1);
    const plain = await decide(url, 'p1', '{"decision":"approve"}', { 'Content-Type': 'text/plain' });
    expect(plain.status).toBe(415);
  });

  it('and the ledger are for the operator only', async () => {
    const { url, store: kept } = await start({ CONSOLE_TOKEN: 'console-token-of-length' });
    await add(kept, 'p1');
    const doors = [`${url}/approvals`, `${url}/ledger`];
    for (const door of doors) expect((await ask(door)).status).toBe(401);
    for (const id of ['p1', 'unknown'])
      expect((await decide(url, id, '{"decision":"approve"}')).status).toBe(401);
    const headers = { Authorization: 'Bearer console-token-of-length', ...JSON_BODY };
    for (const door of doors) expect((await ask(door, { headers })).status).toBe(200);
    expect((await decide(url, 'unknown', '', headers)).status).toBe(404);
    expect((await decide(url, 'p1', '{"decision":"deny"}', headers)).status).toBe(200);
    const local = await ask(`${url}/approvals/p1`, {
      method: 'POST',
      headers: { Origin: 'https://evil.example.com', ...JSON_BODY },
      body: '{"decision":"approve"}',
    });
    expect(local.status).toBe(401);
  });
});

describe('the ledger', () => {
  it('is shown page by page, by app, account and state', async () => {
    const { url, store: kept } = await start();
    expect(await ask(`${url}/ledger`)).toEqual({ status: 200, body: { entries: [] } });
    const amount = { account: 'order:A-1', amountMinor: 4_000, currency: 'USD', limitMinor: 10_000 };
    const claim = { session: KEY, tool: 'process_refund', callId: 'c1', guards: ['limits'] };
    await kept.claim({ ...claim, key: 'k1', amount, approvedBy: 'Grace' });
    await kept.claim({ ...claim, key: 'k2' });
    await kept.settle('support', 'k2', { refund_id: 'R-1' });
    const all = (await ask(`${url}/ledger`)).body['entries'] as Record<string, unknown>[];
    expect(all).toEqual([
      {
        id: expect.any(String) as string,
        appName: 'support',
        key: 'k1',
        state: 'open',
        tool: 'process_refund',
        callId: 'c1',
        sessionId: 'CA1',
        userId: KEY.userId,
        amount,
        guards: ['limits'],
        approvedBy: 'Grace',
        claimedAt: expect.stringMatching(/^\d{4}-.*Z$/) as string,
      },
      expect.objectContaining({
        key: 'k2',
        state: 'done',
        settledAt: expect.stringMatching(/^\d{4}-.*Z$/) as string,
        response: { refund_id: 'R-1' },
      }),
    ]);
    const first = await ask(`${url}/ledger?limit=1`);
    expect(first.body['entries']).toEqual(all.slice(0, 1));
    expect(await ask(`${url}/ledger?limit=1&after=${String(first.body['next'])}`)).toEqual({
      status: 200,
      body: { entries: all.slice(1) },
    });
    for (const [query, found] of [
      ['state=open', all.slice(0, 1)],
      ['state=done&app=support', all.slice(1)],
      ['account=order:A-1', all.slice(0, 1)],
      ['account=order:A-2', []],
      ['app=sales', []],
    ] as const)
      expect((await ask(`${url}/ledger?${query}`)).body['entries']).toEqual(found);
    for (const query of ['state=odd', 'limit=0', 'after=x', 'app=', 'account=%00', 'app=a&app=b'])
      expect((await ask(`${url}/ledger?${query}`)).status).toBe(400);
  });

  it('is closed by a person who says why: settled, and a repeat has that answer, or released', async () => {
    const { url, store: kept } = await start();
    const claim = { session: KEY, tool: 'process_refund', callId: 'c1', guards: [] };
    for (const key of ['k1', 'k 2/ü']) await kept.claim({ ...claim, key });
    const [one, two] = ((await ask(`${url}/ledger`)).body['entries'] as { id: string }[]).map(({ id }) => id);
    const close = (id: string | undefined, action: string, body: object) =>
      ask(`${url}/ledger/${id}/${action}`, {
        method: 'POST',
        headers: JSON_BODY,
        body: JSON.stringify(body),
      });
    const why = { reason: 'the bank shows it', by: 'Grace' };
    const response = { refund_id: 'R-1' };
    for (const [action, body, word] of [
      ['settle', why, 'response'],
      ['settle', { response }, 'reason'],
      ['settle', { ...why, response: [] }, 'response'],
      ['settle', { ...why, response, reason: ' ' }, 'reason'],
      ['release', {}, 'reason'],
      ['release', { ...why, response }, 'response'],
      ['release', { ...why, reason: 'x'.repeat(1_001) }, 'reason'],
      ['release', { ...why, by: 7 }, 'by'],
    ] as const)
      expect(await close(one, action, body)).toMatchObject({
        status: 400,
        body: { error: expect.stringContaining(word) as string },
      });
    expect(await close(one, 'settle', { ...why, response })).toEqual({
      status: 200,
      body: { id: one, state: 'done' },
    });
    expect((await close(one, 'settle', { ...why, response })).status).toBe(409);
    expect((await close(one, 'release', why)).status).toBe(409);
    expect(await kept.claim({ ...claim, key: 'k1' })).toMatchObject({ kind: 'done', response });
    expect((await close(two, 'release', why)).body).toEqual({ id: two, state: 'released' });
    for (const id of [two, 'unknown', '%00', 'W10', `${one}=`])
      expect((await close(id, 'release', why)).status).toBe(404);
    expect(await kept.claim({ ...claim, key: 'k 2/ü' })).toEqual({ kind: 'claimed' });
    expect((await ask(`${url}/ledger/closings`)).body['closings']).toMatchObject([
      { key: 'k1', action: 'settle', ...why, closedAt: expect.stringMatching(/Z$/) as string },
      { key: 'k 2/ü', action: 'release', ...why },
    ]);
  });

  it('is closed by the operator only', async () => {
    const { url, store: kept } = await start({ CONSOLE_TOKEN: 'console-token-of-length' });
    await kept.claim({ session: KEY, tool: 'process_refund', callId: 'c1', guards: [], key: 'k1' });
    const id = Buffer.from(JSON.stringify([KEY.appName, 'k1'])).toString('base64url');
    for (const action of ['settle', 'release']) {
      const body = JSON.stringify({ reason: 'why', ...(action === 'settle' && { response: {} }) });
      const answer = await ask(`${url}/ledger/${id}/${action}`, { method: 'POST', headers: JSON_BODY, body });
      expect(answer.status).toBe(401);
    }
    expect((await ask(`${url}/ledger/closings`)).status).toBe(401);
    expect((await kept.listLedger({ state: 'open' })).items).toHaveLength(1);
  });
});
