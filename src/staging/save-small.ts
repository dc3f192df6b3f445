import { closeSync, openSync, rmSync, writeSync } from 'node:fs';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { keepFloor } from './disk-floor.ts';
import { isOnLocalDisk } from './local-disk.ts';
import { makeParents } from './place.ts';

/** The free space of this disk is checked after this many bytes. */
const CHECK_BYTES = 8 << 20;

/** Writes small results into attempts' directories at home. Rejects with 'disk-full' or the error of the file system. */
export class SmallSaver {
  readonly #made = new Set<string>();
  #unchecked = Number.POSITIVE_INFINITY;

  /** `path` is below `into`. An earlier file of that name is replaced, not written to: it may have other names. */
  async save(into: string, path: string, bytes: Buffer): Promise<void> {
    await this.makeParents(into, path);
    this.#unchecked += bytes.length;
    if (this.#unchecked > CHECK_BYTES) {
      const spacious = await keepFloor(into, bytes.length + CHECK_BYTES).then(
        () => true,
        () => false,
      );
      if (spacious) this.#unchecked = 0;
      // On a small or almost full disk, each file counts.
      else await keepFloor(into, bytes.length);
    }
    const local = isOnLocalDisk(into);
    if (typeof local === 'boolean' ? local : await local) writeHere(path, bytes);
    else {
      await rm(path, { force: true });
      await writeFile(path, bytes, { mode: 0o600 });
    }
  }

  /** Makes the directories of a file. */
  async makeParents(into: string, path: string): Promise<void> {
    const directory = dirname(path);
    if (this.#made.has(directory)) return;
    await mkdir(into, { recursive: true, mode: 0o700 });
    await makeParents(into, path);
    this.#made.add(directory);
  }
}

function writeHere(path: string, bytes: Buffer): void {
  rmSync(path, { force: true });
  const fd = openSync(path, 'wx', 0o600);
  try {
    for (let done = 0; done < bytes.length; ) done += writeSync(fd, bytes, done);
  } finally {
    closeSync(fd);
  }
}
