import { formatJobId, type JobId, parseJobId } from '../job/ids.ts';
import type { EventEntry, JobRecord, Queue } from '../queue/api.ts';
import { deadlineOf, overTime } from './periodic.ts';

/** The longest delay that Node's timers support, with a margin; milliseconds. */
const LONGEST_MS = 2 ** 30;

/**
 * Holds jobs that exceed their time (`allowed_job_duration`, `allowed_execute_duration`), to the second. Each start of
 * such a job sets its deadline; the periodic look at all jobs with a policy sets those of earlier starts.
 */
export class Deadlines {
  readonly #queue: Pick<Queue, 'get' | 'transitionMany'>;
  readonly #limited: (cluster: number) => Promise<boolean>;
  readonly #onDue: () => void;
  /** Deadlines, Unix seconds. */
  readonly #due = new Map<string, number>();
  #timer: NodeJS.Timeout | undefined;

  /** `limited`: whether jobs of a cluster may have such a limit; `onDue` is called when `round` has work to do. */
  constructor(
    queue: Pick<Queue, 'get' | 'transitionMany'>,
    limited: (cluster: number) => Promise<boolean>,
    onDue: () => void,
  ) {
    this.#queue = queue;
    this.#limited = limited;
    this.#onDue = onDue;
  }

  /** Records the job's deadline. */
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

  /** Holds the jobs that exceeded their time. */
  async round(now = Date.now() / 1000): Promise<void> {
    const due = [...this.#due].filter(([, at]) => at <= now).map(([name]) => name);
    const ids = due.flatMap((name) => parseJobId(name) ?? []);
    const jobs = ids.length === 0 ? [] : await this.#queue.get(ids);
    const changes = jobs.map((job) => overTime(job, now)).filter((change) => change !== undefined);
    if (changes.length > 0) await this.#queue.transitionMany(changes);
    for (const name of due) this.#due.delete(name);
    // Jobs that started again, or whose limit was raised in the meantime.
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
