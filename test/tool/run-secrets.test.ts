/** What a run was handed is found in what it tells, and nothing else is touched. Row D9. */
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { definePlugin } from '../../src/agent/plugin.js';
import { RunSecrets } from '../../src/tool/run-secrets.js';
import { SECRET_MASKED_MIN_CHARS, SECRETS_KEPT_MAX } from '../../src/tool-limits.js';
import { tool, ToolStage } from './tool-stage.js';

const SECRET = 'a/"b"+ c\nd%ü';

function holding(...values: readonly (readonly [name: string, value: string])[]): RunSecrets {
  const secrets = new RunSecrets();
  for (const [name, value] of values) secrets.keep(name, value);
  return secrets;
}

describe('secrets of a run', () => {
  it('cost nothing where none was handed out', () => {
    const secrets = new RunSecrets();
    const json = { a: ['text'] };
    expect(secrets.json(json)).toBe(json);
    expect(secrets.text('text')).toBe('text');
  });

  it.each([
    ['as it is', SECRET],
    ['in JSON', JSON.stringify(SECRET).slice(1, -1)],
    ['in a part of an address', encodeURIComponent(SECRET)],
    ['in an address', encodeURI(SECRET)],
    ['in a form', new URLSearchParams({ a: SECRET }).toString().slice(2)],
    ['in base64', Buffer.from(SECRET).toString('base64').replace(/=+$/, '')],
    ['in base64url', Buffer.from(SECRET).toString('base64url')],
  ])('are found %s', (_where, form) => {
    const secrets = holding(['KEY', SECRET]);
    expect(secrets.text(`<${form}> and <${form}>`)).toBe('<[secret KEY]> and <[secret KEY]>');
    expect(secrets.holds(form)).toBe(true);
  });

  it('are found in keys, values and numbers, however deep, and the rest is as it was', () => {
    const secrets = holding(['PIN', '482911']);
    const json = JSON.parse('{"__proto__":{"a 482911":482911},"n":[1,null,true,"x482911y"]}') as object;
    expect(JSON.stringify(secrets.json(json))).toBe(
      '{"__proto__":{"a [secret PIN]":"[secret PIN]"},"n":[1,null,true,"x[secret PIN]y"]}',
    );
    expect(JSON.stringify(json)).toContain('482911');
    let deep: unknown = '482911';
    for (let level = 0; level < 50_000; level += 1) deep = [deep];
    let found = secrets.json(deep);
    while (Array.isArray(found)) found = (found as unknown[])[0];
    expect(found).toBe('[secret PIN]');
  });

  it('are found whole where one begins another, and without the line feed of their file', () => {
    const secrets = holding(['SHORT', 'abcd'], ['LONG', 'abcdefgh\n']);
    expect(secrets.text('abcdefgh abcd')).toBe('[secret LONG] [secret SHORT]');
  });

  it('are not looked for where they are too short to tell from other words', () => {
    const short = 'x'.repeat(SECRET_MASKED_MIN_CHARS - 1);
    expect(holding(['NO', short], ['NONE', '']).text(`${short} text`)).toBe(`${short} text`);
    expect(holding(['YES', `${short}x`]).text(`${short}x`)).toBe('[secret YES]');
  });

  it('may hold anything: patterns, half surrogate pairs', () => {
    for (const value of ['a.*(b', '$& $1 $$', 'half \ud800 pair'])
      expect(holding(['ANY', value]).text(`<${value}> <a__(b>`)).toBe('<[secret ANY]> <a__(b>');
  });

  it('are bounded: the one that was handed out longest ago goes', () => {
    const secrets = new RunSecrets();
    secrets.keep('FIRST', 'value-first');
    for (let index = 0; index < SECRETS_KEPT_MAX; index += 1) {
      secrets.keep('OTHER', `value-${index}-`);
      secrets.keep('FIRST', 'value-first');
    }
    expect(secrets.text('value-first value-0- value-1-')).toBe('[secret FIRST] value-0- [secret OTHER]');
  });
});

describe('ctx.getSecret', () => {
  it('tells a tool the name alone where the look-up fails or finds no text, and the log nothing public', async () => {
    const stage = new ToolStage({
      runConfig: {
        getSecret: (name) => {
          if (name === 'LOST') throw new Error('login with hvs.TOKEN failed');
          return name === 'ODD' ? (7 as never) : null;
        },
      },
      tools: [
        tool('ask', {
          parameters: { type: 'object', properties: { name: { type: 'string' } } },
          execute: async ({ name }, ctx) => ({ found: await ctx.getSecret(String(name)) }),
        }),
      ],
    });
    const answer = async (name: string) => stage.host.answerTo(await stage.ask('ask', { name }));
    expect(await answer('LOST')).toEqual({ error: 'getSecret: LOST could not be looked up' });
    expect(await answer('ODD')).toEqual({ error: 'getSecret: ODD is no text' });
    expect(await answer('NONE')).toEqual({ found: null });
    expect(stage.log.publicText).not.toContain('hvs.TOKEN');
    expect(JSON.stringify(stage.log.lines)).toContain('hvs.TOKEN');
  });
});

describe('what an author’s code throws', () => {
  it('stands under `pii` in the log, whichever code it is', async () => {
    const boom = (): never => {
      throw new Error('words of +15550100');
    };
    const stage = new ToolStage({
      plugins: [
        definePlugin({ name: 'p', afterTool: boom }),
        definePlugin({
          name: 'q',
          beforeTool: ({ tool: name }) => (name === 'guarded' ? boom() : undefined),
        }),
      ],
      tools: [
        tool('thrown', { execute: boom }),
        tool('guarded'),
        tool('streams', {
          async *execute() {
            yield await Promise.resolve(1);
            boom();
          },
        }),
        tool('deed', { execute: boom, sideEffect: { key: () => 'k' } }),
        tool('unread', { parameters: z.object({ a: z.string().refine(boom) }) }),
      ],
    });
    for (const name of ['thrown', 'guarded', 'streams', 'deed']) await stage.ask(name);
    await stage.ask('unread', { a: 'x' });
    expect(
      stage.log.lines.filter((line) => JSON.stringify(line).includes('words of')).length,
    ).toBeGreaterThan(4);
    expect(stage.log.publicText).not.toContain('words of');
    await stage.close();
  });
});

it('a built-in tool passes no guard, and is logged', async () => {
  const seen: string[] = [];
  const stage = new ToolStage({
    tools: [
      tool('watch', {
        async *execute() {
          yield await new Promise(() => {});
        },
      }),
    ],
    plugins: [
      definePlugin({
        name: 'deny',
        beforeTool({ tool: name }) {
          seen.push(name);
          throw new Error('never');
        },
      }),
    ],
  });
  const stopped = await stage.ask('stop_streaming', { function_name: 'watch' });
  const ended = await stage.ask('end_call');
  expect(stage.host.answerTo(stopped)).toMatchObject({ status: 'none active' });
  expect(stage.host.answerTo(ended)).toEqual({ error: 'There is no line to hang up.' });
  expect(seen).toEqual([]);
  const logged = stage.log.lines.filter(({ message }) => message.includes('built-in'));
  expect(logged.map(({ level, fields }) => [level, fields['tool']])).toEqual([
    ['debug', 'stop_streaming'],
    ['debug', 'end_call'],
  ]);
});
