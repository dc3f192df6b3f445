import type { EventEntry, Queue } from '../queue/api.ts';
import { EDITED_POLICIES } from '../queue/tables.ts';
import { hasPeriodicPolicy, isPolicy } from './periodic.ts';

/** Which clusters have a periodic policy, so that those without one cost nothing. */
export class Policies {
  readonly #queue: Pick<Queue, 'clusters' | 'query' | 'kv'>;
  readonly #known = new Map<number, boolean>();
  #edited: Set<number> | undefined;

  constructor(queue: Pick<Queue, 'clusters' | 'query' | 'kv'>) {
    this.#queue = queue;
  }

  async hear(entries: readonly EventEntry[]): Promise<void> {
    for (const { event } of entries) {
      if (event.type === 'cluster-edited') this.#known.delete(event.cluster);
      if (event.type !== 'edited' || !Object.keys(event.set).some(isPolicy)) continue;
      const cluster = Number(event.job.split('.')[0]);
      await EDITED_POLICIES.set(this.#queue.kv, String(cluster), 1);
      (await this.#editedOnes()).add(cluster);
    }
  }

  /** The clusters in the queue with a periodic policy. */
  async clusters(): Promise<readonly number[]> {
    const there = (await this.#queue.clusters()).map(({ cluster }) => cluster);
    const edited = await this.#editedOnes();
    const present = new Set(there);
    for (const cluster of this.#known.keys()) if (!present.has(cluster)) this.#known.delete(cluster);
    for (const cluster of edited) {
      if (present.has(cluster)) continue;
      edited.delete(cluster);
      await EDITED_POLICIES.delete(this.#queue.kv, String(cluster));
    }
    const found: number[] = [];
    for (const cluster of there) if (await this.has(cluster)) found.push(cluster);
    return found;
  }

  /** Whether some job of the cluster may have a policy. */
  async has(cluster: number): Promise<boolean> {
    return (await this.#editedOnes()).has(cluster) || this.#ofAll(cluster);
  }

  async #ofAll(cluster: number): Promise<boolean> {
    const known = this.#known.get(cluster);
    if (known !== undefined) return known;
    // One job shows what all share, and that each has an expression of its own if a macro sets it.
    for await (const job of this.#queue.query({ clusters: [cluster], limit: 1 })) {
      const has = hasPeriodicPolicy(job.attrs);
      this.#known.set(cluster, has);
      return has;
    }
    return false;
  }

  async #editedOnes(): Promise<Set<number>> {
    this.#edited ??= new Set((await EDITED_POLICIES.list(this.#queue.kv)).map(({ key }) => Number(key)));
    return this.#edited;
  }
}
