import { readFileSync, readdirSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { createMetrics } from '../src/observe/metrics.js';

const FOLDER = new URL('../grafana/dashboards/', import.meta.url);

interface Panel {
  readonly title: string;
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly targets: readonly { readonly expr: string; readonly datasource: { readonly uid: string } }[];
}

const dashboards = readdirSync(FOLDER).map((file) => ({
  file,
  panels: (JSON.parse(readFileSync(new URL(file, FOLDER), 'utf8')) as { panels: Panel[] }).panels,
}));

describe('the dashboards', () => {
  it('ask only for metrics and labels that the server has', async () => {
    const metrics = createMetrics({
      version: '0',
      agent: 'a',
      model: 'm',
      endReasons: ['done'],
      tools: [],
      refusals: ['signature'],
      anomalies: ['badPayload'],
      streamEvents: ['stream-started'],
    });
    const text = await metrics.registry.metrics();
    metrics.close();
    const names = new Set([...text.matchAll(/^# TYPE (earshot_\w+)/gm)].map(([, name]) => name));
    const asked = dashboards.flatMap(({ panels }) =>
      panels.flatMap(({ targets }) => targets.map(({ expr }) => expr)),
    );
    expect(asked.length).toBeGreaterThan(10);
    for (const expr of asked) {
      const used = [...expr.matchAll(/earshot_[a-z_]+/g)].map(([name]) => name.replace(/_bucket$/, ''));
      expect(used.length).toBeGreaterThan(0);
      expect(used.filter((name) => !names.has(name))).toEqual([]);
    }
  });

  it('use the provisioned data source and no place twice', () => {
    for (const { panels } of dashboards) {
      const places = panels.map(({ gridPos }) => `${gridPos.x},${gridPos.y}`);
      expect(new Set(places).size).toBe(panels.length);
      for (const { targets } of panels) {
        expect(targets.every(({ datasource }) => datasource.uid === 'earshot-prometheus')).toBe(true);
      }
    }
  });
});
