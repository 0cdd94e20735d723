/** Worker tools of every temper, for tests of workers and of calls beside them. */
import { execFileSync } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { getPriority } from 'node:os';
import { isMainThread, threadId } from 'node:worker_threads';
import { defineAgent, defineTool, NothingDone } from 'earshot';
import { z } from 'zod';

/** Of this copy of the module: one a thread, if the module is loaded once. */
let calls = 0;

const worker = true;
const file = z.object({ file: z.string() });

function until(isTrue: () => boolean): Promise<void> {
  return new Promise((resolve) => {
    const timer = setInterval(() => {
      if (!isTrue()) return;
      clearInterval(timer);
      resolve();
    }, 5);
  });
}

/** After the answer has gone, and before the thread looks for its next message. */
async function afterwards(then: () => void): Promise<void> {
  for (let n = 0; n < 100; n += 1) await Promise.resolve();
  then();
}

const sum = defineTool({
  name: 'sum',
  description: 'Adds numbers, given as text.',
  parameters: z.object({ numbers: z.array(z.string().transform(Number)) }),
  worker,
  execute: ({ numbers }) => ({ sum: numbers.reduce((all, each) => all + each, 0), isMainThread }),
});

const where = defineTool({
  name: 'where',
  description: 'Tells its thread, and the how-manieth call of it this is, when the file is there.',
  parameters: file,
  worker,
  async execute(args) {
    calls += 1;
    const call = calls;
    await until(() => existsSync(args.file));
    return { threadId, call };
  },
});

const grind = defineTool({
  name: 'grind',
  description:
    'Computes without a pause until the file is there; writes another one, if it is named, when it begins.',
  parameters: file.extend({ begun: z.string().optional() }),
  worker,
  execute(args) {
    if (args.begun !== undefined) writeFileSync(args.begun, '');
    let rounds = 0;
    while (!existsSync(args.file)) rounds += 1;
    return { rounds };
  },
});

const spin = defineTool({
  name: 'spin',
  description: 'Writes the file, then computes for ever.',
  parameters: file,
  worker,
  execute(args) {
    writeFileSync(args.file, '');
    for (;;) calls += 1;
  },
});

const block = defineTool({
  name: 'block',
  description: 'Writes the first file and sleeps in a system call until the second is there.',
  parameters: z.object({ begun: z.string(), end: z.string() }),
  worker,
  execute({ begun, end }) {
    writeFileSync(begun, '');
    const waiting = `while [ ! -e '${end}' ]; do sleep 0.05; done`;
    return execFileSync('sh', ['-c', waiting]).length;
  },
});

const leaveBusy = defineTool({
  name: 'leave_busy',
  description: 'Answers, and leaves something behind that computes for ever.',
  worker,
  execute() {
    void afterwards(() => {
      for (;;) calls += 1;
    });
    return threadId;
  },
});

const leaveDying = defineTool({
  name: 'leave_dying',
  description: 'Answers, and leaves something behind that ends the thread.',
  worker,
  execute() {
    void afterwards(() => process.exit(0));
    return threadId;
  },
});

function hostile(): Error {
  const no = (): never => {
    throw new Error('touched');
  };
  return new Proxy(new Error('x'), { get: no, getPrototypeOf: no });
}

const fail = defineTool({
  name: 'fail',
  description: 'Fails in the way that it is asked for.',
  parameters: z.object({ how: z.string() }),
  worker,
  execute({ how }) {
    if (how === 'throw') throw new Error('the ledger is torn');
    if (how === 'reject') return Promise.reject(new Error('the ledger is wet'));
    if (how === 'text') return Promise.reject('no error at all');
    if (how === 'long') throw new Error('x'.repeat(20_000));
    if (how === 'nothing done') throw new NothingDone('the bank is closed');
    if (how === 'hostile') throw hostile();
    if (how === 'exit') process.exit(3);
    const hoard: number[][] = [];
    if (how === 'memory') for (;;) hoard.push(Array.from({ length: 100_000 }, (_, n) => n + 0.5));
    if (how === 'later') setImmediate(() => JSON.parse('{'));
    if (how === 'unhandled') void Promise.reject(new Error('nobody caught it'));
    return new Promise(() => {});
  },
});

