import { closeSync, fchmodSync, fdatasync, openSync, renameSync, rmSync, statSync, writeSync } from 'node:fs';
import { type FileHandle, open, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { Readable } from 'node:stream';
import { isOnLocalDisk } from './local-disk.ts';
import { namesKept, partOf, placeWhole, UMASK, unplaceable } from './place.ts';
import { isSpecialFile, pour } from './pour.ts';

/**
 * Puts a small file that is in memory where the user wants it, like `place`. `source` names the job's stream, so that jobs
 * that write the same name at once do not interfere.
 */
export async function placeBytes(bytes: Uint8Array, source: string, to: string, umask = UMASK): Promise<void> {
  const mode = 0o666 & ~umask;
  const local = isOnLocalDisk(dirname(to));
  await ((typeof local === 'boolean' ? local : await local)
    ? placeHere(bytes, partOf(to, source), to, mode)
    : placeElsewhere(bytes, partOf(to, source), to, mode));
  await namesKept([{ to }]);
}

/** Only what waits for the disk is asynchronous. */
async function placeHere(bytes: Uint8Array, waiting: string, to: string, mode: number): Promise<void> {
  try {
    if (isSpecialFile(to, statSync(to, { throwIfNoEntry: false }))) {
      await pour(Readable.from([bytes]), to);
      return;
    }
    const fd = openNewHere(waiting, mode);
    try {
      for (let done = 0; done < bytes.length; ) done += writeSync(fd, bytes, done);
      if ((mode & UMASK) !== 0) fchmodSync(fd, mode);
      if (bytes.length > 0) await synced(fd);
    } finally {
      closeSync(fd);
    }
    renameSync(waiting, to);
  } catch (thrown) {
    rmSync(waiting, { force: true });
    throw unplaceable(to, thrown);
  }
}

function openNewHere(path: string, mode: number): number {
  try {
    return openSync(path, 'wx', mode);
  } catch (thrown) {
    if (!isThere(thrown)) throw thrown;
    rmSync(path);
    return openSync(path, 'wx', mode);
  }
}

function synced(fd: number): Promise<void> {
  return new Promise((resolve, reject) => {
    fdatasync(fd, (error) => (error ? reject(error) : resolve()));
  });
}

async function placeElsewhere(bytes: Uint8Array, waiting: string, to: string, mode: number): Promise<void> {
  await placeWhole(
    to,
    waiting,
    () => Readable.from([bytes]),
    async () => {
      const file = await openNew(waiting, mode);
      try {
        if (bytes.length > 0) await file.writeFile(bytes);
        if ((mode & UMASK) !== 0) await file.chmod(mode);
        if (bytes.length > 0) await file.datasync();
      } finally {
        await file.close();
      }
    },
  );
}

/** What an earlier try left under this name is replaced. */
async function openNew(path: string, mode: number): Promise<FileHandle> {
  try {
    return await open(path, 'wx', mode);
  } catch (thrown) {
    if (!isThere(thrown)) throw thrown;
    await rm(path);
    return open(path, 'wx', mode);
  }
}

function isThere(thrown: unknown): boolean {
  return thrown instanceof Error && 'code' in thrown && thrown.code === 'EEXIST';
}
