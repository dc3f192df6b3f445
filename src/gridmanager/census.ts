import type { BidPlace, Place, Queue } from '../queue/api.ts';
import { HAS_PLACE, hasPlace, IS_THERE, isThere, type Lane, lanesWanted } from './lanes.ts';

/** How many jobs and bids of one manager are where, as it was counted last. */
export class Census {
  readonly #queue: Pick<Queue, 'totals' | 'bids'>;
  readonly #manager: string;
  #places: readonly Place[] = [];
  #bids: readonly BidPlace[] = [];
  /** How many counts were begun, and which of them is known. */
  #begun = 0;
  #counted = 0;

  constructor(queue: Pick<Queue, 'totals' | 'bids'>, manager: string) {
    this.#queue = queue;
    this.#manager = manager;
  }

  get begun(): number {
    return this.#begun;
  }

  async count(): Promise<void> {
    const count = ++this.#begun;
    const [totals, bids] = await Promise.all([this.#queue.totals(), this.#queue.bids.places()]);
    this.#places = totals.places.filter((place) => place.manager === this.#manager);
    this.#bids = bids.filter((place) => place.manager === this.#manager);
    this.#counted = count;
  }

  /** Jobs wait for the broker to choose their site. */
  get unrouted(): boolean {
    return this.#places.some(({ site, state, jobs }) => site === '' && state === 'idle' && jobs > 0);
  }

  lanesWanted(): ReturnType<typeof lanesWanted> {
    return lanesWanted(this.#places, this.#bids);
  }

  /** Jobs and bids that have, or may have, a record at the site, counted now. */
  async placed(site: string): Promise<number> {
    await this.count();
    const jobs = this.#places.filter((p) => p.site === site && HAS_PLACE.includes(p.state));
    return sum(
      jobs,
      this.#bids.filter((p) => p.site === site && hasPlace(p)),
    );
  }

  /** Those that may be in the site's queue, counted now. */
  async there(site: string): Promise<number> {
    await this.count();
    const jobs = this.#places.filter((p) => p.site === site && IS_THERE.includes(p.state));
    return sum(
      jobs,
      this.#bids.filter((p) => p.site === site && isThere(p)),
    );
  }

  /** By a count that began after `began`: what was committed before the lane's round is in no earlier one. */
  async hasWork(site: string, lane: Lane, began: number): Promise<boolean> {
    if (this.#counted <= began) await this.count();
    return this.lanesWanted().get(site)?.has(lane) === true;
  }
}

function sum(jobs: readonly Place[], bids: readonly BidPlace[]): number {
  return jobs.reduce((all, p) => all + p.jobs, 0) + bids.reduce((all, p) => all + p.bids, 0);
}
