import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { FetchedFile } from '../../src/site/contract.ts';
import { Checkpoints } from '../../src/staging/checkpoints.ts';

const ID = { cluster: 7, proc: 2 };
let dir: string;
beforeEach(() => (dir = mkdtempSync(join(tmpdir(), 'gryphus checkpoints '))));
afterEach(() => rmSync(dir, { recursive: true, force: true }));

function came(kind: FetchedFile['kind'], name: string, text: string): FetchedFile {
  const path = join(dir, 'came', kind, name);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
  return { kind, name, path, bytes: text.length, executable: false };
}

it('continues from the last whole checkpoint of an earlier attempt, with its streams joined', async () => {
  const checkpoints = new Checkpoints(join(dir, 'kept'));
  expect(await checkpoints.filesFor(ID, 1)).toBeUndefined();
  await checkpoints.keep(ID, 1, [came('output', 'deep/state $(x)', '1'), came('stdout', 'out', 'one\n')]);
  expect(await checkpoints.filesFor(ID, 1)).toBeUndefined();
  const second = [came('output', 'deep/state $(x)', '2'), came('stdout', 'out', 'two\n')];
  // As after a crash: it was started, and is done twice.
  mkdirSync(join(dir, 'kept/7.2/2.new/files'), { recursive: true });
  await checkpoints.keep(ID, 2, second);
  await checkpoints.keep(ID, 2, second);
  const files = await checkpoints.filesFor(ID, 3);
  expect(readFileSync(join(files ?? '', 'deep/state $(x)'), 'utf8')).toBe('2');
  const last = came('stdout', 'out', 'three\n');
  expect(readFileSync(await checkpoints.joined(ID, 3, 'stdout', last.path), 'utf8')).toBe('one\ntwo\nthree\n');
  expect(await checkpoints.joined(ID, 3, 'stderr', last.path)).toBe(last.path);
  expect(readdirSync(join(dir, 'kept/7.2'))).toEqual(['2']);
  expect(await checkpoints.jobs()).toEqual([ID]);
  await checkpoints.remove(ID);
  expect(await checkpoints.jobs()).toEqual([]);
});

it('takes no file out of its directory', async () => {
  const checkpoints = new Checkpoints(join(dir, 'kept'));
  const evil = { ...came('output', 'x', ''), name: '../../../x' };
  await expect(checkpoints.keep(ID, 1, [evil])).rejects.toMatchObject({ code: 'bad-input' });
  expect(await checkpoints.filesFor(ID, 2)).toBeUndefined();
});
