import { Turns } from '../util/turns.ts';

export interface WatchRoundsOptions {
  /** One round at a site; returns after how many milliseconds it wants the next, or nothing. Must not reject. */
  readonly round: (site: string) => Promise<number | undefined>;
  /** How many sites are met at once. */
  readonly meetings: number;
}

interface Watched {
  /** It was woken since its round began. */
  wished: boolean;
  /** Ends its pause, if it is in one. */
  resume: () => void;
}

/**
 * The rounds of one work loop, which most of the time wait at their sites for news. Each site has one at a time, in this process
 * alone: nothing is written or asked anywhere for a round that finds nothing. A round that may have to connect waits for its turn,
 * because many connections made at once time out; one at a site that has just answered does not, however many wait for news.
 */
export class WatchRounds {
  readonly #round: WatchRoundsOptions['round'];
  readonly #meetings: Turns;
  readonly #watched = new Map<string, Watched>();
  readonly #running = new Set<Promise<void>>();
  #ended = false;

  constructor({ round, meetings }: WatchRoundsOptions) {
    this.#round = round;
    this.#meetings = new Turns(() => meetings);
  }

  /** A round at this site now; if one is running and wants no other, one more after it. */
  wake(site: string): void {
    if (this.#ended) return;
    const known = this.#watched.get(site);
    if (known) {
      known.wished = true;
      known.resume();
      return;
    }
    const watched: Watched = { wished: false, resume: () => undefined };
    this.#watched.set(site, watched);
    const running = this.#stand(site, watched).finally(() => this.#running.delete(running));
    this.#running.add(running);
  }

  /** At how many sites. */
  get size(): number {
    return this.#watched.size;
  }

  /** No further rounds begin. */
  end(): void {
    this.#ended = true;
    for (const { resume } of this.#watched.values()) resume();
  }

  /** Waits for the rounds that are running. */
  async close(): Promise<void> {
    this.end();
    await Promise.all(this.#running);
  }

  async #stand(site: string, watched: Watched): Promise<void> {
    let met = false;
    while (!this.#ended) {
      watched.wished = false;
      const round = async () => (this.#ended ? undefined : this.#round(site));
      const again: number | undefined = met ? await round() : await this.#meetings.run(round);
      met = again === 0;
      if (again === undefined && !watched.wished) break;
      if (again !== undefined && again > 0 && !watched.wished) await this.#pause(again, watched);
    }
    this.#watched.delete(site);
  }

  #pause(ms: number, watched: Watched): Promise<void> {
    if (this.#ended) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      watched.resume = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}
