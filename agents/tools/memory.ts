/**
 * Tools with which an agent keeps what a caller told it for the next call. What is kept is the caller's alone, in this
 * agent alone; a caller without a number has no memory, and the tools then say so.
 */
import { defineTool } from 'earshot';
import { z } from 'zod';

const name = z.string().trim().min(1).max(100);

export const remember = defineTool({
  name: 'remember',
  description:
    'Keeps facts about a person or thing for later calls. Use it when the caller tells something that will matter again, such as a preference or a name. Never keep card numbers or passwords.',
  parameters: z.object({
    entity: name.describe('Whom or what the facts are about, such as "caller" or "garden"'),
    facts: z.array(z.string().trim().min(1).max(400)).min(1).max(10).describe('Each one short sentence'),
  }),
  async execute({ entity, facts }, ctx) {
    const added = await ctx.memory.remember(entity, facts);
    return { status: 'remembered', added, message: 'I will remember that.' };
  },
});

export const relate = defineTool({
  name: 'relate',
  description:
    'Keeps for later calls how two people or things belong together, such as: Max, dog of, caller.',
  parameters: z.object({
    source: name.describe('Such as "Max"'),
    relation: name.describe('Such as "dog of"'),
    target: name.describe('Such as "caller"'),
  }),
  async execute({ source, relation, target }, ctx) {
    const isNew = await ctx.memory.relate(source, relation, target);
    return { status: 'remembered', added: isNew ? 1 : 0, message: 'I will remember that.' };
  },
});
