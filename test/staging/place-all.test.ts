import { chmod, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { placeAll } from '../../src/staging/place-all.ts';
import type { Placement } from '../../src/staging/place.ts';

let dir: string;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'gryphus place all '));
  await Promise.all([mkdir(join(dir, 'from')), mkdir(join(dir, 'to'))]);
});
afterEach(() => rm(dir, { recursive: true }));

async function placements(count: number, mayLink = true): Promise<Placement[]> {
  const all = Array.from({ length: count }, (_, i) => ({
    from: join(dir, 'from', `f${i}`),
    to: join(dir, 'to', `t${i}`),
  }));
  await Promise.all(all.map(({ from }) => writeFile(from, from, { mode: 0o600 })));
  return all.map((one, i) => ({ ...one, executable: i === 0, umask: 0o022, mayLink }));
}

it.each([3, 150])('%i files are placed whole, with their modes, and again after a crash', async (count) => {
  const all = await placements(count);
  for (let turn = 0; turn < 2; turn++) {
    await placeAll(all);
    expect((await readdir(join(dir, 'to'))).length).toBe(count);
    for (const { from, to, executable } of all) {
      expect(await readFile(to, 'utf8')).toBe(from);
      expect((await stat(to)).mode & 0o777).toBe(executable ? 0o755 : 0o644);
    }
  }
});

it.each([3, 150])(
  'of %i files, none is a link where a new file would have the group of its directory',
  async (count) => {
    await chmod(join(dir, 'to'), 0o2755);
    await placeAll(await placements(count));
    for (const name of await readdir(join(dir, 'to'))) expect((await stat(join(dir, 'to', name))).nlink).toBe(1);
  },
);

it('a stream, which may grow again, is copied', async () => {
  const all = await placements(150, false);
  await placeAll(all);
  await writeFile(join(dir, 'from/f7'), 'more');
  expect(await readFile(join(dir, 'to/t7'), 'utf8')).toBe(join(dir, 'from/f7'));
});

it('if one of many cannot be placed, nothing half made is left', async () => {
  const all = await placements(150);
  await rm(join(dir, 'from/f99'));
  await expect(placeAll(all)).rejects.toMatchObject({ code: 'output-unwritable' });
  expect(await readdir(join(dir, 'to'))).toEqual([]);
});
