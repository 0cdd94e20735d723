/** An agent whose author is careless with a secret in every way there is, for `secrets.test.ts`. */
import { defineAgent, definePlugin, defineTool, type ToolContext } from 'earshot';

/** Holds what JSON, addresses and forms write in another way; its core is the same in each of them. */
export const SECRET = 'a/hunter2 "of"+the\nbänk';
/** What the secret store itself would be opened with. */
export const LOGIN = 'hunter2-of-the-vault';

/** As a module may keep it, for those who have no context. */
let kept = '';

async function secretOf(ctx: ToolContext): Promise<string> {
  const secret = await ctx.getSecret('BANK');
  if (secret !== SECRET) throw new Error('it is not the secret');
  kept = secret;
  return secret;
}

function failed(secret: string): Error {
  return new Error(`GET https://bank/?key=${secret} failed`);
}

function tool(name: string, execute: (ctx: ToolContext) => unknown, more: object = {}) {
  return defineTool({ name, description: `Does ${name}.`, execute: (_args, ctx) => execute(ctx), ...more });
}

const returns = (secret: string): object => ({
  plain: secret,
  deep: [{ [`key ${secret}`]: { value: `Bearer ${secret}` } }],
  address: `https://bank/?key=${encodeURIComponent(secret)}`,
  form: new URLSearchParams({ key: secret }).toString(),
  json: JSON.stringify({ key: secret }),
  header: Buffer.from(secret).toString('base64'),
});
const returnsIt = async (ctx: ToolContext): Promise<object> => returns(await secretOf(ctx));
const throwsIt = async (ctx: ToolContext): Promise<never> => {
  throw failed(await secretOf(ctx));
};

const streams = defineTool({
  name: 'streams',
  description: 'Reports.',
  async *execute(_args, ctx) {
    const secret = await secretOf(ctx);
    ctx.state['streamed'] = secret;
    yield `the key is ${secret}`;
    await ctx.shared.waitFor('more');
    yield { key: returns(secret) };
    await ctx.shared.waitFor('end');
    throw failed(secret);
  },
});
/** What the model is told last is told whole before the next one comes. */
const lets = defineTool({
  name: 'lets',
  description: 'Lets the other go on.',
  parameters: { type: 'object', properties: { key: { type: 'string' } }, required: ['key'] },
  execute({ key }, ctx) {
    ctx.shared.set(String(key), true);
    return { ok: true };
  },
});

const hands = definePlugin({
  name: 'hands',
  async beforeTool({ tool: name, args, ctx }) {
    if (name === 'refused') throw failed(await secretOf(ctx));
    if (name === 'substituted') return returns(await secretOf(ctx));
    if (name === 'given' || name === 'given_once') args['key'] = await secretOf(ctx);
    return undefined;
  },
  async afterTool({ tool: name, ctx }) {
    if (name === 'audited') throw failed(await secretOf(ctx));
  },
  onEvent() {
    if (kept !== '') throw failed(kept);
  },
});

export default defineAgent({
  name: 'leaky',
  instruction: 'Serve.',
  greeting: 'Hello.',
  tools: [
    tool('returned', returnsIt),
    tool('thrown', throwsIt),
    tool('cut', async (ctx) => {
      throw new Error(`${'x'.repeat(490)}${await secretOf(ctx)}`);
    }),
    tool('unspeakable', async (ctx) => {
      const secret = await secretOf(ctx);
      return {
        toJSON() {
          throw failed(secret);
        },
      };
    }),
    streams,
    lets,
    tool('followed', async (ctx) => {
      const secret = await secretOf(ctx);
      ctx.followUp(`the key is ${secret}`);
      return { ok: true };
    }),
    tool('refused', () => ({ ok: true })),
    tool('substituted', () => ({ ok: true })),
    tool('audited', returnsIt),
    tool('replaced', () => ({ ok: true })),
    tool('ruled', () => ({ ok: true }), {
      approval: () => {
        throw failed(kept);
      },
    }),
    tool('heavy', returnsIt, { worker: true }),
    tool('heavy_thrown', throwsIt, { worker: true }),
    tool(
      'heavy_cut',
      async (ctx) => {
        throw new Error(`${'x'.repeat(490)}${await secretOf(ctx)}`);
      },
      { worker: true },
    ),
    tool('approved', returnsIt, { approval: true }),
    tool('approved_late', throwsIt, { approval: true }),
    tool('slow', returnsIt, { longRunning: true }),
    tool('once', returnsIt, { sideEffect: { key: () => 'the deed' } }),
    tool('once_thrown', throwsIt, { sideEffect: { key: () => 'another deed' } }),
    tool('given', () => ({ ok: true }), { approval: true }),
    defineTool({
      name: 'given_once',
      description: 'Uses what it is given.',
      sideEffect: { key: (args) => String(args['key']) },
      execute: () => ({ ok: true }),
    }),
    tool('keeps', async (ctx) => {
      const secret = await secretOf(ctx);
      ctx.state['user:key'] = { secret: returns(secret) };
      await ctx.memory.remember(`bank ${secret}`, [`the key is ${secret}`]);
      await ctx.memory.relate('caller', `opens with ${secret}`, 'bank');
      const refused = await ctx.saveArtifact(secret, new Uint8Array(1), 'text/plain').catch(String);
      return { read: ctx.state['user:key'], refused };
    }),
    tool('broken', (ctx) => ctx.getSecret('BROKEN')),
  ],
  plugins: [hands],
  async afterTool({ tool: name, ctx }) {
    if (name === 'replaced') throw failed(await secretOf(ctx));
  },
  onDisconnect() {
    throw failed(kept);
  },
  runConfig: {
    getSecret(name) {
      if (name === 'BROKEN') throw new Error(`login with ${LOGIN} failed`);
      return name === 'BANK' ? SECRET : undefined;
    },
  },
});
