import { formatJobId, type JobId, parseJobId } from '../job/ids.ts';
import { isEnd, type State, STATES } from '../job/life.ts';
import { staysInQueue } from '../job/stays.ts';
import type { EventEntry, Queue } from '../queue/api.ts';

/** Jobs in one step. */
const AT_ONCE = 4000;
/** As many may wait while others are more urgent: each takes 16 bytes. */
const MOST_LATE = 1_000_000;

const ENDS: readonly State[] = STATES.filter(isEnd);

/**
 * Moves ended jobs into the history, once every listener has handled their end. Those that `leave_in_queue` keeps are
 * checked again regularly.
 */
export class Ended {
  readonly #queue: Pick<Queue, 'get' | 'query' | 'retire' | 'totals'>;
  readonly #kept = new Map<string, JobId>();
  /** Jobs whose move waits until no event does, oldest first: cluster and proc of each, because there may be a million. */
  readonly #late: Float64Array[] = [];
  #lateJobs = 0;
  /** Jobs that had already ended at the start: their events may not have reached all listeners yet. */
  #found: readonly JobId[] = [];

  constructor(queue: Pick<Queue, 'get' | 'query' | 'retire' | 'totals'>) {
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

  /** `behind`: more events wait. The jobs of these are moved later, by `catchUp`. */
  async note(entries: readonly EventEntry[], behind = false): Promise<void> {
    const ids = entries.flatMap(({ event }) => {
      const ended = event.type === 'transition' && isEnd(event.to);
      const letGo = event.type === 'edited' && this.#kept.has(event.job);
      const id = ended || letGo ? parseJobId(event.job) : undefined;
      return id ? [id] : [];
    });
    if (ids.length === 0) return;
    if (!behind || this.#lateJobs + ids.length > MOST_LATE) return this.#retire(ids);
    this.#late.push(Float64Array.from(ids.flatMap(({ cluster, proc }) => [cluster, proc])));
    this.#lateJobs += ids.length;
  }

  /** Whether jobs wait for `catchUp`. */
  get late(): boolean {
    return this.#late.length > 0;
  }

  /** Moves some of the jobs that wait. */
  async catchUp(): Promise<void> {
    const ids: JobId[] = [];
    let pieces = 0;
    for (const some of this.#late) {
      if (pieces > 0 && ids.length + some.length / 2 > AT_ONCE) break;
      for (let at = 0; at < some.length; at += 2) ids.push({ cluster: some[at] ?? 0, proc: some[at + 1] ?? 0 });
      pieces += 1;
    }
    await this.#retire(ids);
    this.#late.splice(0, pieces);
    this.#lateJobs -= ids.length;
  }

  async retry(): Promise<void> {
    await this.#retire([...this.#kept.values()]);
  }

  async #retire(ids: readonly JobId[]): Promise<void> {
    for (let from = 0; from < ids.length; from += AT_ONCE) {
      const going: JobId[] = [];
      for (const job of await this.#queue.get(ids.slice(from, from + AT_ONCE))) {
        if (!isEnd(job.state)) continue;
        if (staysInQueue(job.attrs)) this.#kept.set(formatJobId(job.id), job.id);
        else going.push(job.id);
      }
      if (going.length > 0) await this.#queue.retire(going);
      for (const id of going) this.#kept.delete(formatJobId(id));
    }
  }
}
