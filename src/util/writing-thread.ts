import type * as crypto from 'node:crypto';
import type * as fs from 'node:fs';
import { type MessagePort, Worker } from 'node:worker_threads';
import { type Block, type BlockWriter, type WritableFile, WriterHere } from './block-writer.ts';
import { type Deferred, deferred } from './deferred.ts';

/** Files of one process that have a thread at once: more would only take memory. */
const MOST = 4;
let running = 0;

/** To the thread: a block to write, or, without one, that the digest is wanted. */
interface Order {
  readonly block?: { readonly shared: SharedArrayBuffer; readonly bytes: number; readonly at: number };
}

/** From the thread, in the order of the orders. */
interface Answer {
  readonly digest?: string | undefined;
  /** The thread has ended before it answered. */
  readonly lost?: true;
  readonly failed?: { readonly message: string; readonly code: string | undefined } | undefined;
}

const LOST: Answer = { lost: true };

/** A thread that writes to an open file and sums what it writes; `undefined` if there are enough, or none can be started. */
export function startWritingThread(file: WritableFile, summed: boolean): BlockWriter | undefined {
  if (running >= MOST) return undefined;
  try {
    return new WritingThread(file, summed);
  } catch {
    return undefined;
  }
}

class WritingThread implements BlockWriter {
  /** Writes what the thread did not, if it was lost. */
  readonly #here: WriterHere;
  readonly #worker: Worker;
  readonly #exited: Promise<void>;
  /** Orders without an answer. */
  readonly #waiting: Deferred<Answer>[] = [];
  #lost = false;
  #failure: Error | undefined;

  constructor(file: WritableFile, summed: boolean) {
    this.#here = new WriterHere(file, false);
    const words = `${file.fd}, ${summed}`;
    const source = `(${work.toString()})(require('node:worker_threads').parentPort, require('node:fs'), require('node:crypto'), ${words})`;
    this.#worker = new Worker(source, { eval: true, execArgv: [], resourceLimits: { maxYoungGenerationSizeMb: 1 } });
    running += 1;
    const exited = deferred<void>();
    this.#exited = exited.promise;
    this.#worker.on('message', (answer: Answer) => this.#waiting.shift()?.resolve(answer));
    this.#worker.on('error', () => undefined);
    this.#worker.once('exit', () => {
      running -= 1;
      this.#lost = true;
      for (const { resolve } of this.#waiting.splice(0)) resolve(LOST);
      exited.resolve();
    });
  }

  async write(block: Block, bytes: number, at: number): Promise<void> {
    const { failed, lost } = await this.#ask({ block: { shared: block.shared, bytes, at } });
    if (failed) this.#failure ??= Object.assign(new Error(failed.message), { code: failed.code });
    if (this.#failure) throw this.#failure;
    // There was no memory for a thread, for example.
    if (lost) await this.#here.write(block, bytes, at);
  }

  async digest(): Promise<string | undefined> {
    return (await this.#ask({})).digest;
  }

  async close(): Promise<void> {
    void this.#worker.terminate();
    // A block that is being written is written first.
    await this.#exited;
  }

  #ask(order: Order): Promise<Answer> {
    if (this.#lost) return Promise.resolve(LOST);
    const waiting = deferred<Answer>();
    this.#waiting.push(waiting);
    this.#worker.postMessage(order, []);
    return waiting.promise;
  }
}

/** What the thread runs: its text is all that it gets, so it may use nothing but what it is given. */
function work(
  port: MessagePort,
  { writeSync }: Pick<typeof fs, 'writeSync'>,
  { createHash }: Pick<typeof crypto, 'createHash'>,
  fd: number,
  summed: boolean,
): void {
  const hash = summed ? createHash('sha256') : undefined;
  let failed: Answer['failed'];
  const answer = ({ block }: Order): Answer => {
    if (!block) return { digest: hash?.digest('hex') };
    if (failed) return { failed };
    const { shared, bytes, at } = block;
    const some = new Uint8Array(shared, 0, bytes);
    try {
      for (let done = 0; done < bytes; ) done += writeSync(fd, some, done, bytes - done, at + done);
    } catch (thrown) {
      const { message, code } = thrown as NodeJS.ErrnoException;
      failed = { message, code };
      return { failed };
    }
    hash?.update(some);
    return {};
  };
  port.on('message', (order: Order) => port.postMessage(answer(order)));
}
