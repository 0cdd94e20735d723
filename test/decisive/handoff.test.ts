/** A caller is connected with a human, over real sockets and the carrier's REST API. */
import twilio from 'twilio';
import { afterEach, describe, expect, it } from 'vitest';
import { ScriptedTwilioRest } from '../support/scripted-twilio-rest.js';
import { Stage, heardMs, says } from '../support/stage.js';
import { waitUntil } from '../support/wait-until.js';

const HUMAN = '+15005550006';
const TOKEN = 'auth-token-of-the-account';
const ACCOUNT = `AC${'0'.repeat(32)}`;

const open: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of open.splice(0).toReversed()) await close();
});

async function setUp(environment: Record<string, string> = { HANDOFF_NUMBER: HUMAN }) {
  const carrier = await ScriptedTwilioRest.start();
  carrier.credentials.set('SK1', 'secret');
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

/** What came of the dialling, as Twilio tells it; signed where there is a token. */
function post(stage: Stage, form: Record<string, string>, token?: string): Promise<Response> {
  const signature =
    token && twilio.getExpectedTwilioSignature(token, 'https://server.example/twilio/handoff', form);
  return fetch(`${stage.url}/twilio/handoff`, {
    method: 'POST',
    body: new URLSearchParams(form),
    headers: signature === undefined ? {} : { 'X-Twilio-Signature': signature },
  });
}

async function ask(stage: Stage, callSid: string, DialCallStatus: string): Promise<string> {
  const response = await post(stage, { CallSid: callSid, DialCallStatus });
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
    expect(update?.callSid).toBe(call.callSid);
    expect(update?.form['Twiml']).toContain(`<Number>${HUMAN}</Number>`);
    // The port was picked by the machine: the carrier is told the one that it is.
    expect(update?.form['Twiml']).toContain(`action="${stage.url}/twilio/handoff"`);
    call.phone.hangUp();
    await call.over;
    await stage.ended(call.callSid);
    const { body } = await stage.json(`/calls/${call.callSid}`);
    expect(body['endReason']).toBe('transferred');
    expect(carrier.updates).toHaveLength(1);
    expect(await ask(stage, call.callSid, 'completed')).toMatch(/<Response><Hangup\/><\/Response>$/);
    // Twilio may send it again: it is answered, and counted once.
    expect(await ask(stage, call.callSid, 'completed')).toMatch(/<Response><Hangup\/><\/Response>$/);
    for (const [said, outcome] of [
      ['no-answer', 'no_answer'],
      ['busy', 'busy'],
      ['failed', 'failed'],
      ['canceled', 'canceled'],
    ] as const) {
      const callSid = `CA${outcome.length}${'0'.repeat(31)}`;
      expect(await ask(stage, callSid, said)).toMatch(/<Say>[^<]{20,}<\/Say><Hangup\/><\/Response>$/);
      expect(await stage.metric(`earshot_handoffs_total{kind="cold",outcome="${outcome}"}`)).toBe(1);
    }
    expect(await stage.metric('earshot_handoffs_total{kind="cold",outcome="completed"}')).toBe(1);
    expect(await stage.metric('earshot_calls_total{direction="inbound",end_reason="transferred"}')).toBe(1);
  });

  it('leaves the caller with the agent, which is told, where the carrier refuses', async () => {
    const { carrier, stage, call } = await setUp();
    carrier.updateStatus = 400;
    says(call.model, 'I connect you.', { ms: 300 });
    await waitUntil('what the agent is told', () =>
      JSON.stringify(call.model.received).includes('could not be connected with a human'),
    );
    expect((await stage.json(`/calls/${call.callSid}`)).body['state']).toBe('live');
    expect(await stage.metric('earshot_handoffs_total{kind="cold",outcome="refused"}')).toBe(1);
    call.phone.hangUp();
    await call.over;
  });

  it('takes what came of it from the carrier alone, and only where it says what', async () => {
    const stage = await Stage.open({
      PUBLIC_URL: 'https://server.example',
      TWILIO_AUTH_TOKEN: TOKEN,
      CONSOLE_TOKEN: 'a-token-of-the-console',
    });
    open.push(() => stage.close());
    const said = { CallSid: `CA${'1'.repeat(32)}`, DialCallStatus: 'busy' };
    expect((await post(stage, said)).status).toBe(403);
    expect((await post(stage, { CallSid: said.CallSid }, TOKEN)).status).toBe(400);
    expect((await post(stage, { DialCallStatus: 'busy' }, TOKEN)).status).toBe(400);
    expect((await post(stage, said, TOKEN)).status).toBe(200);
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
