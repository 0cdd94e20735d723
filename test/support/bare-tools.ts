/** The tools of a server with neither store nor worker threads. */
import type { Clock } from '../../src/clock.js';
import { silentLog } from '../../src/observe/log.js';
import { ToolRuns, type ToolRunsOptions } from '../../src/tool/tool-runs.js';

export function bareTools(clock: Clock, more: Partial<ToolRunsOptions> = {}): ToolRuns {
  return new ToolRuns({
    store: undefined,
    agentNamed: () => undefined,
    runInWorker: () => () => Promise.reject(new Error('there are no workers')),
    tellLate: () => Promise.resolve(),
    tellChanged: () => Promise.resolve(),
    clock,
    log: silentLog,
    ...more,
  });
}
