import { createHash } from 'node:crypto';
import type { FileHandle } from 'node:fs/promises';
import { EarlyFlush } from '../../util/early-flush.ts';

/** So much is written at once; bytes. */
const BLOCK = 1 << 20;

/** What is used of an open file. */
interface File extends Pick<FileHandle, 'datasync'> {
  readonly writev: (pieces: readonly Buffer[], at: number) => Promise<{ readonly bytesWritten: number }>;
  readonly write: (
    bytes: Buffer,
    offset: number,
    length: number,
    at: number,
  ) => Promise<{ readonly bytesWritten: number }>;
}

/** A file that arrives in order: while a block of it is written, the next comes. */
export class Arriving {
  readonly #file: File;
  readonly #hash: ReturnType<typeof createHash> | undefined;
  readonly #flush: EarlyFlush;
  #held: Buffer[] = [];
  #heldBytes = 0;
  #writing: Promise<void> = Promise.resolve();
  #end: number;

  constructor(file: File, begin: number) {
    this.#file = file;
    this.#flush = new EarlyFlush(file);
    this.#hash = begin === 0 ? createHash('sha256') : undefined;
    this.#end = begin;
  }

  /** Where the next byte belongs. */
  get end(): number {
    return this.#end;
  }

  /** Rejects if what came before could not be written. */
  async add(bytes: Buffer): Promise<void> {
    this.#hash?.update(bytes);
    this.#held.push(bytes);
    this.#heldBytes += bytes.length;
    this.#end += bytes.length;
    if (this.#heldBytes >= BLOCK) await this.#next();
  }

  /** Resolves when all of it is written. */
  async flush(): Promise<void> {
    await this.#next();
    await this.#writing;
  }

  /** Resolves when nothing is being written any more. */
  settled(): Promise<void> {
    return this.#writing.catch(() => undefined);
  }

  /** Of all of it (SHA-256, hex); `undefined` if it did not begin here. */
  digest(): string | undefined {
    return this.#hash?.digest('hex');
  }

  async #next(): Promise<void> {
    await this.#writing;
    if (this.#heldBytes === 0) return;
    this.#writing = this.#write(this.#held, this.#end - this.#heldBytes);
    // Whoever comes next finds it out.
    this.#writing.catch(() => undefined);
    this.#flush.wrote(this.#heldBytes);
    [this.#held, this.#heldBytes] = [[], 0];
  }

  async #write(pieces: readonly Buffer[], at: number): Promise<void> {
    const { bytesWritten } = await this.#file.writev(pieces, at);
    let skipped = bytesWritten;
    let offset = at + bytesWritten;
    for (const piece of pieces) {
      const left = piece.subarray(Math.min(skipped, piece.length));
      skipped -= piece.length - left.length;
      for (let done = 0; done < left.length; )
        done += (await this.#file.write(left, done, left.length - done, offset + done)).bytesWritten;
      offset += left.length;
    }
  }
}
