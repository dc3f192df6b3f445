import { randomBytes } from 'node:crypto';
import { mkdir, open, readdir, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { asError } from '../../errors.ts';
import { LetterLink } from './letters.ts';
import { letterFile, markFile, parseBoxFile } from './names.ts';

export interface WorkerEndOptions {
  /** The shortest interval between looks into the box; it grows while nothing is new. Milliseconds. */
  readonly soonestMs?: number;
  readonly latestMs?: number;
}

/**
 * The worker's end of a link by letters in `ROOT/WORKER`, on a file system shared with the login node. Letters of an
 * earlier link are discarded. A file system error ends the link; the next one is new.
 */
export async function mailboxDuplex(root: string, worker: string, options: WorkerEndOptions = {}): Promise<Duplex> {
  const box = join(root, worker);
  await mkdir(box, { recursive: true, mode: 0o700 });
  for (const name of await readdir(box)) await rm(join(box, name), { force: true });
  const end = new WorkerEnd(box, options);
  void end.run();
  return end.letters;
}

class WorkerEnd {
  readonly letters = new LetterLink(() => this.#wake());
  readonly #box: string;
  readonly #link = randomBytes(8).toString('hex');
  readonly #soonestMs: number;
  readonly #latestMs: number;
  #wake: () => void = () => undefined;

  constructor(box: string, { soonestMs = 20, latestMs = 2000 }: WorkerEndOptions) {
    this.#box = box;
    this.#soonestMs = soonestMs;
    this.#latestMs = latestMs;
  }

  async run(): Promise<void> {
    try {
      for (let pause = this.#soonestMs; ; ) {
        const posted = await this.#post();
        if (this.letters.destroyed) break;
        const collected = await this.#collect();
        pause = posted || collected ? this.#soonestMs : Math.min(this.#latestMs, pause * 1.5);
        if (!this.letters.destroyed) await this.#pause(pause);
      }
      if (!this.letters.done) await this.#put(markFile('gone', this.#link), Buffer.alloc(0));
    } catch (thrown) {
      this.letters.destroy(asError(thrown));
    }
  }

  async #post(): Promise<boolean> {
    const out = [...this.letters.outgoing()];
    for (const { seq, bytes } of out) {
      await this.#put(letterFile('up', this.#link, seq), bytes);
      this.letters.posted(seq);
    }
    return out.length > 0;
  }

  async #collect(): Promise<boolean> {
    if (this.letters.full) return false;
    let news = false;
    for (const name of await readdir(this.#box)) {
      const found = parseBoxFile(name);
      if (found?.link !== this.#link) continue;
      if (found.kind === 'over') throw new Error('the agent does not know this link');
      if (found.kind !== 'letter' || found.direction !== 'down') continue;
      this.letters.arrived({ seq: found.seq, bytes: await readFile(join(this.#box, name)) });
      await rm(join(this.#box, name), { force: true });
      news = true;
    }
    return news;
  }

  /** Atomic, even when seen from another machine. */
  async #put(name: string, bytes: Buffer): Promise<void> {
    const path = join(this.#box, name);
    const file = await open(`${path}.new`, 'w', 0o600);
    try {
      await file.writeFile(bytes);
      // After this, the server of a network file system has the data.
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(`${path}.new`, path);
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}
