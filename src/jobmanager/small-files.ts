import type { FileSink } from './answer.ts';

/**
 * Takes small files from the answer to a fetch: each `small` line names the files in the next `stream` line, and
 * `streamed` says whether all of them could be read.
 */
export class SmallFiles implements FileSink {
  readonly #save: (name: string, bytes: Buffer) => Promise<void>;
  #names: string[] = [];
  #came: string[] = [];
  /** Names of files of which not all could be read. */
  readonly unread: string[] = [];
  #failed = false;
  #failure: unknown;

  constructor(save: (name: string, bytes: Buffer) => Promise<void>) {
    this.#save = save;
  }

  begin(): void {
    this.#next();
    this.unread.length = 0;
  }

  line(kind: string, rest: string): boolean {
    if (kind === 'small') this.#names.push(rest);
    else if (kind === 'streamed') {
      if (rest !== '0') this.unread.push(...this.#came);
      this.#next();
    } else return false;
    return true;
  }

  /** After a failure the rest of the answer is read, so that the connection can still be used, but not kept. */
  async file(i: number, bytes: Buffer): Promise<void> {
    const name = this.#names[i];
    if (name === undefined || this.#failed) return;
    this.#came.push(name);
    try {
      await this.#save(name, bytes);
    } catch (thrown) {
      this.#failed = true;
      this.#failure = thrown;
    }
  }

  /** Throws the first failure to save a file. */
  check(): void {
    if (this.#failed) throw this.#failure;
  }

  #next(): void {
    this.#names = [];
    this.#came = [];
  }
}
