import type { CandidatePlace, Place, Queue } from '../queue/api.ts';
import {
  HAS_PLACE,
  hasPlace,
  IS_THERE,
  isThere,
  type WorkLoop,
  workLoopOf,
  workLoopsWanted,
} from '../job/work-loops.ts';

/** The latest count of one manager's jobs and candidates, by site and state. */
export class Census {
  readonly #queue: Pick<Queue, 'totals' | 'candidates'>;
  readonly #manager: string;
  #places: readonly Place[] = [];
  #candidates: readonly CandidatePlace[] = [];
  #watched = 0;
  /** Number of counts begun, and the number of the one whose result is stored. */
  #begun = 0;
  #counted = 0;
  /** The first count that knows of all that this process has changed. */
  #valid = 1;

  constructor(queue: Pick<Queue, 'totals' | 'candidates'>, manager: string) {
    this.#queue = queue;
    this.#manager = manager;
  }

  get begun(): number {
    return this.#begun;
  }

  async count(): Promise<void> {
    const count = ++this.#begun;
    const [totals, candidates] = await Promise.all([this.#queue.totals(), this.#queue.candidates.places()]);
    if (count < this.#counted) return;
    this.#places = totals.places.filter((place) => place.manager === this.#manager);
    this.#candidates = candidates.filter((place) => place.manager === this.#manager);
    this.#watched = watchedIn(totals.places);
    this.#counted = count;
  }

  /** At how many sites jobs of all managers are watched, for each manager. */
  get watched(): number {
    return this.#watched;
  }

  /** Jobs or candidates were moved. */
  outdate(): void {
    this.#valid = this.#begun + 1;
  }

  /** Whether jobs wait for the broker to choose their site. */
  get unrouted(): boolean {
    return this.#places.some(({ site, state, jobs }) => site === '' && state === 'idle' && jobs > 0);
  }

  workLoopsWanted(): ReturnType<typeof workLoopsWanted> {
    return workLoopsWanted(this.#places, this.#candidates);
  }

  /** Number of jobs and candidates that have, or may have, an attempt at the site. Counts again. */
  async placed(site: string): Promise<number> {
    await this.count();
    const jobs = this.#places.filter((p) => p.site === site && HAS_PLACE.includes(p.state));
    return sum(
      jobs,
      this.#candidates.filter((p) => p.site === site && hasPlace(p)),
    );
  }

  /** Number of jobs and candidates that may be in the site's queue. Counts again. */
  async there(site: string): Promise<number> {
    await this.count();
    const jobs = this.#places.filter((p) => p.site === site && IS_THERE.includes(p.state));
    return sum(
      jobs,
      this.#candidates.filter((p) => p.site === site && isThere(p)),
    );
  }

  /**
   * Whether the work loop has work. That it has, the last count says for as long as nothing was moved since; what others move
   * is counted when their events come. That it has none, only a count begun after number `began` says: an older one may
   * miss what was committed during the loop's round.
   */
  async hasWork(site: string, workLoop: WorkLoop, began: number): Promise<boolean> {
    const isWanted = () => this.workLoopsWanted().get(site)?.has(workLoop) === true;
    if (this.#counted >= this.#valid && isWanted()) return true;
    if (this.#counted < Math.max(this.#valid, began + 1)) await this.count();
    return isWanted();
  }
}

function watchedIn(places: readonly Place[]): number {
  const busy = places.filter(({ site, state, jobs }) => jobs > 0 && site !== '' && workLoopOf(state) === 'watch');
  return new Set(busy.map(({ manager, site }) => `${manager}\n${site}`)).size;
}

function sum(jobs: readonly Place[], candidates: readonly CandidatePlace[]): number {
  return jobs.reduce((all, p) => all + p.jobs, 0) + candidates.reduce((all, p) => all + p.candidates, 0);
}
