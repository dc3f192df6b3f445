import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { GryphusError, asError } from '../errors.ts';
import type { Blob } from '../site/contract.ts';
import { isOnLocalDisk } from './local-disk.ts';
import { sha256Of } from './sha256.ts';

interface Known {
  /** The file's inode, size and times when it was read; any change means different content. */
  readonly look: string;
  readonly blob: Promise<Blob>;
}

/**
 * The content addresses of files at home. A file shared by many jobs is read only once, as long as its inode, size and
 * times stay the same.
 */
export class BlobIndex {
  readonly #known = new Map<string, Known>();
  readonly #capacity: number;

  /** `capacity`: how many files' addresses are remembered; the least recently used is dropped first. */
  constructor(capacity = 20_000) {
    this.#capacity = capacity;
  }

  /** The file's address; 'input-missing' names the file and why it cannot be read. */
  async blobOf(path: string): Promise<Blob> {
    let look: string;
    let bytes: number;
    try {
      const seen = await stat(path, { bigint: true });
      if (!seen.isFile()) throw new GryphusError('input-missing', `${path} is not a file.`);
      look = `${seen.dev}:${seen.ino}:${seen.size}:${seen.mtimeNs}:${seen.ctimeNs}`;
      bytes = Number(seen.size);
    } catch (thrown) {
      throw unreadable(path, thrown);
    }
    const known = this.#known.get(path);
    if (known?.look === look) {
      this.#known.delete(path);
      this.#known.set(path, known);
      return known.blob;
    }
    const blob = sha256(path, bytes).then((digest) => ({ sha256: digest, bytes, path }));
    this.#known.set(path, { look, blob });
    blob.catch(() => this.#known.delete(path));
    if (this.#known.size > this.#capacity) {
      const oldest = this.#known.keys().next();
      if (!oldest.done) this.#known.delete(oldest.value);
    }
    return blob;
  }
}

/** Up to this size, in bytes, a file is read at once, which costs a tenth of a stream. */
const SMALL = 64 * 1024;

async function sha256(path: string, bytes: number): Promise<string> {
  try {
    if (bytes > SMALL) return await sha256Of(path);
    const local = await isOnLocalDisk(dirname(path));
    const content = local ? readFileSync(path) : await readFile(path);
    return createHash('sha256').update(content).digest('hex');
  } catch (thrown) {
    throw unreadable(path, thrown);
  }
}

function unreadable(path: string, thrown: unknown): GryphusError {
  if (thrown instanceof GryphusError) return thrown;
  const cause = asError(thrown);
  const code = 'code' in cause ? cause.code : undefined;
  const why =
    code === 'ENOENT' ? 'does not exist' : code === 'EACCES' ? 'cannot be read' : `cannot be read (${cause.message})`;
  return new GryphusError('input-missing', `The input file ${path} ${why}.`, {
    cause,
    suggestions: ['Put the file there (or correct its name with `gryphus edit`), then `gryphus release` the job.'],
  });
}
