import { formatJobId, type JobId, parseJobId } from '../job/ids.ts';
import { isEnd, type State, STATES } from '../job/life.ts';
import { truthOf } from '../job/values.ts';
import type { EventEntry, Queue } from '../queue/api.ts';

const ENDS: readonly State[] = STATES.filter(isEnd);

/** Ended jobs on their way into the history; those that `leave_in_queue` keeps are looked at again from time to time. */
export class Ended {
  readonly #queue: Queue;
  readonly #kept = new Map<string, JobId>();

  constructor(queue: Queue) {
    this.#queue = queue;
  }

  /** After a start: what ended and was not retired. */
  async recover(): Promise<void> {
    const { states } = await this.#queue.totals();
    if (ENDS.every((state) => states[state] === 0)) return;
    for await (const job of this.#queue.query({ states: ENDS })) this.#kept.set(formatJobId(job.id), job.id);
  }

  async note(entries: readonly EventEntry[]): Promise<void> {
    const ids = entries.flatMap(({ event }) => {
      const ended = event.type === 'transition' && isEnd(event.to);
      const letGo = event.type === 'edited' && this.#kept.has(event.job);
      const id = ended || letGo ? parseJobId(event.job) : undefined;
      return id ? [id] : [];
    });
    await this.#retire(ids);
  }

  async retry(): Promise<void> {
    await this.#retire([...this.#kept.values()]);
  }

  async #retire(ids: readonly JobId[]): Promise<void> {
    if (ids.length === 0) return;
    const going: JobId[] = [];
    for (const job of await this.#queue.get(ids)) {
      if (!isEnd(job.state)) continue;
      const stays = job.attrs.has('LeaveJobInQueue') && truthOf(job.attrs, 'LeaveJobInQueue') === true;
      if (stays) this.#kept.set(formatJobId(job.id), job.id);
      else going.push(job.id);
    }
    if (going.length > 0) await this.#queue.retire(going);
    for (const id of going) this.#kept.delete(formatJobId(id));
  }
}
