import { formatJobId, type JobId, parseJobId } from '../job/ids.ts';
import type { EventEntry, JobRecord, Queue } from '../queue/api.ts';
import { deadlineOf, overTime } from './periodic.ts';

/** The longest that a timer of Node's may be set to, with room to spare, milliseconds. */
const LONGEST_MS = 2 ** 30;

/**
 * Holds jobs that run for longer than they may (`allowed_job_duration`, `allowed_execute_duration`), at the second: each
 * start of such a job sets its time, and whoever looks at all jobs with a policy sets those of before.
 */
export class Deadlines {
  readonly #queue: Pick<Queue, 'get' | 'transitionMany'>;
  readonly #limited: (cluster: number) => Promise<boolean>;
  readonly #onDue: () => void;
  /** Unix seconds. */
  readonly #due = new Map<string, number>();
  #timer: NodeJS.Timeout | undefined;

  /** `limited`: whether jobs of a cluster may have such a limit; `onDue`: `round` has something to do. */
  constructor(
    queue: Pick<Queue, 'get' | 'transitionMany'>,
    limited: (cluster: number) => Promise<boolean>,
    onDue: () => void,
  ) {
    this.#queue = queue;
    this.#limited = limited;
    this.#onDue = onDue;
  }

  /** Notes when this job must have ended. */
  note(job: JobRecord): void {
    const at = deadlineOf(job);
    const name = formatJobId(job.id);
    if (this.#due.get(name) === at) return;
    if (at === undefined) this.#due.delete(name);
    else this.#due.set(name, at);
    this.#arm();
  }

  async hear(entries: readonly EventEntry[]): Promise<void> {
    const started: JobId[] = [];
    for (const { event } of entries) {
      if (event.type !== 'transition' || event.event !== 'started') continue;
      const id = parseJobId(event.job);
      if (id && (await this.#limited(id.cluster))) started.push(id);
    }
    if (started.length > 0) for (const job of await this.#queue.get(started)) this.note(job);
  }

  /** Holds what is over its time. */
  async round(now = Date.now() / 1000): Promise<void> {
    const due = [...this.#due].filter(([, at]) => at <= now).map(([name]) => name);
    const ids = due.flatMap((name) => parseJobId(name) ?? []);
    const jobs = ids.length === 0 ? [] : await this.#queue.get(ids);
    const changes = jobs.map((job) => overTime(job, now)).filter((change) => change !== undefined);
    if (changes.length > 0) await this.#queue.transitionMany(changes);
    for (const name of due) this.#due.delete(name);
    // One that started anew, or that was given more time meanwhile.
    for (const job of jobs) if (!changes.some(({ id }) => id === job.id)) this.note(job);
    this.#arm();
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#due.clear();
  }

  #arm(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    let next = Number.POSITIVE_INFINITY;
    for (const at of this.#due.values()) next = Math.min(next, at);
    if (next === Number.POSITIVE_INFINITY) return;
    const wait = Math.min(LONGEST_MS, Math.max(0, next * 1000 - Date.now()));
    this.#timer = setTimeout(this.#onDue, wait);
    this.#timer.unref();
  }
}
