/** A caller is connected with a human, over real sockets and the carrier's REST API. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { Stage, heardMs, says } from '../support/stage.js';
import { waitUntil } from '../support/wait-until.js';

const HUMAN = '+15005550006';
const ACCOUNT = `AC${'0'.repeat(32)}`;

/** The part of Twilio's REST API that redirects calls; `status` is what it answers. */
class Carrier {
  readonly updates: { readonly path: string; readonly twiml: string }[] = [];
  status = 200;
  readonly #http: Server;

  private constructor() {
    this.#http = createServer((request, response) => {
      const pieces: Buffer[] = [];
      request.on('data', (piece: Buffer) => pieces.push(piece));
      request.on('end', () => {
        const form = new URLSearchParams(Buffer.concat(pieces).toString());
        this.updates.push({ path: request.url ?? '', twiml: form.get('Twiml') ?? '' });
        response.writeHead(this.status, { 'Content-Type': 'application/json' });
        response.end(JSON.stringify(this.status === 200 ? { sid: 'CA1' } : { code: 20500, message: 'no' }));
      });
    });
  }

  static async start(): Promise<Carrier> {
    const carrier = new Carrier();
    await new Promise<void>((resolve) => {
      carrier.#http.listen(0, '127.0.0.1', resolve);
    });
    return carrier;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#http.address() as AddressInfo).port}`;
  }

  close(): void {
    this.#http.closeAllConnections();
    this.#http.close();
  }
}

const open: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of open.splice(0).toReversed()) await close();
});

async function setUp(environment: Record<string, string> = { HANDOFF_NUMBER: HUMAN }) {
  const carrier = await Carrier.start();
  const stage = await Stage.open({
    TWILIO_ACCOUNT_SID: ACCOUNT,
    TWILIO_API_KEY: 'SK1',
    TWILIO_API_SECRET: 'secret',
    TWILIO_API_BASE_URL: carrier.url,
    ...environment,
  });
  open.push(
    () => carrier.close(),
    () => stage.close(),
  );
  const call = await stage.call();
  says(call.model, 'Hello.', { ms: 500 });
  await waitUntil('the greeting', () => heardMs(call.phone) >= 400);
  call.model.toolCall({ id: 'h1', name: 'connect_to_human', args: { reason: 'a complaint' } });
  return { carrier, stage, call };
}

async function ask(stage: Stage, callSid: string, DialCallStatus: string): Promise<string> {
  const body = new URLSearchParams({ CallSid: callSid, DialCallStatus });
  const response = await fetch(`${stage.url}/twilio/handoff`, { method: 'POST', body });
  expect(response.status).toBe(200);
  return response.text();
}

describe('connect_to_human', () => {
  it('has the carrier dial behind the last mark of the farewell; the stream’s end is no hang-up', async () => {
    const { carrier, stage, call } = await setUp();
    await waitUntil('the result', () => JSON.stringify(call.model.received).includes('transferring'));
    says(call.model, 'I connect you with a colleague.', { ms: 1_000 });
    await waitUntil('the transfer', () => carrier.updates.length > 0);
    expect(heardMs(call.phone)).toBeGreaterThanOrEqual(1_400);
    const [update] = carrier.updates;
    expect(update?.path).toContain(`/Calls/${call.callSid}.json`);
    expect(update?.twiml).toContain(`<Number>${HUMAN}</Number>`);
    expect(update?.twiml).toContain(`action="${stage.url}/twilio/handoff"`);
    call.phone.hangUp();
    await call.over;
    await stage.ended(call.callSid);
    const { body } = await stage.json(`/calls/${call.callSid}`);
    expect(body['endReason']).toBe('transferred');
    expect(carrier.updates).toHaveLength(1);
    expect(await ask(stage, call.callSid, 'completed')).not.toContain('<Say>');
    expect(await ask(stage, call.callSid, 'no-answer')).toContain('<Say>');
    expect(await stage.metric('earshot_handoffs_total{kind="cold",outcome="no_answer"}')).toBe(1);
    expect(await stage.metric('earshot_calls_total{direction="inbound",end_reason="transferred"}')).toBe(1);
  });

  it('leaves the caller with the agent, which is told, where the carrier refuses', async () => {
    const { carrier, stage, call } = await setUp();
    carrier.status = 400;
    says(call.model, 'I connect you.', { ms: 300 });
    await waitUntil('what the agent is told', () =>
      JSON.stringify(call.model.received).includes('could not be connected with a human'),
    );
    expect((await stage.json(`/calls/${call.callSid}`)).body['state']).toBe('live');
    expect(await stage.metric('earshot_handoffs_total{kind="cold",outcome="refused"}')).toBe(1);
    call.phone.hangUp();
    await call.over;
  });

  it('is an error that the agent speaks about where no human is configured', async () => {
    const { carrier, call } = await setUp({});
    await waitUntil('the result', () =>
      JSON.stringify(call.model.received).includes('No number of a human is configured'),
    );
    call.phone.hangUp();
    await call.over;
    expect(carrier.updates).toEqual([]);
  });
});
