import { sweepDag } from '../dag/api.ts';
import { parseJobId } from '../job/ids.ts';
import { isEnd } from '../job/life.ts';
import { readBoolean } from '../job/values.ts';
import type { EventEntry, Queue } from '../queue/api.ts';
import type { Listener } from './listener.ts';

/** A DAG manager that leaves the queue takes its nodes' jobs with it, also where it had no time to remove them. */
export class DagListener implements Listener {
  readonly #queue: Queue;

  constructor(queue: Queue) {
    this.#queue = queue;
  }

  async hear(entries: readonly EventEntry[]): Promise<void> {
    const ids = entries.flatMap(({ event }) => {
      const id = event.type === 'transition' && isEnd(event.to) ? parseJobId(event.job) : undefined;
      return id ? [id] : [];
    });
    if (ids.length === 0) return;
    for (const { id, attrs } of await this.#queue.get(ids)) {
      if (attrs.has('GryphusDag') && readBoolean(attrs, 'GryphusDag') === true) await sweepDag(this.#queue, id.cluster);
    }
  }
}
