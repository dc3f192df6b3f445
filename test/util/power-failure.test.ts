import * as fs from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import * as z from 'zod';
import { diskFiles } from '../../src/dag/local.ts';
import { GramStore } from '../../src/gram/store.ts';
import type { AttemptKey } from '../../src/job/ids.ts';
import { Journal } from '../../src/pool/host/journal.ts';
import { placeOutputs } from '../../src/pool/map-outputs.ts';
import { appendOnce } from '../../src/scheduler/user-logs/append-once.ts';
import { LogJournal } from '../../src/scheduler/user-logs/journal.ts';
import type { AttemptSpec, FetchedFile } from '../../src/site/contract.ts';
import { Checkpoints } from '../../src/staging/checkpoints.ts';
import { placeAll } from '../../src/staging/place-all.ts';
import { placeBytes } from '../../src/staging/place-bytes.ts';
import { sha256Of } from '../../src/staging/sha256.ts';
import { Part } from '../../src/staging/url/part.ts';
import { markDirectory } from '../../src/util/marked-dir.ts';
import { namesFlushed } from '../../src/util/names-flushed.ts';
import { makeDirs, writeWhole } from '../../src/util/private-file.ts';
import { FlushedDisk } from '../flushed-disk.ts';

let disk: FlushedDisk;
beforeEach(async () => {
  disk = await FlushedDisk.begin();
});
afterEach(() => disk.end());

const left = (path: string) => disk.left(path)?.toString();
/** In a directory that survives. */
function there(name: string): string {
  const dir = disk.path(name);
  makeDirs(dir);
  return dir;
}

it('leaves a file that was written whole, also in a directory that was made for it', () => {
  const path = disk.path('a/b/file');
  makeDirs(dirname(path));
  for (const text of ['one', 'two']) {
    writeWhole(path, text);
    expect(left(path)).toBe(text);
  }
});

it("leaves all of the pool's journal that was acknowledged, also after it was rewritten", async () => {
  const path = disk.path('pool/journal');
  const journal = new Journal<number>(path, (error) => expect.fail(error.message));
  const all: number[] = [];
  for (let n = 0; n < 20; n++) {
    journal.add(n);
    all.push(n);
    await new Promise<void>((saved) => journal.whenSaved(saved));
    if (n % 7 === 3) journal.rewrite(all);
    fs.writeFileSync(disk.path('left'), disk.left(path) ?? '');
    expect(Journal.read(disk.path('left'), z.number())).toEqual(all);
  }
  journal.close();
});

describe('results are left with their names as soon as they are in their places:', () => {
  it.each([1, 3, 150])('%i files, also in directories that were made for them', async (count) => {
    const [from, to] = [there('from'), there('to')];
    const files = Array.from({ length: count }, (_, i) => {
      fs.writeFileSync(join(from, `f${i}`), `content ${i}`);
      const nested = i % 3 === 2;
      if (nested) fs.mkdirSync(join(to, `deep ${i}/er`), { recursive: true });
      const path = join(to, nested ? `deep ${i}/er/f` : `f${i}`);
      const mayLink = i % 2 === 0;
      return { from: join(from, `f${i}`), to: path, executable: false, mayLink, ...(nested ? { below: to } : {}) };
    });
    await placeAll(files);
    expect(files.map((file) => left(file.to))).toEqual(files.map((_, i) => `content ${i}`));
  });

  it('streams that came with the report', async () => {
    const to = there('to');
    const names = Array.from({ length: 40 }, (_, i) => join(to, `out.${i}`));
    await Promise.all(
      names.map((name, i) => placeBytes(Buffer.from(`said ${i}`), name, name).then(() => left(name))),
    ).then((found) => expect(found).toEqual(names.map((_, i) => `said ${i}`)));
    await placeBytes(Buffer.alloc(0), 'nothing', join(to, 'empty'));
    expect(left(join(to, 'empty'))).toBe('');
  });

  it("a task's outputs", async () => {
    const cwd = there('work');
    const path = disk.path('came');
    fs.writeFileSync(path, 'made');
    const file: FetchedFile = { name: 'new/dir/it', kind: 'output', path, bytes: 4, executable: false };
    expect(await placeOutputs(cwd, [file], ['new/dir/it'])).toBeUndefined();
    expect(left(join(cwd, 'new/dir/it'))).toBe('made');
  });

  it('what a URL gave', async () => {
    const to = join(there('urls'), 'it');
    const part = new Part(to);
    await part.begin('v1');
    await part.write(0, (file) => new Promise<void>((done) => file.end('whole', done)));
    await part.finish();
    expect(left(to)).toBe('whole');
  });
});

