import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { projectRoot, readProjectFile } from '../tidy/project-files.js';
import {
  describeHumanSpeech,
  HUMAN_SPEECH_PACKAGES,
  planOf,
  readRecording,
  recordingsBelow,
} from './human-speech.js';

const root = mkdtempSync(join(tmpdir(), 'earshot-speech-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

describe('recorded people that are not installed', () => {
  const here = recordingsBelow(join(root, 'here'));
  for (const { path } of here) {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, '');
  }

  it('are told with what installs them, and required ones fail', () => {
    const none = recordingsBelow(join(root, 'nothing'));
    expect(planOf(none, false)).toEqual({
      plan: 'skip',
      why: expect.stringMatching(/^(\d+) of \1 recordings.*install-test-sounds\.sh/) as string,
    });
    expect(planOf(none, true).plan).toBe('fail');
  });

  it('are missing as a whole when one file is', () => {
    expect(planOf(here, false).plan).toBe('test');
    for (const { path, package: name } of [here.at(0)!, here.at(-1)!]) {
      rmSync(path);
      expect(planOf(here, false)).toEqual({
        plan: 'skip',
        why: expect.stringContaining(`installs ${name}`) as string,
      });
      expect(planOf(here, true).plan).toBe('fail');
      writeFileSync(path, '');
    }
  });
});

describe('scripts/install-test-sounds.sh', () => {
  it('installs the packages that the tests read, and no other', () => {
    const script = readProjectFile('scripts/install-test-sounds.sh').text;
    const packages = /^packages=\(([^)]*)\)/m.exec(script)?.[1]?.trim().split(/\s+/);
    expect(packages?.toSorted()).toEqual(HUMAN_SPEECH_PACKAGES.toSorted());
  });

  it('says that it cannot where there is no apt, with a status of its own', () => {
    const bash = spawnSync('sh', ['-c', 'command -v bash'], { encoding: 'utf8' }).stdout.trim();
    const ran = spawnSync(bash, [join(projectRoot, 'scripts/install-test-sounds.sh')], {
      env: { PATH: root },
      encoding: 'utf8',
    });
    expect(ran.status).toBe(3);
    expect(ran.stderr).toContain('NOT INSTALLED');
  });
});

describeHumanSpeech('recorded people', (recordings) => {
  it('are speech of some seconds, at a rate that the telephone has', () => {
    let seconds = 0;
    for (const recording of recordings) {
      const samples = readRecording(recording);
      const peak = samples.reduce((most, sample) => Math.max(most, Math.abs(sample)), 0);
      expect(samples.length / 8_000, `${recording.name}: length or peak`).toBeGreaterThan(0.8);
      expect(peak, `${recording.name}: length or peak`).toBeGreaterThan(0.03);
      expect(peak, `${recording.name}: length or peak`).toBeLessThanOrEqual(1.25);
      seconds += samples.length / 8_000;
    }
    expect(seconds).toBeGreaterThan(150);
  });
});
