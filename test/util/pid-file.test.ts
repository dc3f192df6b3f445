import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { readPid } from '../../src/util/pid-file.ts';

const dir = mkdtempSync(join(tmpdir(), 'gryphus-pid-'));
afterAll(() => rmSync(dir, { recursive: true, force: true }));

describe('a pid file', () => {
  it.each([
    ['4711\n', 4711],
    [' 4711', 4711],
    ['', undefined],
    ['\n', undefined],
    ['0\n', undefined],
    ['1\n', undefined],
    ['-1\n', undefined],
    ['47 11', undefined],
    ['0x10', undefined],
    ['nobody', undefined],
  ])('that holds %j names %s', (text, pid) => {
    const file = join(dir, 'a.pid');
    writeFileSync(file, text);
    expect(readPid(file)).toBe(pid);
  });

  it('that does not exist names no process', () => {
    expect(readPid(join(dir, 'none.pid'))).toBeUndefined();
  });

  it('is read only by readPid', () => {
    const root = resolve(import.meta.dirname, '../..');
    const files = ['src', 'test', 'bench'].flatMap((folder) =>
      readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
        .filter((name) => name.endsWith('.ts') || name.endsWith('.mjs'))
        .map((name) => join(folder, name)),
    );
    const strangers = files.filter(
      (file) =>
        /Number(\.parseInt)?\(\s*(await\s+)?readFile(Sync)?\([^)]*pid/i.test(readFileSync(join(root, file), 'utf8')) &&
        !file.endsWith('pid-file.ts'),
    );
    expect(strangers).toEqual([]);
  });
});
