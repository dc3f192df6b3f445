import type { Work, WorkRunner } from '../queue/api.ts';
import type { WorkLoop } from '../job/work-loops.ts';
import { SharedRuns } from '../util/shared-runs.ts';
import { WatchRounds } from './watch-rounds.ts';

/** How many rounds run at once, and how many sites are met at once to watch their jobs. */
const AT_ONCE = 64;

/** Sites of an agent that have nothing to report are polled no more often than so many milliseconds apart, all together. */
const APART_MS = 250;

/** The work loops whose rounds BullMQ delivers; those that watch stand at their sites. */
type Delivered = Exclude<WorkLoop, 'watch'>;
type Handler = (item: { readonly id: string }) => Promise<{ readonly againInMs: number } | undefined>;

export interface RoundsOptions {
  readonly work: Work;
  /** One round; returns after how many milliseconds it wants the next, or nothing. Must not reject. */
  readonly round: (site: string, workLoop: WorkLoop) => Promise<number | undefined>;
  /** At how many sites all GridManagers of the agent watch jobs, as far as is known. */
  readonly watched: () => number;
}

/** Runs the rounds of all work loops of all sites: one at a time of each. */
export class Rounds {
  readonly #options: RoundsOptions;
  readonly #shared = new SharedRuns<number | undefined>();
  readonly #watching: WatchRounds;
  #worker: WorkRunner | undefined;
  #ended = false;

  constructor(options: RoundsOptions) {
    this.#options = options;
    this.#watching = new WatchRounds({ round: (site) => options.round(site, 'watch'), meetings: AT_ONCE });
  }

  /** From now on what is woken is run. */
  async open(): Promise<void> {
    const handlers: Record<Delivered, Handler> = {
      submit: this.#handler('submit'),
      results: this.#handler('results'),
      cancel: this.#handler('cancel'),
      capacityPoll: this.#handler('capacityPoll'),
    };
    this.#worker = await this.#options.work.run(handlers, { concurrency: AT_ONCE, fresh: true });
  }

  async wake(site: string, workLoop: WorkLoop): Promise<void> {
    if (workLoop === 'watch') this.#watching.wake(site);
    else await this.#options.work.wake(workLoop, site, null);
  }

  /** How often each site that has nothing to report may be polled, milliseconds. */
  get quietMs(): number {
    return APART_MS * Math.max(this.#watching.size, this.#options.watched());
  }

  /** Starts no more rounds, and waits for those that are running, except for those that watch. */
  async end(): Promise<void> {
    this.#ended = true;
    this.#watching.end();
    await this.#worker?.close();
  }

  /** Once the sites are closed, which ends the polls that wait for news. */
  async close(): Promise<void> {
    await this.#watching.close();
    await this.#options.work.close();
  }

  #handler(workLoop: Delivered): Handler {
    return async ({ id }) => {
      const again = await this.#shared.run(`${workLoop}/${id}`, () => this.#options.round(id, workLoop));
      return again === undefined || this.#ended ? undefined : { againInMs: again };
    };
  }
}
