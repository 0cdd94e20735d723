/** What a worker tool's context says of scopes is what the server's own says: a look-up that fails concerns who asks. */
import { describe, expect, it } from 'vitest';
import type { RunConfig } from '../../src/agent/agent.js';
import { runInWorker } from '../../src/tool/run-in-worker.js';
import { WorkerContext } from '../../src/tool/worker-context.js';
import type { WorkerRun } from '../../src/tool/worker-call.js';
import { invocationOf, tool } from './tool-stage.js';
import { defineAgent } from '../../src/agent/agent.js';

const agent = defineAgent({ name: 'desk', instruction: 'Serve.' });
const textOf = (run: () => unknown): unknown => {
  try {
    return run();
  } catch (error) {
    return String(error);
  }
};

describe('scopes of a worker tool', () => {
  it.each<[string, RunConfig['userScopes'], unknown]>([
    ['that are there', () => ['refund'], ['refund']],
    ['that are none', () => [], []],
    ['that nobody wired', undefined, 'Error: userScopes: the agent’s runConfig has no userScopes'],
    [
      'that cannot be looked up',
      () => {
        throw new Error('the directory is shut');
      },
      'Error: the directory is shut',
    ],
  ])('%s are those of any tool, and keep none from running', async (_what, userScopes, expected) => {
    const { ctx } = invocationOf({
      runConfig: { responseModalities: ['AUDIO'], ...(userScopes && { userScopes }) },
    }).scope(new AbortController().signal);
    const { seen, outcome } = await runWith(ctx);
    expect(outcome.result).toBe('ran');
    expect(textOf(() => seen.userScopes())).toEqual(expected);
    expect(textOf(() => ctx.userScopes())).toEqual(expected);
  });

  it('that come later are an error for who asks, and one that fails ends no server', async () => {
    for (const late of [Promise.resolve(['refund']), Promise.reject(new Error('shut'))]) {
      const userScopes = (() => late) as never;
      const { ctx } = invocationOf({ runConfig: { responseModalities: ['AUDIO'], userScopes } }).scope(
        new AbortController().signal,
      );
      const { seen } = await runWith(ctx);
      expect(textOf(() => seen.userScopes())).toMatch(/a list of texts at once/);
    }
  });
});

/** The context as a worker makes it of what travels. */
async function runWith(ctx: Parameters<ReturnType<ReturnType<typeof runInWorker>>>[2]) {
  let run: WorkerRun | undefined;
  const workers = {
    run: async (asked: WorkerRun) => {
      run = asked;
      return { result: 'ran', stateDelta: {}, endInvocation: false };
    },
  };
  const outcome = await runInWorker(workers, () => '/agent.mjs')(agent)(tool('heavy'), {}, ctx);
  const travelled = JSON.parse(JSON.stringify(run!.snapshot)) as WorkerRun['snapshot'];
  return { outcome, seen: new WorkerContext(travelled, run!.getSecret) };
}
