import { createHash } from 'node:crypto';
import type { Duplex } from 'node:stream';
import * as z from 'zod';
import { GryphusError } from '../../errors.ts';
import { deferred } from '../../util/deferred.ts';
import { passed } from '../../util/young-garbage.ts';
import { count, type Read, text } from '../../util/schema.ts';

/*
 * A second connection between a worker and its central manager, for the bytes of one attempt's large files: its inputs, or its
 * results. Nothing else waits behind them, and nothing is put together or encrypted once more that ssh carries already.
 *
 *   who wants bytes                    who has them
 *   a line of JSON                 →
 *                                  ←   exactly the bytes that were asked for
 *                                  ←   of a result, their SHA-256 in hexadecimal
 *
 * Whatever is wrong ends the connection: the same is asked again by the worker's other connection, where it is said.
 */

/** In a worker's ad: it connects when it is asked to (`staging`). */
export const HAS_STAGING_LINKS = 'HasStagingLinks';

/** From this size on, a file is worth a connection; bytes. */
export const WORTH_A_LINK = 4 << 20;

const range = { from: count, to: count };
const wanted = z.discriminatedUnion('what', [
  z.strictObject({ what: z.literal('input'), sha256: text.max(64), ...range }),
  z.strictObject({ what: z.literal('result'), path: text, ...range }),
]);
export type Wanted = Read<typeof wanted>;

/** A file that is read for whoever asked. */
export interface Opened {
  /** The number of bytes that were read into `memory`; 0 at its end. Rejects if they may not be had any more. */
  readonly read: (memory: Buffer, at: number) => Promise<number>;
  readonly close: () => Promise<unknown>;
}

const BLOCK = 1 << 20;
const LONGEST_LINE = 64 << 10;
const DIGEST = 64;
/** A connection by which nothing came or went for so long is cut, in milliseconds. */
const SILENCE_MS = 60_000;

/** One end of such a connection. */
export class StagingLink {
  readonly #stream: Duplex;
  readonly #chunks: AsyncIterator<Buffer>;
  readonly #late: NodeJS.Timeout;
  #rest: Buffer = Buffer.alloc(0);
  /** Resolves when the file before has come. */
  #before: Promise<void> = Promise.resolve();

  constructor(stream: Duplex) {
    this.#stream = stream;
    stream.on('error', () => undefined);
    this.#chunks = stream[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
    this.#late = setTimeout(() => this.end(), SILENCE_MS).unref();
    stream.once('close', () => clearTimeout(this.#late));
  }

  get ended(): boolean {
    return this.#stream.destroyed;
  }

  end(): void {
    this.#stream.destroy();
  }

  /**
   * The bytes of a file as they come, and at the end the SHA-256 that they had at the other side, of a result. Rejects with
   * 'site-unreachable' if they do not all come; then the connection is of no more use. Files come one after another.
   */
  async *ask(one: Wanted): AsyncGenerator<Buffer, string | undefined> {
    const [before, mine] = [this.#before, deferred<void>()];
    this.#before = mine.promise;
    await before;
    let whole = false;
    try {
      await this.#write(Buffer.from(`${JSON.stringify(one)}\n`));
      for (let missing = one.to - one.from; missing > 0; ) {
        const some = await this.#some(missing);
        missing -= some.length;
        yield some;
      }
      let digest = '';
      while (one.what === 'result' && digest.length < DIGEST)
        digest += (await this.#some(DIGEST - digest.length)).toString('latin1');
      whole = true;
      return one.what === 'result' ? digest : undefined;
    } finally {
      mine.resolve();
      // What was not wanted any more would be taken for the next file.
      if (!whole) this.end();
    }
  }

  /** Answers until the connection ends. */
  async answer(open: (one: Wanted) => Promise<Opened>): Promise<void> {
    const memory = [Buffer.allocUnsafeSlow(BLOCK), Buffer.allocUnsafeSlow(BLOCK)];
    try {
      for (;;) {
        const one = wanted.parse(JSON.parse(await this.#line()));
        const file = await open(one);
        try {
          await this.#send(one, file, memory);
        } finally {
          await file.close();
        }
      }
    } catch {
      // Whoever asked asks by the other connection.
    } finally {
      this.end();
    }
  }

  /** While one block leaves, the next is read. */
  async #send({ what, from, to }: Wanted, file: Opened, memory: readonly Buffer[]): Promise<void> {
    const hash = what === 'result' ? createHash('sha256') : undefined;
    let leaving: Promise<unknown> = Promise.resolve();
    for (let at = from, turn = 0; at < to; turn += 1) {
      const block = memory[turn % memory.length] ?? Buffer.alloc(0);
      const got = await file.read(block.subarray(0, Math.min(BLOCK, to - at)), at);
      if (got === 0) throw new Error('it is shorter');
      const bytes = block.subarray(0, got);
      await leaving;
      leaving = this.#write(bytes);
      // The loop finds it out.
      leaving.catch(() => undefined);
      hash?.update(bytes);
      at += got;
    }
    await leaving;
    if (hash) await this.#write(Buffer.from(hash.digest('hex')));
  }

  async #line(): Promise<string> {
    let line = '';
    for (;;) {
      const some = await this.#some(LONGEST_LINE);
      const end = some.indexOf('\n');
      line += some.toString('utf8', 0, end < 0 ? some.length : end);
      if (end >= 0) {
        this.#rest = some.subarray(end + 1);
        return line;
      }
      if (line.length > LONGEST_LINE) throw new Error('a line is too long');
    }
  }

  /** The next bytes, at most so many and at least one. */
  async #some(most: number): Promise<Buffer> {
    if (this.#rest.length === 0) {
      const next = await this.#chunks.next().catch(() => undefined);
      this.#late.refresh();
      if (next?.done !== false) throw new GryphusError('site-unreachable', 'the connection for large files was cut');
      this.#rest = next.value;
      passed(next.value.length);
    }
    const some = this.#rest.subarray(0, most);
    this.#rest = this.#rest.subarray(some.length);
    return some;
  }

  /** Resolves when the bytes are needed no more. */
  #write(bytes: Buffer): Promise<void> {
    return new Promise((resolve, reject) => {
      const cut = () => reject(new GryphusError('site-unreachable', 'the connection for large files was cut'));
      if (this.ended) return cut();
      this.#stream.once('close', cut);
      this.#stream.write(bytes, (error) => {
        this.#stream.off('close', cut);
        this.#late.refresh();
        if (error) cut();
        else resolve();
      });
    });
  }
}
