/**
 * Decisive script 6, and every way to lose a model's connection: the agent is told once, what was begun is finished, and the call goes
 * on. Rows J4, J5, J6, E7, X4, X24. Time is stepped; the sockets are real.
 */
import { afterEach, describe, expect, it } from 'vitest';
import type { Disconnect } from '../../src/agent/agent.js';
import { HeldTool, desk, linesOf } from '../support/probe-agents.js';
import { LinkedCall } from '../support/linked-call.js';
import { passWhile } from '../support/pass-while.js';
import type { ScriptedConnection } from '../support/scripted-gemini.js';
import { ServerProcess } from '../support/server-process.js';
import { heardMs, says, Stage } from '../support/stage.js';
import { waitUntil } from '../support/wait-until.js';

/** A word a half second. */
const LONG = Array.from({ length: 16 }, (_, at) => `word${at + 1}`).join(' ');

let call: LinkedCall | undefined;
afterEach(async () => {
  await call?.close();
  call = undefined;
});

/** An agent that notes what it is told, with a tool that the test holds. */
function noting() {
  const hooks: Disconnect[] = [];
  const slow = new HeldTool('slow');
  const agent = desk({ tools: [slow.tool], onDisconnect: (_ctx, how) => void hooks.push(how) });
  return { hooks, slow, agent };
}

/** Ways to lose a connection, each with the code that the agent is told. */
const DEATHS: readonly (readonly [name: string, code: number, kill: (model: ScriptedConnection) => void])[] =
  [
    ['1000', 1000, (model) => model.close(1000)],
    ['1006', 1006, (model) => model.terminate()],
    ['1007', 1007, (model) => model.close(1007, 'Request contains an invalid argument.')],
    ['1008', 1008, (model) => model.close(1008, 'Operation is not implemented, or supported, or enabled.')],
    ['1011', 1011, (model) => model.close(1011, 'Internal error encountered.')],
  ];

type Noting = ReturnType<typeof noting>;

interface Moment {
  readonly name: string;
  readonly begin: (own: Noting) => Promise<LinkedCall>;
  /** What has to be so with the next connection, in the end. */
  readonly outcome: 'resumed' | 'fresh';
  /** What the next connection is told, when there is something to be told. */
  readonly told: readonly RegExp[];
}

async function midAnswer({ agent }: Noting): Promise<LinkedCall> {
  const begun = await LinkedCall.greeted(agent);
  begun.model.sendInputTranscription('Where is my order?');
  says(begun.model, 'It left the warehouse this morning', { ms: 1_200, pieces: 3, open: true });
  await begun.pass(300);
  return begun;
}

