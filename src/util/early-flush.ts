import type { FileHandle } from 'node:fs/promises';

/** How many bytes are written between two flushes. */
const STEP = 64 << 20;

/**
 * Flushes a large file now and then while it arrives, so that the flush at its end, which must be waited for, has little
 * left to write.
 */
export class EarlyFlush {
  readonly #file: Pick<FileHandle, 'datasync'>;
  #unflushed = 0;
  #flushing = false;

  constructor(file: Pick<FileHandle, 'datasync'>) {
    this.#file = file;
  }

  /** Returns at once. A disk that fails here fails at the last flush too. */
  wrote(bytes: number): void {
    this.#unflushed += bytes;
    if (this.#unflushed < STEP || this.#flushing) return;
    this.#unflushed = 0;
    this.#flushing = true;
    this.#file.datasync().then(
      () => (this.#flushing = false),
      () => undefined,
    );
  }
}
