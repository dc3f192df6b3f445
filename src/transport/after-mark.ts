import { Transform, type TransformCallback } from 'node:stream';

const MOST_CHATTER = 64 * 1024;

/** Passes on what follows the first line that begins with `mark`; text before it is kept as `chatter`, up to 64 KiB. */
export class AfterMark extends Transform {
  readonly #mark: string;
  readonly #onMark: (rest: string) => void;
  #before = Buffer.alloc(0);
  #found = false;

  constructor(mark: string, onMark: (rest: string) => void) {
    super({ readableHighWaterMark: 256 * 1024, writableHighWaterMark: 256 * 1024 });
    this.#mark = mark;
    this.#onMark = onMark;
  }

  get found(): boolean {
    return this.#found;
  }

  get chatter(): string {
    return this.#before.toString('utf8');
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    if (this.#found) return done(null, chunk);
    const bytes = Buffer.concat([this.#before, chunk]);
    const at = bytes.indexOf(this.#mark);
    const end = at === -1 ? -1 : bytes.indexOf(0x0a, at);
    if (end === -1) {
      this.#before = bytes.subarray(Math.max(0, bytes.length - MOST_CHATTER));
      return done();
    }
    this.#found = true;
    this.#before = bytes.subarray(0, at);
    this.#onMark(bytes.toString('utf8', at + this.#mark.length, end).trim());
    if (end + 1 < bytes.length) this.push(bytes.subarray(end + 1));
    return done();
  }
}
