import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { makeFolder } from '../src/make-folder.js';

const root = mkdtempSync(join(tmpdir(), 'earshot-folder-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

describe('a folder', () => {
  it('is made with what is missing above it, for the user alone, and may be there already', () => {
    const path = join(root, 'a', 'b', 'c');
    makeFolder(path);
    makeFolder(path);
    expect(statSync(path).isDirectory()).toBe(true);
    expect(statSync(join(root, 'a')).mode & 0o777).toBe(0o700);
  });

  it('that a file stands in the way of is an error', () => {
    writeFileSync(join(root, 'file'), '');
    expect(() => makeFolder(join(root, 'file', 'inside'))).toThrow(/ENOTDIR/);
  });

  it.skipIf(!existsSync('/proc/self'))('that cannot be made is an error at once, not an endless try', () => {
    expect(() => makeFolder('/proc/x/y')).toThrow(/ENOENT/);
  });
});
