import * as fs from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import * as z from 'zod';
import { Journal } from '../../src/pool/host/journal.ts';
import { makeDirs, writeWhole } from '../../src/util/private-file.ts';

/** What was flushed: of files, by inode, their content; of directories, by path, their names and inodes. */
const disk = vi.hoisted(() => ({ files: new Map<number, Buffer>(), names: new Map<string, Map<string, number>>() }));

vi.mock('node:fs', async (original) => {
  const real = await original<typeof fs>();
  const note = (fd: number) => {
    const path = real.readlinkSync(`/proc/self/fd/${fd}`);
    const found = real.fstatSync(fd);
    if (found.isDirectory()) {
      const inode = (name: string) => real.lstatSync(`${path}/${name}`).ino;
      disk.names.set(path, new Map(real.readdirSync(path).map((name) => [name, inode(name)])));
    } else disk.files.set(found.ino, real.readFileSync(`/proc/self/fd/${fd}`));
  };
  return {
    ...real,
    fsyncSync: note,
    fdatasync: (fd: number, done: (error: null) => void) => {
      note(fd);
      setImmediate(done, null);
    },
  };
});

let dir: string;
beforeEach(() => {
  dir = fs.mkdtempSync(join(tmpdir(), 'gryphus-'));
  disk.files.clear();
  disk.names.clear();
});
afterEach(() => fs.rmSync(dir, { recursive: true }));

/** The file as a power failure leaves it now, in another place; `undefined`: it is gone. */
function left(path: string): string | undefined {
  for (let at = path; at !== dir; at = dirname(at))
    if (!disk.names.get(dirname(at))?.has(at.slice(dirname(at).length + 1))) return undefined;
  const inode = disk.names.get(dirname(path))?.get(path.slice(dirname(path).length + 1));
  const there = join(dir, 'left');
  fs.writeFileSync(there, disk.files.get(inode ?? -1) ?? '');
  return there;
}

it('leaves a file that was written whole, also in a directory that was made for it', () => {
  const path = join(dir, 'a/b/file');
  makeDirs(dirname(path));
  for (const text of ['one', 'two']) {
    writeWhole(path, text);
    expect(fs.readFileSync(left(path) ?? '', 'utf8')).toBe(text);
  }
});

it("leaves all of the pool's journal that was acknowledged, also after it was rewritten", async () => {
  const path = join(dir, 'pool/journal');
  const journal = new Journal<number>(path, (error) => expect.fail(error.message));
  const all: number[] = [];
  for (let n = 0; n < 20; n++) {
    journal.add(n);
    all.push(n);
    await new Promise<void>((saved) => journal.whenSaved(saved));
    if (n % 7 === 3) journal.rewrite(all);
    expect(Journal.read(left(path) ?? '', z.number())).toEqual(all);
  }
  journal.close();
});
