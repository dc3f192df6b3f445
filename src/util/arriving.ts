import type { FileHandle } from 'node:fs/promises';
import { type Block, type BlockWriter, type WritableFile, WriterHere } from './block-writer.ts';
import { EarlyFlush } from './early-flush.ts';
import { asError } from '../errors.ts';
import { startWritingThread } from './writing-thread.ts';

/** So much is written at once; bytes. */
const BLOCK = 1 << 19;
/** How many such blocks of memory a file has: one fills while the others are written. */
const BLOCKS = 4;
/** From this size on, a file gets a thread of its own, which costs 20 ms of the processor and 8 MB; bytes. */
const WORTH_A_THREAD = 64 << 20;

/** What is used of an open file. */
type File = WritableFile & Pick<FileHandle, 'datasync'>;

/**
 * A file that arrives in order. What arrives is copied, so that its memory can be used again at once; while it is written and summed, in a thread
 * if it is large, the next comes.
 */
export class Arriving {
  readonly #writer: BlockWriter;
  readonly #flush: EarlyFlush | undefined;
  readonly #size: number;
  readonly #free: Block[] = [];
  #made = 0;
  #filling: { readonly block: Block; filled: number } | undefined;
  readonly #under = new Set<Promise<void>>();
  #failure: Error | undefined;
  #end: number;

  /**
   * `begin`: where its first byte belongs. `bytes`: how many come, as far as is known. `sum`: whether `digest` is wanted, which needs a file that begins
   * here. `kept`: whether it will be flushed to disk at the end.
   */
  constructor(
    file: File,
    begin: number,
    { bytes, sum, kept }: { readonly bytes: number; readonly sum: boolean; readonly kept: boolean },
  ) {
    this.#flush = kept ? new EarlyFlush(file) : undefined;
    this.#size = Math.max(1, Math.min(BLOCK, bytes));
    const summed = sum && begin === 0;
    const thread = bytes >= WORTH_A_THREAD ? startWritingThread(file, summed) : undefined;
    this.#writer = thread ?? new WriterHere(file, summed);
    this.#end = begin;
  }

  /** Where the next byte belongs. */
  get end(): number {
    return this.#end;
  }

  /** Rejects if what came before could not be written. */
  async add(bytes: Uint8Array): Promise<void> {
    for (let done = 0; done < bytes.length; ) {
      if (this.#failure) throw this.#failure;
      this.#filling ??= { block: await this.#block(), filled: 0 };
      const { block, filled } = this.#filling;
      const some = bytes.subarray(done, done + this.#size - filled);
      block.bytes.set(some, filled);
      done += some.length;
      this.#end += some.length;
      this.#filling.filled += some.length;
      if (this.#filling.filled === this.#size) this.#send();
    }
  }

  /** Resolves when all of it is written. */
  async flush(): Promise<void> {
    this.#send();
    await Promise.all(this.#under);
    if (this.#failure) throw this.#failure;
  }

  /** Resolves when nothing is being written any more; only then may the file be closed. */
  async close(): Promise<void> {
    await this.#writer.close();
    await Promise.all(this.#under);
  }

  /** Of all of it (SHA-256, hex); `undefined` if it was not summed. */
  digest(): Promise<string | undefined> {
    return this.#writer.digest();
  }

  async #block(): Promise<Block> {
    for (;;) {
      const free = this.#free.pop();
      if (free) return free;
      if (this.#made < BLOCKS) {
        this.#made += 1;
        const shared = new SharedArrayBuffer(this.#size);
        return { shared, bytes: new Uint8Array(shared) };
      }
      await Promise.race(this.#under);
      if (this.#failure) throw this.#failure;
    }
  }

  #send(): void {
    if (!this.#filling) return;
    const { block, filled } = this.#filling;
    this.#filling = undefined;
    const written: Promise<void> = this.#writer.write(block, filled, this.#end - filled).then(
      () => {
        this.#under.delete(written);
        this.#free.push(block);
        this.#flush?.wrote(filled);
      },
      (thrown: unknown) => {
        this.#under.delete(written);
        this.#failure ??= asError(thrown);
      },
    );
    this.#under.add(written);
  }
}
