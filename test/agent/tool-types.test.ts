/** What an author's editor tells: the compiler reads this file, and a line that should not compile has to fail. */
import { describe, expectTypeOf, it } from 'vitest';
import { z } from 'zod';
import { defineTool, type Tool, type ToolContext } from '../../src/index.js';

describe('the types of a tool', () => {
  it('come from its zod object, as it is read', () => {
    const tool = defineTool({
      name: 'refund',
      description: 'Refunds.',
      parameters: z.object({
        order_id: z.string(),
        times: z.number().default(1),
        note: z.string().optional(),
        tags: z.string().transform((text) => text.split(',')),
      }),
      execute(args, ctx) {
        expectTypeOf(args).toEqualTypeOf<{
          order_id: string;
          times: number;
          note?: string | undefined;
          tags: string[];
        }>();
        expectTypeOf(ctx).toEqualTypeOf<ToolContext>();
        // @ts-expect-error There is no such argument.
        return args.amount as unknown;
      },
      sideEffect: { key: ({ order_id: order, times }) => `${order.toUpperCase()}:${times.toFixed(0)}` },
      approval: ({ times }) => times > 3,
    });
    expectTypeOf(tool).toEqualTypeOf<Tool>();
  });

  it('are those of JSON for a JSON schema, and for none', () => {
    const execute = (args: Readonly<Record<string, unknown>>): unknown => {
      expectTypeOf(args['city']).toBeUnknown();
      return args['city'];
    };
    defineTool({ name: 'a', description: 'A.', parameters: { type: 'object', properties: {} }, execute });
    defineTool({ name: 'b', description: 'B.', execute });
    defineTool({
      name: 'c',
      description: 'C.',
      parameters: { type: 'object', properties: { city: { type: 'string' } } },
      execute(args) {
        // @ts-expect-error What a JSON schema says is not known to the compiler.
        const city: string = args['city'];
        return city;
      },
    });
  });

  it('hold for the context', () => {
    expectTypeOf<ToolContext['userId']>().toBeString();
    defineTool({
      name: 'end',
      description: 'Ends.',
      execute(_args, ctx) {
        ctx.endInvocation = true;
        ctx.state['user:seen'] = { at: 1 };
        // @ts-expect-error Who is on the line is not the tool's to change.
        ctx.userId = 'somebody else';
        expectTypeOf(ctx.getSecret('key')).toEqualTypeOf<Promise<string | null>>();
      },
    });
  });
});
