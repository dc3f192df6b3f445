import { execFileSync } from 'node:child_process';
import { chownSync, lchownSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { isInVain, namedFiles, refuseTooMany } from '../../src/pool/worker/results.ts';

const isRoot = process.getuid?.() === 0;
let dir = '';
let work = '';
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'results-'));
  work = join(dir, 'work');
  mkdirSync(work);
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const place = (uid?: number) => ({ work, uid, stream: (name: string) => join(dir, name) });

it('links that lead to the same directories again and again are no result', () => {
  for (let n = 0; n <= 30; n++) mkdirSync(join(work, `maze${n}`));
  for (let n = 0; n < 30; n++)
    for (const name of ['a', 'b']) symlinkSync(`../maze${n + 1}`, join(work, `maze${n}`, name));
  writeFileSync(join(work, 'maze30/file'), '');
  const { odd } = namedFiles(place(), ['maze0']);
  expect(odd.map(({ is }) => is)).toContain('loop');
  expect(namedFiles(place(), ['maze25'])).toMatchObject({ odd: [], files: { length: 32 } });
});

it('a link to itself is nothing, and one to a directory above it is a loop', () => {
  mkdirSync(join(work, 'out'));
  symlinkSync('self', join(work, 'out/self'));
  expect(namedFiles(place(), ['out', 'out/self'])).toEqual({ files: [], missing: ['out/self'], odd: [] });
  symlinkSync('..', join(work, 'out/up'));
  expect(namedFiles(place(), ['out']).odd).toEqual([{ name: 'out/up/out', is: 'loop' }]);
});

it.runIf(isRoot)('a worker of root names nothing that the links of another account lead to', () => {
  const uid = 54_322;
  const secret = join(dir, 'secret');
  mkdirSync(join(secret, 'names'), { recursive: true });
  execFileSync('mkfifo', [join(secret, 'names/a-secret-pipe')]);
  mkdirSync(join(work, 'out'));
  symlinkSync(secret, join(work, 'out/link'));
  writeFileSync(join(work, 'out/own'), 'x');
  for (const path of [work, join(work, 'out'), join(work, 'out/own')]) chownSync(path, uid, uid);
  lchownSync(join(work, 'out/link'), uid, uid);
  expect(namedFiles(place(uid), ['out'])).toMatchObject({ files: [{ name: 'out/own' }], missing: [], odd: [] });
});

it('more files than a message can name are refused for good', () => {
  const file = { name: 'x'.repeat(200), bytes: 0, executable: false };
  expect(() => refuseTooMany(Array.from({ length: 100_000 }, () => file))).not.toThrow();
  let thrown: unknown;
  try {
    refuseTooMany(Array.from({ length: 200_000 }, () => file));
  } catch (error) {
    thrown = error;
  }
  expect(thrown).toMatchObject({ message: expect.stringContaining('200000 files') });
  expect(isInVain(thrown)).toBe(true);
  expect(isInVain(new Error('the connection ended'))).toBe(false);
});