it('says nothing of a directory that cannot be listed, and says that another is gone', async () => {
  await expect(namesFlushed(disk.path('gone'))).rejects.toMatchObject({ code: 'ENOENT' });
  const dir = disk.path('closed');
  fs.mkdirSync(dir, { mode: 0o300 });
  await namesFlushed(dir);
});

it('a flush of a directory is for all who asked before it began, and while one goes on, all wait for the next', async () => {
  const dir = there('many');
  const inode = fs.statSync(dir).ino;
  const before = disk.flushes.get(inode) ?? 0;
  const made: Promise<string | undefined>[] = [];
  const some = (turn: number) => {
    for (let i = 0; i < 50; i++) {
      const name = join(dir, `f${turn}.${i}`);
      fs.writeFileSync(name, '');
      made.push(namesFlushed(dir).then(() => left(name)));
    }
  };
  let go: () => void = () => undefined;
  disk.slow = new Promise((resolve) => (go = resolve));
  some(0);
  while (disk.flushes.get(inode) === before) await new Promise(setImmediate);
  for (let turn = 1; turn < 9; turn++) {
    some(turn);
    for (let i = 0; i < 5; i++) await new Promise(setImmediate);
  }
  go();
  expect(new Set(await Promise.all(made))).toEqual(new Set(['']));
  expect((disk.flushes.get(inode) ?? 0) - before).toBe(2);
});

describe('user logs', () => {
  it('that are new are left with the first event, also by another name', async () => {
    const [logs, links] = [there('logs'), there('links')];
    const path = join(logs, 'job.log');
    const link = join(links, 'link');
    fs.symlinkSync(path, link);
    await appendOnce({ path: link, text: '000 submitted\n', size: 0 });
    expect(left(path)).toBe('000 submitted\n');
    await appendOnce({ path: link, text: '001 started\n', size: 14 });
    expect(left(path)).toBe('000 submitted\n001 started\n');
  });

  it('that were made by a writer that was killed are left with what its successor writes', async () => {
    const path = join(there('logs'), 'job.log');
    fs.writeFileSync(path, '000 sub');
    await appendOnce({ path, text: '000 submitted\n', size: 0 });
    expect(left(path)).toBe('000 submitted\n');
  });

  it('have a journal that is left from the first event on', async () => {
    const path = join(there('state'), 'user-logs.journal');
    const journal = await LogJournal.open(path);
    await journal.accept({ from: '0-0', last: '1-0' }, [{ path: '/log', text: '000\n', size: 0 }], 1);
    expect(left(path)).toContain('000');
    await journal.close();
  });
});

it('a rescue file of a DAG, which its journal gives way to, and a save point in its new directory', () => {
  const dir = there('dag');
  const files = diskFiles(dir);
  files.keep('a.dag.rescue001', 'DONE a\n');
  expect(left(join(dir, 'a.dag.rescue001'))).toBe('DONE a\n');
  files.keep('save_files/a', 'DONE b\n');
  expect(left(join(dir, 'save_files/a'))).toBe('DONE b\n');
});

it('the identity of a state directory', () => {
  const dir = there('state');
  markDirectory(dir);
  expect(left(join(dir, 'state-id'))).toBe(fs.readFileSync(join(dir, 'state-id'), 'utf8'));
});

it('the note that a checkpoint is elsewhere, before its files here are removed', async () => {
  const checkpoints = new Checkpoints(there('kept'));
  const id = { cluster: 1, proc: 0 };
  const path = disk.path('came');
  fs.writeFileSync(path, 'image');
  await checkpoints.keep(id, 1, [{ name: 'image', kind: 'output', path, bytes: 5, executable: false }]);
  expect(left(disk.path('kept/1.0/1/files/image'))).toBe('image');
  await checkpoints.moveAway(id, 1, { url: 'https://x/1', manifest: 'https://x/1/MANIFEST', files: [] });
  expect(left(disk.path('kept/1.0/1/remote.json'))).toContain('https://x/1');
});

it('what the store of a GRAM service keeps of an attempt: its record and its inputs', async () => {
  const store = new GramStore(there('gram'));
  const path = disk.path('input');
  fs.writeFileSync(path, 'an input');
  const blob = { sha256: await sha256Of(path), bytes: 8, path };
  await store.keep(blob);
  expect(left(store.contentPath(blob.sha256))).toBe('an input');
  const key = 'agent.1.0.1' as AttemptKey;
  store.begin({ key } as AttemptSpec, 'proxy', 0);
  expect(left(store.path(key, 'record.json'))).toContain('"phase":"new"');
});
