import { existsSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { systemClock } from '../src/clock.js';
import { CONFIG_VARIABLES, readConfig } from '../src/config.js';
import { DRAIN_MAX_MS } from '../src/limits.js';
import { createLog } from '../src/observe/pino-log.js';
import { startServer } from '../src/server.js';
import {
  composeBreaches,
  environmentOf,
  readCompose,
  readDockerfile,
  type ComposeService,
} from './support/container-rules.js';
import { projectRoot, readProjectFile } from './tidy/project-files.js';

const text = readProjectFile('compose.yaml').text;
const compose = readCompose(text);
const image = environmentOf(readDockerfile(readProjectFile('Dockerfile').text));
const exists = (path: string): boolean => existsSync(join(projectRoot, path));

interface Scrape {
  readonly scrape_configs: readonly {
    readonly metrics_path: string;
    readonly authorization: { readonly type: string; readonly credentials_file: string };
    readonly static_configs: readonly { readonly targets: readonly string[] }[];
  }[];
}
const scrape = parse(readProjectFile('grafana/prometheus.yml').text) as Scrape;

function service(name: string): ComposeService {
  const found = compose.services[name];
  if (found === undefined) throw new Error(`compose.yaml has no service ${name}`);
  return found;
}

/** Where a path of the project is mounted in a service. */
function mountOf(name: string, path: string): string | undefined {
  return service(name)
    .volumes?.map((volume) => volume.split(':'))
    .find(([source]) => source === `./${path}`)?.[1];
}

/** Variables that compose asks for by name when they are missing. */
function required(name: string): string[] {
  const values = Object.entries(service(name).environment ?? {});
  return values.flatMap(([variable, value]) =>
    value?.startsWith(`\${${variable}:?`) === true ? [variable] : [],
  );
}

describe('compose.yaml', () => {
  test('keeps its rules', () => {
    expect(Object.keys(compose.services)).toEqual(['server', 'prometheus', 'grafana', 'postgres']);
    expect(composeBreaches(compose, exists)).toEqual([]);
  });

  test.each([
    ['a floating tag', 'prom/prometheus:v3.5.0', 'prom/prometheus:latest', 1],
    ['no tag', 'grafana/grafana:12.3.1', 'grafana/grafana', 1],
    ['a service that is not restarted', '    restart: unless-stopped\n', '', 1],
    ['a service without limits', '          memory: 512m\n', '', 1],
    ['capabilities', '    cap_drop: [ALL]\n', '', 1],
    ['privileges to gain', `    security_opt: ['no-new-privileges:true']\n`, '', 1],
    ['an endless log', '  options:\n    max-size: 10m\n', '  options:\n', 4],
    ['an open port', '- 127.0.0.1:3000:3000', '- 3000:3000', 1],
    ['a secret', '${POSTGRES_PASSWORD:-}', 'earshot', 1],
    ['a file that does not exist', './grafana/prometheus.yml:', './grafana/prometeus.yml:', 1],
    ['a file of the project that may be written', 'prometheus.yml:ro', 'prometheus.yml', 1],
    ['a volume that is not declared', '- data:/data', '- dat:/data', 1],
    ['a secret that is not declared', 'secrets: [metrics_token]', 'secrets: [token]', 1],
    ['a check by a shell', `['CMD', 'wget'`, `['CMD-SHELL', 'wget'`, 1],
    [
      'a wait for what only a profile starts',
      '      prometheus:\n        condition',
      '      postgres:\n        condition',
      1,
    ],
  ])('the rules find %s', (_, good, bad, breaches) => {
    expect(text).toContain(good);
    expect(composeBreaches(readCompose(text.replace(good, bad)), exists)).toHaveLength(breaches);
  });
});

describe('the server in compose.yaml', () => {
  const server = service('server');

  test('gets every variable of the configuration, so that none is set in vain', () => {
    const names = CONFIG_VARIABLES.map(({ name }) => name);
    expect(Object.keys(server.environment ?? {}).toSorted()).toEqual(names.toSorted());
  });

  test('asks for what the server would refuse to start without', () => {
    const given = Object.fromEntries(required('server').map((name) => [name, 'https://voice.example.com']));
    const { HOST } = server.environment ?? {};
    const environment = { ...given, HOST: HOST ?? undefined, MODEL: 'rehearsal' };
    expect(readConfig(environment).HOST).toBe('0.0.0.0');
    for (const name of ['PUBLIC_URL', 'TWILIO_AUTH_TOKEN', 'CONSOLE_TOKEN']) {
      expect(() => readConfig({ ...environment, [name]: '' })).toThrow(name);
    }
  });

  test('listens and writes where the image does, and can write nowhere else', () => {
    const { environment, read_only: readOnly, tmpfs, volumes, ports } = server;
    expect(environment).toMatchObject({
      HOST: image['HOST'],
      PORT: image['PORT'],
      DATA_DIR: image['DATA_DIR'],
    });
    expect(ports).toEqual([`127.0.0.1:${image['PORT']}:${image['PORT']}`]);
    expect(readOnly).toBe(true);
    expect(tmpfs?.map((mount) => mount.split(':')[0])).toEqual(['/tmp']);
    expect(volumes).toEqual([`data:${image['DATA_DIR']}`]);
  });

  test('is given longer to stop than a drain may last', () => {
    expect(server.stop_grace_period).toMatch(/^\d+s$/);
    expect(Number.parseInt(server.stop_grace_period ?? '', 10) * 1000).toBeGreaterThan(DRAIN_MAX_MS);
  });
});

describe('Prometheus and Grafana in compose.yaml', () => {
  const [job] = scrape.scrape_configs;

  test('scrape the server at its port, with the token that it was given', () => {
    expect(mountOf('prometheus', 'grafana/prometheus.yml')).toBe('/etc/prometheus/prometheus.yml');
    expect(service('prometheus')).toHaveProperty(
      'command',
      expect.arrayContaining(['--config.file=/etc/prometheus/prometheus.yml']),
    );
    expect(job?.static_configs).toEqual([{ targets: [`server:${image['PORT']}`] }]);
    expect(service('prometheus').secrets?.map((secret) => `/run/secrets/${secret}`)).toEqual([
      job?.authorization.credentials_file,
    ]);
    expect(compose.secrets).toEqual({ metrics_token: { environment: 'METRICS_TOKEN' } });
    expect(required('server')).toContain('METRICS_TOKEN');
  });

  test('ask the server for a path at which it serves metrics', async () => {
    const config = readConfig({
      PORT: '0',
      MODEL: 'rehearsal',
      PUBLIC_URL: 'https://voice.example.com',
      TWILIO_AUTH_TOKEN: 'b'.repeat(32),
      CONSOLE_TOKEN: 'c'.repeat(32),
      METRICS_TOKEN: 'd'.repeat(32),
      DATABASE_URL: `sqlite:${join(mkdtempSync(join(tmpdir(), 'earshot-compose-')), 'calls.db')}`,
    });
    const running = await startServer(config, {
      clock: systemClock,
      log: createLog({ level: 'silent', pretty: false }),
    });
    try {
      const authorization = `${job?.authorization.type} ${config.METRICS_TOKEN}`;
      const answer = await fetch(`${running.url}${job?.metrics_path}`, { headers: { authorization } });
      expect(answer.status).toBe(200);
      expect(await answer.text()).toContain('earshot_info{');
    } finally {
      await running.close();
    }
  });

  test('show the dashboards of grafana/ on the data that is scraped', () => {
    const datasources = readProjectFile('grafana/provisioning/datasources/prometheus.yml').text;
    const variable = /url: \$(\w+)/.exec(datasources)?.[1] ?? '';
    expect(service('grafana').environment?.[variable]).toBe('http://prometheus:9090');
    const providers = parse(readProjectFile('grafana/provisioning/dashboards/earshot.yml').text) as {
      providers: { options: { path: string } }[];
    };
    expect(providers.providers.map(({ options }) => options.path)).toEqual([
      mountOf('grafana', 'grafana/dashboards'),
    ]);
    for (const folder of ['datasources', 'dashboards']) {
      expect(mountOf('grafana', `grafana/provisioning/${folder}`)).toBe(
        `/etc/grafana/provisioning/${folder}`,
      );
    }
    const { GF_SECURITY_ADMIN_PASSWORD: password } = service('grafana').environment ?? {};
    expect(password).toMatch(/^\$\{GRAFANA_ADMIN_PASSWORD:\?/);
  });
});
