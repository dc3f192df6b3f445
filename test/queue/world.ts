import { formatJobId, type JobId, parseJobId } from '../../src/job/ids.ts';
import { isEnd, type State } from '../../src/job/life.ts';
import type { Queue } from '../../src/queue/api.ts';
import { procs } from './all.ts';

/** What can happen to jobs while a reader reads. */
export const MOVES = ['end', 'end many', 'retire', 'retire many', 'adopt', 'run', 'submit', 'next month'] as const;
export type Move = (typeof MOVES)[number];

/** Jobs that only the test moves. */
export class World {
  readonly #writer: Queue;
  readonly #nextMonth: () => void;
  readonly #queued = new Map<string, State>();
  readonly #left = new Map<string, number>();
  #pick = 0;

  /** `nextMonth`: the queue's clock moves on to another history file. */
  constructor(writer: Queue, nextMonth: () => void = () => undefined) {
    this.#writer = writer;
    this.#nextMonth = nextMonth;
  }

  /** Jobs that are in the queue and have not ended. */
  get alive(): number {
    return [...this.#queued.values()].filter((state) => !isEnd(state)).length;
  }

  get queued(): number {
    return this.#queued.size;
  }

  async submit(count: number, ad: Record<string, string> = {}): Promise<number> {
    const { cluster } = await this.#writer.submit({
      clusterAd: { Owner: '"me"', ...ad },
      procs: procs(count),
      manager: 'm',
      site: 's',
    });
    for (let proc = 0; proc < count; proc++) this.#queued.set(`${cluster}.${proc}`, 'idle');
    return cluster;
  }

  async move(move: Move): Promise<void> {
    switch (move) {
      case 'end':
      case 'end many':
        return this.#step(
          'remove',
          this.#some(move === 'end' ? 1 : 7, (state) => !isEnd(state)),
          'removed',
        );
      case 'run':
        // To another position in the queue's indexes, and back.
        await this.#step(
          'take',
          this.#some(3, (state) => state === 'idle'),
          'preparing',
        );
        return this.#step(
          'prepared',
          this.#some(2, (state) => state === 'preparing'),
          'prepared',
        );
      case 'retire':
      case 'retire many':
        return this.#retire(this.#some(move === 'retire' ? 1 : 7, isEnd));
      case 'adopt':
        return this.#adopt();
      case 'submit':
        await this.submit(2);
        return;
      case 'next month':
        this.#nextMonth();
    }
  }

  async #step(event: 'remove' | 'take' | 'prepared' | 'lost', ids: readonly JobId[], to: State): Promise<void> {
    const site = event === 'remove' ? (id: JobId) => this.#queued.get(formatJobId(id)) !== 'idle' : () => false;
    const done = await this.#writer.transitionMany(ids.map((id) => ({ id, event })));
    // A job that has something at a site leaves it first.
    await this.#writer.transitionMany(ids.filter(site).map((id) => ({ id, event: 'withdrawn', from: 'removing' })));
    for (const [i, id] of ids.entries()) if (done[i]?.ok) this.#queued.set(formatJobId(id), to);
  }

  async #retire(ids: readonly JobId[]): Promise<void> {
    await this.#writer.retire(ids);
    for (const id of ids) {
      const name = formatJobId(id);
      this.#queued.delete(name);
      this.#left.set(name, (this.#left.get(name) ?? 0) + 1);
    }
  }

  async #adopt(): Promise<void> {
    const back = [...this.#left.keys()].find((name) => !this.#queued.has(name));
    const id = back === undefined ? undefined : parseJobId(back);
    if (!id) return;
    const attrs = { Owner: '"me"', HoldReason: '"back"' };
    await this.#writer.restore({ id, attrs, attempt: 1, manager: 'm', site: 's' });
    this.#queued.set(formatJobId(id), 'held');
  }

  /** Some jobs of the queue, different ones each time. */
  #some(count: number, fits: (state: State) => boolean): JobId[] {
    const fitting = [...this.#queued].filter(([, state]) => fits(state)).map(([name]) => name);
    const from = fitting.length === 0 ? 0 : this.#pick++ % fitting.length;
    return [...fitting.slice(from), ...fitting.slice(0, from)]
      .slice(0, count)
      .flatMap((name) => parseJobId(name) ?? []);
  }
}
