import type { Queue } from '../queue/api.ts';
import { FOLLOWED } from '../queue/tables.ts';

/** Whether users follow jobs' output is looked up at most this often, milliseconds. */
const LOOK_MS = 250;

/** The users who follow the output of running jobs: one look for all sites. */
export class Followers {
  readonly #queue: Pick<Queue, 'kv'>;
  readonly #now: () => number;
  #lookedAt = 0;
  #signs: ReturnType<typeof FOLLOWED.list> = Promise.resolve([]);

  constructor(queue: Pick<Queue, 'kv'>, now: () => number) {
    this.#queue = queue;
    this.#now = now;
  }

  async are(): Promise<boolean> {
    const now = this.#now();
    if (Math.abs(now - this.#lookedAt) >= LOOK_MS) {
      this.#lookedAt = now;
      this.#signs = FOLLOWED.list(this.#queue.kv);
    }
    return (await this.#signs).some(({ value }) => value > this.#now());
  }
}
