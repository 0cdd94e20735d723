/**
 * A hotel's concierge: small tools that are asked for one at a time or several at once, a calculator in a worker thread, and one
 * that shows what a tool can know of its conversation. The weather and the hotel are made up; time and sums are real.
 */
import { type Event, defineAgent, defineTool, type ToolContext } from 'earshot';
import { z } from 'zod';
import cities from './data/cities.json' with { type: 'json' };
import pages from './data/house-pages.json' with { type: 'json' };
import { evaluate } from './tools/arithmetic.js';
import { relate, remember } from './tools/memory.js';

const city = z
  .string()
  .trim()
  .min(1)
  .max(60)
  .describe('One of: ' + cities.map((one) => one.city).join(', '))
  .meta({ examples: ['London'] });

function cityNamed(name: string) {
  return cities.find((one) => one.city.toLowerCase() === name.toLowerCase());
}

function unknownCity(name: string) {
  return { error: `${name} is not in the list: ${cities.map((one) => one.city).join(', ')}.` };
}

const getWeather = defineTool({
  name: 'get_weather',
  description: 'The weather in a city. A fixed table for demonstration, not a forecast.',
  parameters: z.object({ city }),
  execute({ city: name }) {
    const found = cityNamed(name);
    if (found === undefined) return unknownCity(name);
    const { sky, celsius } = found;
    const message = `In ${found.city} it is ${celsius} degrees with ${sky}, by the demonstration's table.`;
    return { city: found.city, sky, celsius, message };
  },
});

const getTime = defineTool({
  name: 'get_time',
  description: 'The time of day in a city, now.',
  parameters: z.object({ city }),
  execute({ city: name }) {
    const found = cityNamed(name);
    if (found === undefined) return unknownCity(name);
    const { timeZone } = found;
    const time = new Intl.DateTimeFormat('en-US', {
      timeZone,
      hour: 'numeric',
      minute: '2-digit',
      weekday: 'long',
    });
    const now = time.format(new Date());
    return { city: found.city, time: now, time_zone: timeZone, message: `In ${found.city} it is ${now}.` };
  },
});

const calculate = defineTool({
  name: 'calculate',
  description:
    'Works out a formula exactly: numbers, + - * / ^ %, brackets, sqrt, abs, round, floor, ceil, min, max, pi, e.',
  parameters: z.object({
    expression: z
      .string()
      .max(1_000)
      .describe('Such as (15 + 25) * 2')
      .meta({ examples: ['15 + 25'] }),
  }),
  worker: true,
  async execute({ expression }) {
    try {
      const result = await evaluate(expression);
      return { expression, result, message: `${expression} is ${result}.` };
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      return { error: `That cannot be calculated: ${why}` };
    }
  },
});

const search = defineTool({
  name: 'search',
  description: "Looks something up in the hotel's own pages: breakfast, arriving, the way, the pool, pets.",
  parameters: z.object({ query: z.string().trim().min(1).max(200) }),
  execute({ query }) {
    const asked = new Set(query.toLowerCase().match(/[a-z]+/g));
    const found = pages
      .map(({ title, words, text }) => ({
        title,
        text,
        score: words.split(' ').filter((word) => asked.has(word)).length,
      }))
      .filter(({ score }) => score > 0)
      .toSorted((a, b) => b.score - a.score)
      .slice(0, 3);
    if (found.length === 0) return { results: [], message: 'The pages of the house say nothing about that.' };
    const results = found.map(({ title, text }) => ({ title, text }));
    return { results, message: results[0]?.text };
  },
});

const setPreference = defineTool({
  name: 'set_preference',
  description: 'Notes a preference of the guest for this conversation, such as: room, quiet.',
  parameters: z.object({ name: z.string().trim().min(1).max(60), value: z.string().trim().min(1).max(200) }),
  execute({ name, value }, { state }) {
    state['user_preferences'] = { ...preferences(state), [name]: value };
    return { status: 'noted', message: `I have noted: ${name}, ${value}.` };
  },
});

const reviewConversation = defineTool({
  name: 'review_conversation',
  description:
    'What is known of this guest and conversation: whether it is their first, what was said last, their preferences. Call it when the guest comes back or asks what you know.',
  parameters: z.object({
    query: z.string().trim().max(200).default('').describe('What the guest wants to know'),
  }),
  async execute({ query }, ctx) {
    try {
      return await review(query, ctx);
    } catch (error) {
      // Without its records the desk cannot go on: the caller is told, and the conversation ends.
      ctx.endInvocation = true;
      const why = error instanceof Error ? error.message : String(error);
      return { error: `The records of this conversation are broken, and it has to end: ${why}` };
    }
  },
});

/** Throws where what is kept cannot be read, or the notes cannot be kept. */
async function review(query: string, ctx: ToolContext) {
  const { events, invocationId, state } = ctx;
  const isFirst = events.every((event) => event.invocationId === invocationId);
  const recent = events.slice(-5).map(lineOf);
  const known = preferences(state);
  state['last_query_time'] = new Date().toISOString();
  const notes = [`Asked: ${query}`, ...recent].join('\n');
  const version = await ctx.saveArtifact(
    'conversation-notes.txt',
    new TextEncoder().encode(notes),
    'text/plain',
  );
  const greeting = isFirst ? 'Welcome! This is our first conversation.' : 'Welcome back.';
  const wishes = Object.entries(known).map(([name, value]) => `${name}: ${value}`);
  const message = [greeting, wishes.length > 0 ? `Your preferences are ${wishes.join(', ')}.` : ''].join(' ');
  return {
    first_contact: isFirst,
    recent,
    preferences: known,
    notes_version: version,
    message: message.trim(),
  };
}

/** One line of what happened, for a reader. */
function lineOf({ author, content }: Event): string {
  const words = (content?.parts ?? []).map((part) => {
    if (part.functionCall !== undefined) return `[calls ${part.functionCall.name}]`;
    if (part.functionResponse !== undefined) return `[result of ${part.functionResponse.name}]`;
    return part.text ?? '';
  });
  return `${author}: ${words.join(' ').trim().slice(0, 200)}`;
}

function preferences(state: ToolContext['state']): Record<string, string> {
  const kept = z.record(z.string(), z.string()).optional().safeParse(state['user_preferences']);
  if (!kept.success) throw new Error('the preferences cannot be read');
  return kept.data ?? {};
}

export default defineAgent({
  name: 'concierge',
  greeting:
    'Good day, this is the concierge of the Station Hotel, an automated assistant. What can I do for you?',
  instruction: [
    'You are the concierge of the Station Hotel, on the telephone. Be brief and friendly, and speak in short sentences.',
    'For the weather, the time, sums and questions about the house use your tools, several at once where the guest asks for several things.',
    'The weather comes from a fixed table for demonstration; say so if you are asked.',
    'Keep what a guest prefers with set_preference, and what matters for their next stay with remember or relate.',
    'If a tool answers with an error, say in plain words what did not work.',
    'When the guest has said goodbye, say goodbye in one short sentence and then call end_call.',
  ].join('\n'),
  tools: [getWeather, getTime, calculate, search, setPreference, reviewConversation, remember, relate],
  runConfig: {
    speechConfig: {
      voiceConfig: { prebuiltVoiceConfig: { voiceName: 'Aoede' } },
      languageCode: 'en-US',
    },
  },
});