const MOMENTS: readonly Moment[] = [
  {
    name: 'the greeting',
    begin: async ({ agent }) => {
      const begun = await LinkedCall.open(agent);
      says(begun.model, 'Hello, this', { ms: 600, open: true });
      await begun.pass(300);
      return begun;
    },
    outcome: 'fresh',
    told: [/lost for a moment.*broke off.*"Hello,/],
  },
  { name: 'silence', begin: ({ agent }) => LinkedCall.greeted(agent), outcome: 'resumed', told: [] },
  {
    name: 'an answer',
    begin: midAnswer,
    outcome: 'resumed',
    told: [/lost for a moment.*broke off.*"It left the warehouse/],
  },
  {
    name: 'a function',
    begin: async ({ agent, slow }) => {
      const begun = await LinkedCall.greeted(agent);
      begun.model.sendInputTranscription('Do the slow thing.');
      begun.model.toolCall({ id: 'c1', name: 'slow' });
      await begun.passUntil('the function', () => slow.isWaiting);
      return begun;
    },
    outcome: 'resumed',
    told: [/lost for a moment|Your tool slow/],
  },
];

describe('a connection that is lost', () => {
  for (const { name, begin, outcome, told } of MOMENTS) {
    it.each(DEATHS)(
      `in ${name} with %s is followed by another, and the call goes on`,
      async (_name, code, kill) => {
        const own = noting();
        call = await begin(own);
        kill(call.model);
        const next = await call.passToConnection(2);
        expect(call.handles).toEqual([undefined, outcome === 'resumed' ? 'h1' : undefined]);
        if (own.slow.isWaiting) {
          expect(own.hooks).toEqual([]);
          await call.pass(200);
          own.slow.letGo();
        }
        await call.pass(4_000);
        expect(own.hooks.map((hook) => hook.code)).toEqual([code]);
        for (const text of told) expect(next.receivedTextInputs.join('\n')).toMatch(text);
        if (told.length === 0) expect(next.receivedTextInputs).toEqual([]);
        // Nobody is greeted twice.
        expect(call.told.flat().filter((text) => text.includes('word for word'))).toHaveLength(1);
        const heardBefore = heardMs(call.phone);
        says(next, 'Here I am again.', { ms: 600 });
        await call.pass(1_200);
        expect(heardMs(call.phone) - heardBefore).toBeGreaterThan(500);
        await call.passUntilSaid('desk: Here I am again.');
        expect(await call.reconnects()).toEqual([`lost ${outcome} 1`]);
        await call.hangUp();
        expect(own.hooks).toHaveLength(1);
      },
    );
  }
});

describe('script 6: a connection that is cut while a function takes a second', () => {
  /** Asked and answered once, then a handle, one that cannot be resumed, and the slow function; cut after 200 ms. */
  async function cutInTheSlowFunction(own: Noting): Promise<LinkedCall> {
    const begun = await LinkedCall.greeted(own.agent, 'h0');
    begun.model.sendInputTranscription('What is your name?');
    says(begun.model, 'I am the desk of old.', { ms: 400 });
    await begun.pass(800);
    begun.model.sendInputTranscription('Tell me all.');
    says(begun.model, LONG, { ms: 8_000, pieces: 16, open: true });
    await begun.pass(2_000);
    begun.model.interrupt();
    await begun.pass(200);
    begun.model.sendResumptionHandle('h1');
    begun.model.sendInputTranscription('Do the slow thing.');
    begun.model.toolCall({ id: 'c1', name: 'slow' });
    begun.model.sendResumptionHandle('', false);
    await begun.passUntil('the function', () => own.slow.isWaiting);
    await begun.pass(200);
    begun.model.terminate();
    return begun;
  }

  /** The rest of the second, and what follows from the result. */
  async function letsTheFunctionEnd({ slow, hooks }: Noting, begun: LinkedCall): Promise<void> {
    await begun.pass(800);
    expect(hooks).toEqual([]);
    expect(slow.aborted).toEqual([]);
    slow.letGo(() => ({ message: 'It is done: 4711.' }));
    await begun.passUntil('the result', () => begun.model.receivedTextInputs.join().includes('4711'));
    await begun.passUntil('the hook', () => hooks.length > 0);
    says(begun.model, 'The number is 4711.', { ms: 400 });
    await begun.passUntilSaid('desk: The number is 4711.');
    await begun.pass(3_000);
    expect(slow.runs).toBe(1);
    // It is told once.
    expect(begun.told.flat().join('\n').match(/4711/g)).toHaveLength(1);
    expect(hooks.map(({ code }) => code)).toEqual([1006]);
    const lines = linesOf(await passWhile(begun.clock, begun.stage.events(begun.phone.callSid)));
    expect(lines.filter((line) => line.startsWith('call') || line.startsWith('response'))).toEqual([
      'call c1',
      'response c1',
    ]);
    expect(begun.handles.slice(0, 2)).toEqual([undefined, 'h1']);
  }

  it('J4 J6: finishes it, tells the agent once, and goes on with the last handle; nothing is told twice', async () => {
    const own = noting();
    call = await cutInTheSlowFunction(own);
    const next = await call.passToConnection(2);
    await letsTheFunctionEnd(own, call);
    expect(call.models).toHaveLength(2);
    // What the session knows stays with it.
    const told = [call.instruction(next), ...next.receivedTextInputs].join('\n');
    for (const known of ['the desk of old', 'What is your name', 'Tell me all'])
      expect(told).not.toContain(known);
    expect(call.instruction(next)).not.toContain('word1');
    expect(await call.reconnects()).toEqual(['lost resumed 1']);
    await call.hangUp();
    expect(own.hooks).toHaveLength(1);
  });

  it.each([1007, 1008])(
    'J6: is told anew what was heard where the handle is refused with %i',
    async (code) => {
      const own = noting();
      call = await cutInTheSlowFunction(own);
      call.stage.gemini.script.setup = (connection) => {
        const { handle } = (connection.setup?.['sessionResumption'] ?? {}) as { handle?: string };
        if (handle === undefined) connection.setupComplete();
        else connection.close(code, 'BidiGenerateContent session not found');
      };
      const next = await call.passToConnection(3);
      const instruction = call.instruction(next);
      for (const known of [
        'What is your name?',
        'I am the desk of old.',
        'Tell me all.',
        'word1 ',
        'Do the slow thing.',
      ])
        expect(instruction).toContain(known);
      expect(instruction).toContain('it is still being carried out');
      await letsTheFunctionEnd(own, call);
      expect(call.handles).toEqual([undefined, 'h1', undefined]);
      const told = JSON.stringify(await passWhile(call.clock, call.stage.events(call.phone.callSid)));
      const words = [...instruction.matchAll(/word\d+/g)].map(([word]) => word);
      expect(words.length).toBeLessThan(6);
      for (const word of words) expect(told).toContain(word);
      expect(await call.reconnects()).toEqual(['lost fresh 1']);
      await call.hangUp();
      expect(own.hooks).toHaveLength(1);
    },
  );
});

describe('the agent’s onDisconnect', () => {
  it.each([
    ['a TCP reset', (model: ScriptedConnection) => model.reset()],
    ['bytes that are no frame', (model: ScriptedConnection) => model.sendGarbage()],
  ])('J5 X24: is called once for %s, and the call goes on', async (_name, kill) => {
    const own = noting();
    call = await LinkedCall.greeted(own.agent);
    kill(call.model);
    await call.passToConnection(2);
    await call.pass(1_000);
    expect(own.hooks).toHaveLength(1);
    // The socket is cut by our side, which the model’s may see only after the next one has come.
    await call.hangUp({ mostOpen: 2 });
    expect(own.hooks).toHaveLength(1);
  });

  it('J5: is not called for a connection that we leave or close, nor where the caller hangs up', async () => {
    const own = noting();
    call = await LinkedCall.greeted(own.agent);
    call.model.goAway('10s');
    await call.passToConnection(2);
    await call.pass(500);
    expect(await call.reconnects()).toEqual(['go_away resumed 1']);
    await call.hangUp();
    expect(own.hooks).toEqual([]);
  });

  it('J5: is called once for each connection that is lost, not for tries that fail', async () => {
    const own = noting();
    call = await LinkedCall.greeted(own.agent);
    call.stage.gemini.script.handshake = { httpStatus: 503 };
    call.model.terminate();
    await call.passUntil('two tries', () => call!.stage.gemini.handshakes >= 3);
    call.stage.gemini.script.handshake = 'accept';
    await call.passToConnection(2);
    await call.pass(500);
    expect(own.hooks).toHaveLength(1);
    call.model.close(1011);
    await call.passToConnection(3);
    await call.pass(500);
    expect(own.hooks.map(({ code }) => code)).toEqual([1006, 1011]);
    await call.hangUp();
    expect(own.hooks).toHaveLength(2);
  });
});

describe('a server that is killed after its model was lost', () => {
  it('E7 J7: has kept what was said over the loss, and no fragment', async () => {
    let running: ServerProcess | undefined;
    let settings: Readonly<Record<string, string>> = {};
    const stage = await Stage.around(async (given) => {
      settings = { ...given, PORT: '0' };
      running = new ServerProcess(settings);
      return { url: await running.url(), close: async () => running?.kill() };
    });
    try {
      const { phone, over, model, callSid } = await stage.call();
      model.sendResumptionHandle('h1');
      model.sendInputTranscription('Are you there?');
      says(model, 'Yes, I am.', { ms: 200 });
      await stage.begun(callSid);
      await waitUntil('the answer', async () => (await stage.said(callSid)).length === 2);
      model.terminate();
      const next = await stage.gemini.connection(1);
      await next.waitForSetup();
      next.sendInputTranscription('And now?');
      says(next, 'This is half of a long sentence', { ms: 3_000, pieces: 3, open: true });
      await waitUntil('the half to be heard', () => heardMs(phone) > 1_200);
      await Promise.all([running?.kill(), over]);
      phone.hangUp();
      running = new ServerProcess(settings);
      const again = Stage.at(await running.url(), stage);
      const said = await again.said(callSid);
      expect(said.slice(0, 2)).toEqual(['user: Are you there?', 'support: Yes, I am.']);
      expect(said.join('\n')).not.toContain('half');
      expect((await again.events(callSid)).every(({ partial }) => partial !== true)).toBe(true);
    } finally {
      await stage.close();
    }
  });
});
