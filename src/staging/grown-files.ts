import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, open, readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { AttemptKey } from '../job/ids.ts';
import { unplaceable } from './place.ts';

/** How much has come of a file, in bytes, and how often its job had begun it anew by then. */
export interface Grown {
  readonly version: number;
  readonly bytes: number;
}

/**
 * What has come home of files that grow while their jobs run: `<root>/<key>/<hash of the name>.<version>`. Names are the
 * job's: one may be too long for this disk, or lead elsewhere.
 */
export class GrownFiles {
  readonly #root: string;

  constructor(root: string) {
    this.#root = root;
  }

  path(key: AttemptKey, name: string, version: number): string {
    return join(this.#root, key, `${hashOf(name)}.${version}`);
  }

  /** What an earlier process left here, by name. */
  async left(key: AttemptKey): Promise<(name: string) => Grown | undefined> {
    const found = new Map<string, Grown>();
    const directory = join(this.#root, key);
    for (const file of await readdir(directory).catch(() => [])) {
      const [hash = '', text] = file.split('.');
      const version = Number(text);
      if (version >= (found.get(hash)?.version ?? 0))
        found.set(hash, { version, bytes: (await stat(join(directory, file))).size });
    }
    return (name) => found.get(hashOf(name));
  }

  async read(key: AttemptKey, name: string, version: number, offset: number, bytes: number): Promise<Buffer> {
    if (bytes === 0) return Buffer.alloc(0);
    const file = await open(this.path(key, name, version), 'r');
    try {
      const { buffer, bytesRead } = await file.read(Buffer.alloc(bytes), 0, bytes, offset);
      return buffer.subarray(0, bytesRead);
    } finally {
      await file.close();
    }
  }

  /** Rejects with 'disk-full' or 'output-unwritable', possibly after writing some of the bytes. */
  async append(key: AttemptKey, name: string, version: number, bytes: Uint8Array): Promise<void> {
    const path = this.path(key, name, version);
    try {
      await mkdir(join(this.#root, key), { recursive: true, mode: 0o700 });
      const file = await open(path, 'a', 0o600);
      try {
        await file.appendFile(bytes);
      } finally {
        await file.close();
      }
    } catch (thrown) {
      throw unplaceable(path, thrown);
    }
  }

  async drop(key: AttemptKey, name: string, version: number): Promise<void> {
    await rm(this.path(key, name, version), { force: true });
  }

  async remove(key: AttemptKey): Promise<void> {
    const directory = join(this.#root, key);
    if (existsSync(directory)) await rm(directory, { recursive: true, force: true });
  }
}

/** A name of fixed length for any name of a job. */
export function hashOf(name: string): string {
  return createHash('sha256').update(name).digest('hex').slice(0, 40);
}
