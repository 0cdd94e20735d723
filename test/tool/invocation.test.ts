import { describe, expect, it } from 'vitest';
import type { ToolContext } from '../../src/agent/tool-context.js';
import { NO_ACTIONS, type Event } from '../../src/event/event.js';
import { CONTEXT_EVENTS_MAX, UPDATE_MAX_CHARS } from '../../src/tool-limits.js';
import { IDENTITY, invocationOf, tool, ToolStage } from './tool-stage.js';

const { signal } = new AbortController();
const event = (id: string): Event => ({
  id,
  invocationId: 'i0',
  author: 'user',
  timestamp: 1,
  actions: NO_ACTIONS,
});

describe('the context of a call', () => {
  it('tells who is on the line and how the run is set up, the same in every turn', () => {
    const runConfig = { maxConcurrentTools: 2 };
    const invocation = invocationOf({ runConfig });
    for (let turn = 0; turn < 5; turn += 1) {
      const { ctx } = invocation.scope(signal);
      expect(ctx).toMatchObject({ ...IDENTITY, endInvocation: false, inputStream: undefined });
      expect(ctx.runConfig).toBe(runConfig);
      expect(ctx.signal).toBe(signal);
    }
  });

  it('shows the history and what has happened since, oldest first, the newest of a long one', () => {
    const invocation = invocationOf({ history: [event('h1'), event('h2')] });
    const { ctx } = invocation.scope(signal);
    expect(ctx.events.map(({ id }) => id)).toEqual(['h1', 'h2']);
    invocation.hear({ type: 'event', event: event('now') });
    expect(ctx.events.map(({ id }) => id)).toEqual(['h1', 'h2', 'now']);
    expect(() => (ctx.events as Event[]).push(event('forged'))).toThrow(TypeError);
    // What is stored is what was told, whatever a tool does with what it sees.
    const functionCall = { name: 'refund', args: { amount: { minor: 500 } } };
    const asked = { ...event('asked'), content: { role: 'model', parts: [{ functionCall }] } } as const;
    invocation.hear({ type: 'event', event: asked });
    expect(Object.isFrozen(functionCall.args.amount)).toBe(true);
    for (let index = 0; index < 3 * CONTEXT_EVENTS_MAX; index += 1)
      invocation.hear({ type: 'event', event: event(`e${index}`) });
    expect(ctx.events).toHaveLength(CONTEXT_EVENTS_MAX);
    expect(ctx.events.at(-1)?.id).toBe(`e${3 * CONTEXT_EVENTS_MAX - 1}`);
    expect(invocationOf().scope(signal).ctx.events).toEqual([]);
  });

  // Their message is complete only when the agent has answered, and the agent may be waiting for this tool.
  it('shows what the caller is saying, as one partial event that grows and is then replaced', () => {
    const invocation = invocationOf();
    const { ctx } = invocation.scope(signal);
    const said = (text: string) => ({ content: { role: 'user', parts: [{ text }] } }) as const;
    for (const text of ['Yes, ', 'please.'])
      invocation.hear({
        type: 'delta',
        msg: 'm1',
        role: 'user',
        event: { ...event(text), ...said(text), partial: true },
      });
    invocation.hear({ type: 'event', event: event('between') });
    expect(ctx.events).toMatchObject([{ id: 'between' }, { ...said('Yes, please.'), partial: true }]);
    const whole = { ...event('whole'), ...said('Yes, please.') };
    invocation.hear({ type: 'sealed', msg: 'm1', role: 'user', event: whole });
    expect(ctx.events).toEqual([event('between'), whole]);
    expect(invocation.snapshot().events).toEqual(ctx.events);
  });

  it('gives what was changed through it once, and sees what others changed', () => {
    const invocation = invocationOf({ state: { a: 1 } });
    const [one, two] = [invocation.scope(signal), invocation.scope(signal)];
    one.ctx.state['a'] = 2;
    one.ctx.state['temp:x'] = true;
    expect(two.ctx.state['a']).toBe(2);
    expect(one.takeActions()).toEqual({ stateDelta: { a: 2, 'temp:x': true }, artifactDelta: {} });
    expect(one.takeActions()).toEqual({ stateDelta: {}, artifactDelta: {} });
    expect(two.takeActions()).toEqual({ stateDelta: {}, artifactDelta: {} });
  });

  it('takes in what a worker changed', () => {
    const invocation = invocationOf();
    const scope = invocation.scope(signal);
    scope.applyState({ a: 1 });
    expect(scope.takeActions().stateDelta).toEqual({ a: 1 });
    expect(invocation.snapshot().state).toEqual({ a: 1 });
  });

  it('keeps nothing any more once it is closed, from a worker neither', async () => {
    const invocation = invocationOf({ state: { a: 1 } });
    const scope = invocation.scope(signal);
    scope.close();
    expect(() => {
      scope.ctx.state['a'] = 2;
    }).toThrow('the call is over');
    expect(() => scope.applyState({ a: 3 })).toThrow('the call is over');
    await expect(scope.ctx.saveArtifact('x', Uint8Array.of(1), 'text/plain')).rejects.toThrow(
      'the call is over',
    );
    expect(scope.ctx.state['a']).toBe(1);
    expect(invocation.snapshot().state).toEqual({ a: 1 });
  });

  it('tells versions of artifacts, and leaves state alone', async () => {
    let version = -1;
    const artifacts = {
      save: () => Promise.resolve((version += 1)),
      load: (name: string, wanted: number | undefined) =>
        Promise.resolve({ version: wanted ?? version, mimeType: 'audio/wav', bytes: Buffer.from(name) }),
    };
    const scope = invocationOf({ artifacts }).scope(signal);
    const save = () => scope.ctx.saveArtifact('voice', Uint8Array.of(1), 'audio/wav');
    expect([await save(), await save()]).toEqual([0, 1]);
    expect(scope.takeActions()).toEqual({ stateDelta: {}, artifactDelta: { voice: 1 } });
    expect(await scope.ctx.loadArtifact('voice', 0)).toMatchObject({ version: 0 });
  });

  it('tells scopes and secrets of this caller, none apart from not wired', async () => {
    const wired = invocationOf({
      runConfig: {
        userScopes: ({ userId }) => (userId === IDENTITY.userId ? ['refunds'] : []),
        getSecret: (name, { appName }) => (name === 'crm' ? `key of ${appName}` : undefined),
      },
    }).scope(signal).ctx;
    expect(wired.userScopes()).toEqual(['refunds']);
    expect(await wired.getSecret('crm')).toBe('key of desk');
    expect(await wired.getSecret('absent')).toBeNull();
    const { ctx } = invocationOf().scope(signal);
    expect(() => ctx.userScopes()).toThrow('no userScopes');
    await expect(ctx.getSecret('crm')).rejects.toThrow('no getSecret');
  });

  it('passes follow-ups on, after the call too, but no empty ones', () => {
    const told: string[] = [];
    const scope = invocationOf({ onFollowUp: (text) => void told.push(text) }).scope(signal);
    scope.close();
    scope.ctx.followUp('The parcel has left.');
    expect(() => scope.ctx.followUp('x'.repeat(UPDATE_MAX_CHARS + 1))).toThrow(RangeError);
    expect(() => scope.ctx.followUp(' ')).toThrow(TypeError);
    expect(() => scope.ctx.followUp(5 as never)).toThrow(TypeError);
    expect(told).toEqual(['The parcel has left.']);
  });
});

