import { forgetOldRecords, JournalPlace, sweepDag } from '../dag/api.ts';
import { parseJobId } from '../job/ids.ts';
import { isEnd } from '../job/life.ts';
import { readBoolean } from '../job/values.ts';
import { UNIVERSE } from '../job/universe.ts';
import type { EventEntry, Queue } from '../queue/api.ts';
import type { Listener } from './listener.ts';

export interface DagListenerOptions {
  readonly queue: Queue;
  readonly stateDir: string;
  /** How many records of ended DAGs to keep, and for how long (milliseconds). */
  readonly keepRecords: () => number;
  readonly keepForMs: () => number;
  readonly now?: () => number;
}

/**
 * When a DAG manager leaves the queue, removes its nodes' jobs, in case it had no time to do so itself, and keeps the
 * records of ended DAGs within their limits.
 */
export class DagListener implements Listener {
  readonly #options: DagListenerOptions;

  constructor(options: DagListenerOptions) {
    this.#options = options;
  }

  async hear(entries: readonly EventEntry[]): Promise<void> {
    const { queue, keepRecords, keepForMs, now = Date.now } = this.#options;
    const ids = entries.flatMap(({ event }) => {
      const id = event.type === 'transition' && isEnd(event.to) ? parseJobId(event.job) : undefined;
      return id ? [id] : [];
    });
    if (ids.length === 0) return;
    const summaries = await queue.summaries([...new Set(ids.map(({ cluster }) => cluster))]);
    const managers = new Set(
      summaries.filter(({ universe }) => universe === UNIVERSE.scheduler).map((one) => one.cluster),
    );
    let swept = false;
    for (const { id, attrs } of await queue.get(ids.filter(({ cluster }) => managers.has(cluster)))) {
      if (!attrs.has('GryphusDag') || readBoolean(attrs, 'GryphusDag') !== true) continue;
      await sweepDag(queue, id.cluster);
      new JournalPlace(this.#options, id.cluster).abandon();
      swept = true;
    }
    if (swept) forgetOldRecords(this.#options, keepRecords(), now() - keepForMs());
  }
}