const giveBack = defineTool({
  name: 'give_back',
  description: 'Returns something odd.',
  parameters: z.object({ what: z.string() }),
  worker,
  execute({ what }): unknown {
    const circle: { self?: unknown } = {};
    circle.self = circle;
    const things: Record<string, unknown> = {
      bigint: { big: 1n },
      circle,
      function: () => {},
      symbol: Symbol('odd'),
      iterator: [1].values(),
      response: new Response('odd'),
      long: 'x'.repeat(70_000),
      date: { at: new Date(0) },
      null: null,
      list: [1, undefined, 'x'],
    };
    return things[what];
  },
});

const keep = defineTool({
  name: 'keep',
  description: 'Changes the state.',
  worker,
  execute(_, ctx) {
    const before = { ...ctx.state };
    ctx.state['visits'] = Number(ctx.state['visits']) + 1;
    ctx.state['user:name'] = { first: 'Ada' };
    delete ctx.state['basket'];
    ctx.endInvocation = true;
    return { before, after: { ...ctx.state } };
  },
});

const keepMuch = defineTool({
  name: 'keep_much',
  description: 'Changes more than can be kept.',
  worker,
  execute(_, ctx) {
    for (let n = 0; n < 300; n += 1) ctx.state[`key ${n}`] = 'x'.repeat(1_000);
  },
});

const look = defineTool({
  name: 'look',
  description: 'Tells what its context is.',
  worker,
  execute: (_, ctx) => ({ ...ctx, scopes: ctx.userScopes(), isAborted: ctx.signal.aborted }),
});

const reach = defineTool({
  name: 'reach',
  description: 'Reaches for what is not there.',
  worker,
  async execute(_, ctx) {
    const attempts: Record<string, () => unknown> = {
      shared: () => ctx.shared.get('a'),
      callControl: () => ctx.callControl.hangUp(),
      inputStream: () => ctx.inputStream,
      followUp: () => ctx.followUp('later'),
      saveArtifact: () => ctx.saveArtifact('a', new Uint8Array(), 'text/plain'),
      loadArtifact: () => ctx.loadArtifact('a'),
      userScopes: () => ctx.userScopes(),
    };
    const said: Record<string, string> = {};
    for (const [name, attempt] of Object.entries(attempts)) {
      try {
        await attempt();
        said[name] = 'it is there';
      } catch (error) {
        said[name] = error instanceof Error ? error.message : 'no error';
      }
    }
    return said;
  },
});

const unlock = defineTool({
  name: 'unlock',
  description: 'Asks for secrets.',
  parameters: z.object({ names: z.array(z.string()) }),
  worker,
  async execute({ names }, ctx) {
    const asked = await Promise.allSettled(names.map((name) => ctx.getSecret(name)));
    return asked.map((each) => (each.status === 'fulfilled' ? each.value : (each.reason as Error).message));
  },
});

const print = defineTool({
  name: 'print',
  description: 'Prints.',
  worker,
  async execute() {
    console.log('to the author');
    console.error('in red');
    for (let n = 0; n < 100; n += 1) process.stdout.write('x'.repeat(1_000));
    await new Promise((resolve) => process.stdout.write('', resolve));
    return 'printed';
  },
});

const rank = defineTool({
  name: 'rank',
  description: 'Tells how nice its thread is.',
  worker,
  execute: () => getPriority(),
});

const here = defineTool({ name: 'here', description: 'No worker tool.', execute: () => 'here' });

export default defineAgent({
  name: 'workshop',
  greeting: 'Hello, this is the workshop.',
  instruction: 'Work.',
  tools: [
    sum,
    where,
    grind,
    spin,
    block,
    leaveBusy,
    leaveDying,
    fail,
    giveBack,
    keep,
    keepMuch,
    look,
    reach,
    unlock,
    print,
    rank,
    here,
  ],
});
