import { formatJobId, type JobId, parseJobId } from '../job/ids.ts';
import { isEnd, type State, STATES } from '../job/life.ts';
import { staysInQueue } from '../job/stays.ts';
import type { EventEntry, Queue } from '../queue/api.ts';

const ENDS: readonly State[] = STATES.filter(isEnd);

/**
 * Moves ended jobs into the history, once every listener has handled their end. Those that `leave_in_queue` keeps are
 * checked again regularly.
 */
export class Ended {
  readonly #queue: Queue;
  readonly #kept = new Map<string, JobId>();
  /** Jobs that had already ended at the start: their events may not have reached all listeners yet. */
  #found: readonly JobId[] = [];

  constructor(queue: Queue) {
    this.#queue = queue;
  }

  /** After a start: finds jobs that ended and were not retired. */
  async recover(): Promise<void> {
    const { states } = await this.#queue.totals();
    if (ENDS.every((state) => states[state] === 0)) return;
    const found: JobId[] = [];
    for await (const job of this.#queue.query({ states: ENDS })) found.push(job.id);
    this.#found = found;
  }

  /** The listeners have handled every event so far, including all from before the start. */
  caughtUp(): void {
    for (const id of this.#found) this.#kept.set(formatJobId(id), id);
    this.#found = [];
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
      if (staysInQueue(job.attrs)) this.#kept.set(formatJobId(job.id), job.id);
      else going.push(job.id);
    }
    if (going.length > 0) await this.#queue.retire(going);
    for (const id of going) this.#kept.delete(formatJobId(id));
  }
}
