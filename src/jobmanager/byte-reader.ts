import type { Readable } from 'node:stream';

/** Thrown if the stream ends in the middle of a read. */
export class EndOfStream extends Error {
  override readonly name = 'EndOfStream';
}

/** Thrown if the other side sends more at once than it may. */
export class TooLong extends Error {
  override readonly name = 'TooLong';
}

/** The longest line of an honest site: it has a few names at most. */
const LONGEST_LINE = 1 << 20;

const NEWLINE = Buffer.from('\n');

/** Reads lines, counted bytes, and bytes up to a mark from one stream. */
export class ByteReader {
  readonly #chunks: AsyncIterator<Buffer>;
  #held: Buffer = Buffer.alloc(0);

  constructor(stream: Readable) {
    this.#chunks = stream[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  }

  /** The next line without its newline. */
  async line(): Promise<string> {
    return (await this.until(NEWLINE, LONGEST_LINE)).toString('utf8');
  }

  async take(count: number): Promise<Buffer> {
    const parts: Buffer[] = [];
    let missing = count;
    for (;;) {
      const part = this.#held.subarray(0, missing);
      parts.push(part);
      missing -= part.length;
      this.#held = this.#held.subarray(part.length);
      if (missing === 0) return parts.length === 1 ? Buffer.from(part) : Buffer.concat(parts);
      await this.#more();
    }
  }

  /** The bytes before the next `mark`, which is skipped; TooLong if there are more than `most`. */
  async until(mark: Buffer, most: number): Promise<Buffer> {
    const parts: Buffer[] = [];
    let size = 0;
    const keep = (part: Buffer): void => {
      size += part.length;
      if (size > most) throw new TooLong(`more than ${most} bytes at once`);
      parts.push(part);
    };
    for (;;) {
      const at = this.#held.indexOf(mark);
      if (at !== -1) {
        keep(this.#held.subarray(0, at));
        this.#held = this.#held.subarray(at + mark.length);
        return Buffer.concat(parts);
      }
      // The mark may span two chunks.
      const sure = Math.max(0, this.#held.length - mark.length + 1);
      keep(this.#held.subarray(0, sure));
      this.#held = this.#held.subarray(sure);
      await this.#more();
    }
  }

  async #more(): Promise<void> {
    const next = await this.#chunks.next();
    if (next.done) throw new EndOfStream('The stream ended.');
    this.#held = this.#held.length === 0 ? next.value : Buffer.concat([this.#held, next.value]);
  }
}
