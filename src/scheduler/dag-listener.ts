import { forgetOldRecords, JournalPlace, sweepDag } from '../dag/api.ts';
import { parseJobId } from '../job/ids.ts';
import { isEnd } from '../job/life.ts';
import { readBoolean } from '../job/values.ts';
import type { EventEntry, Queue } from '../queue/api.ts';
import type { Listener } from './listener.ts';

export interface DagListenerOptions {
  readonly queue: Queue;
  readonly stateDir: string;
  /** Records of ended DAGs that are kept: so many, and for so long (milliseconds). */
  readonly keepRecords: () => number;
  readonly keepForMs: () => number;
  readonly now?: () => number;
}

/**
 * A DAG manager that leaves the queue takes its nodes' jobs with it, also where it had no time to remove them; what is
 * kept of ended DAGs stays within its bounds.
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
    let swept = false;
    for (const { id, attrs } of await queue.get(ids)) {
      if (!attrs.has('GryphusDag') || readBoolean(attrs, 'GryphusDag') !== true) continue;
      await sweepDag(queue, id.cluster);
      new JournalPlace(this.#options, id.cluster).abandon();
      swept = true;
    }
    if (swept) forgetOldRecords(this.#options, keepRecords(), now() - keepForMs());
  }
}
