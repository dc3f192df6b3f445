import type { Readable } from 'node:stream';
import { CHIRP_LINE } from '../site/chirp.ts';
import { lineEnd } from './chirp-line.ts';

/** What a job sends: lines, and bytes between them. A connection that breaks counts as ended. */
export class Incoming {
  readonly #chunks: AsyncIterator<Buffer>;
  #rest: Buffer = Buffer.alloc(0);

  constructor(from: Readable) {
    this.#chunks = from[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  }

  /** The next line without its end; 'too long', or `undefined` at the end. */
  async line(): Promise<Buffer | 'too long' | undefined> {
    for (;;) {
      const end = lineEnd(this.#rest);
      if (end > CHIRP_LINE || (end < 0 && this.#rest.length > CHIRP_LINE)) return 'too long';
      if (end >= 0) {
        const line = this.#rest.subarray(0, end);
        this.#rest = this.#rest.subarray(end + 1);
        return line;
      }
      if (!(await this.#more())) return undefined;
    }
  }

  /** So many bytes, fewer only at the end. */
  async bytes(wanted: number): Promise<Buffer> {
    const parts: Buffer[] = [];
    for (let missing = wanted; missing > 0; ) {
      if (this.#rest.length === 0 && !(await this.#more())) break;
      const part = this.#rest.subarray(0, missing);
      this.#rest = this.#rest.subarray(part.length);
      missing -= part.length;
      parts.push(part);
    }
    return Buffer.concat(parts);
  }

  /** The next bytes, at most so many; none only at the end. */
  async some(most: number): Promise<Buffer> {
    if (this.#rest.length === 0) await this.#more();
    const part = this.#rest.subarray(0, most);
    this.#rest = this.#rest.subarray(part.length);
    return part;
  }

  async #more(): Promise<boolean> {
    try {
      const next = await this.#chunks.next();
      if (next.done === true) return false;
      this.#rest = this.#rest.length === 0 ? next.value : Buffer.concat([this.#rest, next.value]);
      return true;
    } catch {
      return false;
    }
  }
}