describe('in a run', () => {
  it('a change is told with the result of its call, and seen by the next one at once', async () => {
    const seen: unknown[] = [];
    const count = tool('count', {
      execute: (_args, { state }) => {
        seen.push(state['n']);
        state['n'] = Number(state['n'] ?? 0) + 1;
      },
    });
    const stage = new ToolStage({ tools: [count], state: { n: 4 } });
    await stage.ask('count', { a: 1 });
    await stage.ask('count', { a: 2 });
    expect(seen).toEqual([4, 5]);
    expect(stage.host.of('responded').map(({ actions }) => actions.stateDelta)).toEqual([{ n: 5 }, { n: 6 }]);
  });

  it('what a handler leaves behind it is stopped with the run', async () => {
    let kept: ToolContext | undefined;
    let waited: unknown;
    const start = tool('start', {
      execute(_args, ctx) {
        kept = ctx;
        void ctx.shared.waitFor('never').catch((error: Error) => {
          waited = error.message;
        });
        return { status: 'started' };
      },
    });
    const stage = new ToolStage({ tools: [start] });
    await stage.ask('start');
    expect(kept?.signal.aborted).toBe(false);
    kept?.followUp('It is done.');
    expect(stage.host.texts).toEqual(['It is done.']);
    await stage.close();
    expect(kept?.signal.aborted).toBe(true);
    expect(waited).toBe('the conversation is over');
    expect(stage.clock.pendingTimers).toBe(0);
  });

  it('the conversation ends once the result is told', async () => {
    const end = tool('end', {
      execute(_args, ctx) {
        ctx.endInvocation = true;
        return { status: 'goodbye' };
      },
    });
    const stage = new ToolStage({ tools: [end] });
    await stage.ask('end');
    expect(stage.host.told.map(({ kind }) => kind)).toEqual(['called', 'responded', 'answered', 'ended']);
  });
});
