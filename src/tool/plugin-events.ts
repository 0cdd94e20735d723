/**
 * Plugins that watch a run: each hears every event as it happens, fragments too, as a copy that it may keep or change. What it
 * throws, or rejects with, is logged and concerns nobody else.
 */
import type { Agent } from '../agent/agent.js';
import type { Event } from '../event/event.js';
import type { RunItem, RunStream } from '../event/run-stream.js';
import type { Log } from '../observe/log.js';
import type { RunSecrets } from './run-secrets.js';

export function tellPlugins(
  { plugins = [] }: Agent,
  run: RunStream,
  { secrets, log }: { readonly secrets: RunSecrets; readonly log: Log },
): void {
  for (const plugin of plugins) {
    if (plugin.onEvent === undefined) continue;
    const tell = async (event: Event): Promise<void> => plugin.onEvent?.(structuredClone(event));
    run.listen((item) => {
      const event = eventOf(item);
      if (event === undefined) return;
      tell(event).catch((error: unknown) =>
        log.error(
          { plugin: plugin.name, pii: { cause: secrets.errorText(error) } },
          'a plugin that watches a run failed',
        ),
      );
    });
  }
}

function eventOf(item: RunItem): Event | undefined {
  return item.type === 'delta' || item.type === 'sealed' || item.type === 'event' ? item.event : undefined;
}
