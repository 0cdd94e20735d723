/**
 * The agent that answers when nothing else is chosen: a shop's telephone support. The shop is made up: its orders are the
 * file beside this one, and a refund is an entry in the server's ledger.
 */
import { createHash } from 'node:crypto';
import { defineAgent, definePlugin, defineTool } from 'earshot';
import { z } from 'zod';
import rows from './data/orders.json' with { type: 'json' };
import { relate, remember } from './tools/memory.js';

/** A refund above it is approved by a person first. */
const REFUND_ALONE_MAX_MINOR = 20_000;

const orders = new Map(rows.map((order) => [order.id, order]));

/** "a10293", "A 10293" and the pressed digits "10293" are all A-10293. */
function orderIdOf(said: string): string {
  const [, digits] = /^A?(\d{4,8})$/.exec(said.toUpperCase().replaceAll(/[^A-Z0-9]/g, '')) ?? [];
  return digits === undefined ? said.trim().toUpperCase() : `A-${digits}`;
}

function money(minor: number, currency: string): string {
  return new Intl.NumberFormat('en-US', { style: 'currency', currency }).format(minor / 100);
}

const order_id = z
  .string()
  .min(1)
  .max(40)
  .describe('As the caller says or presses it')
  .meta({ examples: ['A-10293'] })
  .transform(orderIdOf);

const lookupOrder = defineTool({
  name: 'lookup_order',
  description: 'Looks an order up: what it is, what it cost, and whether it has been delivered.',
  parameters: z.object({ order_id }),
  execute({ order_id: id }) {
    const order = orders.get(id);
    if (order === undefined) return { error: `There is no order ${id}. Ask for the number again.` };
    const { status, what, totalMinor, currency } = order;
    const total = money(totalMinor, currency);
    return { order_id: id, status, what, total, message: `Order ${id}, ${what} for ${total}, is ${status}.` };
  },
});

const processRefund = defineTool({
  name: 'process_refund',
  description:
    'Refunds an order in full. Call it only when the caller asks for a refund of a delivered order and has said why, and only after they have confirmed the order.',
  parameters: z.object({
    order_id,
    reason: z.string().max(500).describe("The caller's reason, in a few words"),
  }),
  // The whole order is the item, so that it is refunded once, whoever asks, in whichever call.
  sideEffect: {
    key: ({ order_id: id }, ctx) => `${ctx.appName}/${id}/whole order`,
    amount({ order_id: id }) {
      const { totalMinor, currency } = ordered(id);
      return { account: id, amountMinor: totalMinor, currency, limitMinor: totalMinor };
    },
  },
  approval: ({ order_id: id }) => ordered(id).totalMinor > REFUND_ALONE_MAX_MINOR,
  execute({ order_id: id }, ctx) {
    const { totalMinor, currency } = ordered(id);
    const hash = createHash('sha256').update(`${ctx.appName}/${id}`).digest('hex');
    const refund_id = `R-${hash.slice(0, 8).toUpperCase()}`;
    const message = `The refund of ${money(totalMinor, currency)} for order ${id} is approved. It arrives within five days.`;
    return { status: 'approved', refund_id, order_id: id, message };
  },
});

/** The policy has let it through, so it is there. */
function ordered(id: string) {
  const order = orders.get(id);
  if (order === undefined) throw new Error(`there is no order ${id}`);
  return order;
}

/** What it throws is a refusal, whose cause the caller is told. */
const refundPolicy = definePlugin({
  name: 'refund-policy',
  beforeTool({ tool, args }) {
    if (tool !== processRefund.name) return;
    const order = ordered(orderIdOf(String(args['order_id'])));
    if (order.status !== 'delivered') throw new Error(`order ${order.id} is ${order.status}, not delivered`);
    if (String(args['reason']).trim() === '') throw new Error('no reason was given');
  },
});

const connectToHuman = defineTool({
  name: 'connect_to_human',
  description:
    'Connects the caller with a person. Call it when the caller asks for one, or when you cannot help; say in one short sentence that you are connecting them.',
  parameters: z.object({ reason: z.string().max(500).describe('Why, in a few words') }),
  execute(_args, ctx) {
    const answer = ctx.callControl.transfer();
    if (answer.kind === 'unavailable')
      return { error: `The caller cannot be connected with a person: ${answer.why}` };
    // One person answers the shop's second line, within half a minute as a rule.
    const message = 'You are being connected with a colleague. It takes about half a minute.';
    return { status: 'transferring', queue_position: 1, eta_seconds: 30, message };
  },
});

export default defineAgent({
  name: 'support',
  greeting:
    'Hello, you have reached Harbour Goods. I am an automated assistant. How can I help you with your order today?',
  instruction: [
    'You answer the telephone of Harbour Goods, a shop that ships household goods.',
    'Speak as on the phone: short sentences, one question at a time, no lists, no markup, numbers digit by digit.',
    'Callers can also press keys; a pressed key reaches you as text. An order number may come that way, ended by the pound key.',
    'You can explain opening hours (Monday to Friday, nine to five) and the return policy (thirty days, unused).',
    'You can look orders up, refund delivered ones, and connect the caller with a person. Use your tools for that, and never invent a result.',
    'If a tool answers with an error or a refusal, say in plain words what did not work and why, and offer a person.',
    'If you did not understand, ask again. If the caller is silent, ask once whether they are still there.',
    'When the caller has said goodbye, say goodbye in one short sentence and then call end_call.',
  ].join('\n'),
  tools: [lookupOrder, processRefund, connectToHuman, remember, relate],
  plugins: [refundPolicy],
  runConfig: {
    speechConfig: {
      voiceConfig: { prebuiltVoiceConfig: { voiceName: 'Kore' } },
      languageCode: 'en-US',
    },
  },
});
