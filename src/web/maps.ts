import { randomUUID } from 'node:crypto';
import type * as z from 'zod';
import { GryphusError } from '../errors.ts';
import type { Gryphus, MapTask } from '../index.ts';
import { deferred } from '../util/deferred.ts';
import { defined } from './defined.ts';
import { Inflow } from './inflow.ts';
import type { MAP, TASK, TASKS } from './program-schemas.ts';

type Task = z.infer<typeof TASK>;
type Of = Task['of'];

/** While more tasks than this wait for the pool, whoever adds some waits. */
const MOST_WAITING = 1000;
/** How many tasks the pool has whose ends the client has not read; or twice as many as may run at once. */
const MOST_UNREAD = 1000;

/** The maps that run for clients: each as long as the connection that reads its ends. */
export class Maps {
  readonly #gryphus: Gryphus;
  readonly #open = new Map<string, Inflow<Task>>();

  constructor(gryphus: Gryphus) {
    this.#gryphus = gryphus;
  }

  /** Its id and then the end of each task, as JSON. Ending the iteration, or `signal`, withdraws what has not ended. */
  async *run({ tasks, last, ...asked }: z.infer<typeof MAP>, signal: AbortSignal): AsyncGenerator<string> {
    const map = randomUUID();
    const inflow = new Inflow<Task>();
    inflow.add(tasks);
    if (last) inflow.close();
    this.#open.set(map, inflow);
    const unread = new Unread(Math.max(MOST_UNREAD, 2 * (asked.atOnce ?? 0)));
    const given = async function* (): AsyncGenerator<MapTask<Of>> {
      for await (const task of inflow.read()) {
        await unread.add();
        yield defined(task);
      }
    };
    const leave = (): void => {
      inflow.close();
      unread.end();
    };
    signal.addEventListener('abort', leave, { once: true });
    try {
      yield JSON.stringify({ map });
      for await (const result of this.#gryphus.map(given(), { ...defined(asked), signal })) {
        const { of, ending, stdout, stderr, tries, problem } = result;
        const [out, err] = [stdout.toString('base64'), stderr.toString('base64')];
        yield JSON.stringify({ of, how: ending.how, stdout: out, stderr: err, tries, problem });
        unread.take();
      }
    } finally {
      signal.removeEventListener('abort', leave);
      this.#open.delete(map);
      leave();
    }
  }

  /** More tasks for a map. Resolves when the pool has taken most of them; how many it has not. */
  async add(map: string, { tasks, last }: z.infer<typeof TASKS>, signal: AbortSignal): Promise<number> {
    const inflow = this.#open.get(map);
    if (!inflow) throw new GryphusError('not-found', 'This map has ended.');
    if (inflow.closed) throw new GryphusError('conflict', 'The last tasks of this map were given already.');
    inflow.add(tasks);
    if (last) inflow.close();
    return inflow.below(MOST_WAITING, signal);
  }
}

/** How many tasks the pool has whose ends were not read. */
class Unread {
  readonly #most: number;
  #count = 0;
  #ended = false;
  #fewer = deferred<void>();

  constructor(most: number) {
    this.#most = most;
  }

  /** Resolves when one more may be given. */
  async add(): Promise<void> {
    while (this.#count >= this.#most && !this.#ended) await this.#fewer.promise;
    this.#count += 1;
  }

  take(): void {
    this.#count -= 1;
    this.#wake();
  }

  end(): void {
    this.#ended = true;
    this.#wake();
  }

  #wake(): void {
    const { resolve } = this.#fewer;
    this.#fewer = deferred<void>();
    resolve();
  }
}
