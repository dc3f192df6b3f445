import { createHash } from 'node:crypto';
import type { FileHandle } from 'node:fs/promises';

/** What is used of an open file. */
export type WritableFile = Pick<FileHandle, 'fd' | 'write'>;

/** Memory that a thread can read, too. */
export interface Block {
  readonly shared: SharedArrayBuffer;
  readonly bytes: Uint8Array;
}

/** Who writes a file, block after block, and sums what it writes. */
export interface BlockWriter {
  /**
   * Rejects with the system's error if the bytes cannot be written; then nothing after them is written either, as whoever goes on later
   * begins at the file's end.
   */
  readonly write: (block: Block, bytes: number, at: number) => Promise<void>;
  /** SHA-256 (hex) of all that was given to be written; `undefined` if it is not known. */
  readonly digest: () => Promise<string | undefined>;
  /** Ends its thread; what it was given to write is still written, or rejects. */
  readonly close: () => Promise<void>;
}

/** Sums in this thread, and writes in Node's threads for files. */
export class WriterHere implements BlockWriter {
  readonly #file: Pick<WritableFile, 'write'>;
  readonly #hash: ReturnType<typeof createHash> | undefined;
  #before: Promise<void> = Promise.resolve();

  constructor(file: Pick<WritableFile, 'write'>, summed: boolean) {
    this.#file = file;
    this.#hash = summed ? createHash('sha256') : undefined;
  }

  write({ bytes }: Block, count: number, at: number): Promise<void> {
    this.#hash?.update(bytes.subarray(0, count));
    this.#before = this.#before.then(() => this.#write(bytes, count, at));
    return this.#before;
  }

  digest(): Promise<string | undefined> {
    return Promise.resolve(this.#hash?.digest('hex'));
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  async #write(bytes: Uint8Array, count: number, at: number): Promise<void> {
    for (let done = 0; done < count; )
      done += (await this.#file.write(bytes, done, count - done, at + done)).bytesWritten;
  }
}
