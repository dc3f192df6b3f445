import { mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { isOnLocalDisk } from '../../src/staging/local-disk.ts';
import { partOf } from '../../src/staging/place.ts';
import { placeBytes } from '../../src/staging/place-bytes.ts';

vi.mock('../../src/staging/local-disk.ts', { spy: true });

describe.each([
  ['on a disk of this machine', true],
  ['elsewhere', false],
])('a small file from memory %s', (_, local) => {
  let dir: string;
  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), 'gryphus place bytes '));
    vi.mocked(isOnLocalDisk).mockReturnValue(local);
  });
  afterEach(() => rm(dir, { recursive: true }));

  it('replaces the target with the whole content, whatever is left of an earlier try', async () => {
    const to = join(dir, 'to');
    const put = (text: string, umask = 0o022) => placeBytes(Buffer.from(text), 'source', to, umask);
    await put('old and longer');
    // What a process left that died while it wrote.
    await writeFile(partOf(to, 'source'), 'a much longer part of something', { mode: 0o600 });
    await put('new', 0o002);
    expect(await readFile(to, 'utf8')).toBe('new');
    expect((await stat(to)).mode & 0o777).toBe(0o664);
    await put('', 0o077);
    expect(await readFile(to, 'utf8')).toBe('');
    expect((await stat(to)).mode & 0o777).toBe(0o600);
    expect(await readdir(dir)).toEqual(['to']);
    const texts = Array.from({ length: 20 }, (_, job) => String(job).repeat(5000));
    await Promise.all(texts.map((text, job) => placeBytes(Buffer.from(text), `source ${job}`, to)));
    expect(texts).toContain(await readFile(to, 'utf8'));
    await symlink('/dev/null', join(dir, 'null'));
    await placeBytes(Buffer.from('x'), 's', join(dir, 'null'));
    expect((await stat(join(dir, 'null'))).isCharacterDevice()).toBe(true);
    for (const [place, code] of [
      ['nowhere/out', 'output-unwritable'],
      ['.', 'output-unwritable'],
      ['/dev/full', 'disk-full'],
    ] as const)
      await expect(placeBytes(Buffer.from('x'), 's', resolve(dir, place))).rejects.toMatchObject({ code });
    expect((await readdir(dir)).sort()).toEqual(['null', 'to']);
  });
});

it("knows this machine's memory as local, and /proc and what is not there as no place for files", async () => {
  vi.mocked(isOnLocalDisk).mockRestore();
  expect(await isOnLocalDisk('/dev/shm')).toBe(true);
  expect(isOnLocalDisk('/dev/shm')).toBe(true);
  expect([await isOnLocalDisk('/proc'), await isOnLocalDisk('/proc/nowhere')]).toEqual([false, false]);
});
