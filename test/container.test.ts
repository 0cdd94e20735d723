import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import {
  copiedPaths,
  dockerfileBreaches,
  environmentOf,
  execForm,
  isIgnored,
  readDockerfile,
} from './support/container-rules.js';
import { projectPaths, projectRoot, readProjectFile, readProjectJson } from './tidy/project-files.js';

const dockerfile = readProjectFile('Dockerfile').text;
const ignoreFile = readProjectFile('.dockerignore').text;
const manifest = readProjectJson('package.json') as {
  scripts: Record<string, string>;
  allowScripts: Record<string, boolean>;
};
const facts = {
  nodeLines: [...readProjectFile('.ci/run').text.matchAll(/\b(\d+)\.\d+\.\d+\b/g)].map(
    ([, major]) => major ?? '',
  ),
  scriptsAllowed: Object.values(manifest.allowScripts).includes(true),
  startCommand: /exec (.*)$/.exec(manifest.scripts['start'] ?? '')?.[1] ?? '',
};

describe('the Dockerfile', () => {
  test('keeps its rules', () => {
    expect(facts.nodeLines).toContain('20');
    expect(facts.startCommand).toBe('node dist/main.js');
    expect(dockerfileBreaches(dockerfile, facts)).toEqual([]);
  });

  test.each([
    ['one stage', (text: string) => text.slice(text.lastIndexOf('FROM ')), 1],
    ['several bases', (text: string) => text.replace('bookworm', 'trixie'), 1],
    ['an unchecked Node', (text: string) => text.replaceAll('node:20-', 'node:18-'), 1],
    ['a floating base', (text: string) => text.replaceAll('node:20-bookworm-slim', 'node:latest'), 1],
    ['npm install', (text: string) => text.replace('npm ci', 'npm install'), 1],
    ['install scripts', (text: string) => text.replace(' --ignore-scripts', ''), 1],
    ['npm at run time', (text: string) => text.replace('CMD ["node", "dist', 'CMD ["npm", "dist'), 2],
    ['a user by name', (text: string) => text.replace('USER 10001:10001', 'USER node'), 1],
    ['root', (text: string) => text.replace('USER 10001:10001', 'USER 0:0'), 1],
    ['no user', (text: string) => text.replace('USER 10001:10001\n', ''), 1],
    ['a build step as the user', (text: string) => text.replace('EXPOSE', 'RUN true\nEXPOSE'), 1],
    ['a shell before the server', (text: string) => text.replace(/^CMD .*$/m, 'CMD node dist/main.js'), 1],
    ['no health check', (text: string) => text.replace(/^HEALTHCHECK[^\n]*\\\n.*\n/m, ''), 1],
    ['another signal', (text: string) => text.replace('STOPSIGNAL SIGTERM', 'STOPSIGNAL SIGKILL'), 1],
    ['development mode', (text: string) => text.replace('NODE_ENV=production', 'NODE_ENV=development'), 1],
    ['another port', (text: string) => text.replace('EXPOSE 8080', 'EXPOSE 80'), 1],
    ['another volume', (text: string) => text.replace('VOLUME ["/data"]', 'VOLUME ["/var"]'), 1],
    ['a secret', (text: string) => text.replace('PORT=8080', 'PORT=8080 CONSOLE_TOKEN=a'), 1],
  ])('the rules find %s', (_, change, breaches) => {
    expect(change(dockerfile)).not.toBe(dockerfile);
    expect(dockerfileBreaches(change(dockerfile), facts)).toHaveLength(breaches);
  });

  test('copies only what exists and what .dockerignore lets in', () => {
    const paths = projectPaths();
    const copied = copiedPaths(dockerfile);
    expect(copied.length).toBeGreaterThan(5);
    for (const path of copied.map((each) => each.replace(/^\.\//, ''))) {
      expect(paths.some((each) => each === path || each.startsWith(`${path}/`))).toBe(true);
      expect(isIgnored(ignoreFile, path)).toBe(false);
    }
  });

  test('starts files that the image has', () => {
    const instructions = readDockerfile(dockerfile);
    const check = execForm(instructions.find(({ name }) => name === 'HEALTHCHECK')?.value ?? '');
    expect(check?.[1]).toBe('scripts/container/healthcheck.mjs');
    expect(copiedPaths(dockerfile)).toContain(check?.[1]);
    expect(environmentOf(instructions)).toMatchObject({ HOST: '0.0.0.0', PORT: '8080', DATA_DIR: '/data' });
  });
});

describe('.dockerignore', () => {
  test.each([
    '.env',
    '.env.local',
    'agents/.env',
    '.git',
    '.git/config',
    '.ci/run',
    'node_modules',
    'node_modules/ws/index.js',
    'agents/node_modules/a/index.js',
    'dist/main.js',
    'data/earshot.db',
    'coverage',
    'heard.wav',
    'call-server.log',
  ])('keeps %s out', (path) => {
    expect(isIgnored(ignoreFile, path)).toBe(true);
  });

  test.each(['.npmrc', 'src/main.ts', 'src/console/operations-api.ts', 'agents/support.ts', 'LICENSE'])(
    'lets %s in',
    (path) => {
      expect(isIgnored(ignoreFile, path)).toBe(false);
    },
  );
});

describe('the health check', () => {
  let server: Server | undefined;
  afterEach(() => {
    server?.closeAllConnections();
    server?.close();
  });

  async function listen(answer: RequestListener, host = '127.0.0.1'): Promise<string> {
    server = createServer(answer);
    await new Promise<void>((listening) => server?.listen(0, host, listening));
    return String((server.address() as AddressInfo).port);
  }

  function check(env: Record<string, string>): Promise<{ code: number | null; said: string }> {
    return new Promise((ended) => {
      const script = join(projectRoot, 'scripts/container/healthcheck.mjs');
      const child = spawn(process.execPath, [script], { env, stdio: ['ignore', 'ignore', 'pipe'] });
      let said = '';
      child.stderr.on('data', (bytes: Buffer) => (said += bytes.toString()));
      child.on('close', (code) => ended({ code, said }));
    });
  }

  test.each(['0.0.0.0', '127.0.0.1', ''])('is green when /healthz answers, with HOST=%s', async (HOST) => {
    const PORT = await listen((request, response) =>
      response.writeHead(request.url === '/healthz' ? 200 : 404).end(),
    );
    expect(await check({ HOST, PORT })).toEqual({ code: 0, said: '' });
  });

  test('is red, and says why, when /healthz answers something else', async () => {
    const PORT = await listen((_, response) => response.writeHead(503).end());
    expect(await check({ HOST: '0.0.0.0', PORT })).toEqual({
      code: 1,
      said: 'not healthy: /healthz answered 503\n',
    });
  });

  test('is red when nobody listens', async () => {
    const PORT = await listen(() => {});
    await new Promise((closed) => server?.close(closed));
    expect((await check({ PORT })).code).toBe(1);
  });

  test('is red when no answer comes', async () => {
    const PORT = await listen(() => {});
    expect(await check({ PORT })).toEqual({ code: 1, said: 'not healthy: no answer within 2500 ms\n' });
  });
});

describe('the container script', () => {
  const scripts = projectPaths().filter((path) => /^scripts\/container\/.*\.sh$/.test(path));

  test.each(scripts)('%s is a shell script that can be read', (path) => {
    expect(spawnSync('bash', ['-n', join(projectRoot, path)], { encoding: 'utf8' })).toMatchObject({
      status: 0,
      stderr: '',
    });
  });

  test('says what is missing, with 69, and touches nothing', () => {
    const bin = mkdtempSync(join(tmpdir(), 'earshot-container-'));
    for (const name of ['dirname', 'uname', 'bash']) {
      const { stdout } = spawnSync('bash', ['-c', `command -v ${name}`], { encoding: 'utf8' });
      symlinkSync(stdout.trim(), join(bin, name));
    }
    const script = join(projectRoot, 'scripts/container/check.sh');
    const asked = spawnSync(join(bin, 'bash'), [script], { env: { PATH: bin }, encoding: 'utf8' });
    rmSync(bin, { recursive: true });
    expect(asked).toMatchObject({ status: 69, stdout: '' });
    for (const name of ['apt-get', 'node', 'npm', 'unshare']) expect(asked.stderr).toMatch(`\n  ${name}`);
  });
});
