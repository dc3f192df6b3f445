import type { QueueEvent } from '../job/events.ts';
import { formatJobId, type JobId, parseJobId } from '../job/ids.ts';
import { userLogJson, userLogXml } from '../user-log/as-ad.ts';
import type { UserLogEvent } from '../user-log/event.ts';
import { userLogPath } from '../job/user-log-path.ts';
import { printUserLog } from '../user-log/text.ts';
import type { EventEntry, JobRecord, Queue } from '../queue/api.ts';
import type { Listener } from './listener.ts';
import { logEvents, submitEvent } from '../job/log-events.ts';
import type { UserLogs } from './user-logs/user-logs.ts';

export interface LogListenerOptions {
  readonly queue: Pick<Queue, 'get'>;
  readonly logs: Pick<UserLogs, 'told' | 'append'>;
  /** This machine's name, for the submit event. */
  readonly host: string;
  /** HTCondor's DEFAULT_USERLOG_FORMAT_OPTIONS. */
  readonly style: () => readonly string[];
}

/** Writes the jobs' user logs (`log =`) from the queue's events. */
export class LogListener implements Listener {
  readonly #options: LogListenerOptions;

  constructor(options: LogListenerOptions) {
    this.#options = options;
  }

  async hear(heard: readonly EventEntry[]): Promise<void> {
    const [first] = heard;
    if (!first) return;
    const told = this.#options.logs.told(first.id);
    const entries = told === undefined ? heard : heard.filter(({ id }) => isLater(id, told));
    const last = entries.at(-1);
    if (!last) return;
    const jobs = await this.#jobs(entries);
    const texts = new Map<string, string>();
    const print = printer(this.#options.style());
    for (const { event } of entries) {
      for (const [job, said] of this.#said(event, jobs)) {
        const path = userLogPath(job.attrs);
        if (path !== undefined) texts.set(path, (texts.get(path) ?? '') + print(said));
      }
    }
    if (texts.size > 0) await this.#options.logs.append({ from: first.id, last: last.id, texts });
  }

  *#said(event: QueueEvent, jobs: ReadonlyMap<string, JobRecord>): Generator<[JobRecord, UserLogEvent]> {
    if (event.type === 'submitted' || event.type === 'materialized') {
      for (const id of idsOf(event)) {
        const job = jobs.get(formatJobId(id));
        if (job) yield [job, submitEvent(id, event.at, job.attrs, this.#options.host)];
      }
    } else if (event.type === 'transition') {
      const job = jobs.get(event.job);
      if (job) for (const said of logEvents(job.id, event, job.attrs)) yield [job, said];
    }
  }

  async #jobs(entries: readonly EventEntry[]): Promise<ReadonlyMap<string, JobRecord>> {
    const ids = new Map<string, JobId>();
    for (const { event } of entries) for (const id of idsOf(event)) ids.set(formatJobId(id), id);
    const jobs = ids.size === 0 ? [] : await this.#options.queue.get([...ids.values()]);
    return new Map(jobs.map((job) => [formatJobId(job.id), job]));
  }
}

/** Compares ids of events: milliseconds, and a sequence number. */
function isLater(id: string, than: string): boolean {
  const [a = 0, i = 0] = id.split('-').map(Number);
  const [b = 0, j = 0] = than.split('-').map(Number);
  return a === b ? i > j : a > b;
}

function* idsOf(event: QueueEvent): Generator<JobId> {
  if (event.type === 'transition') {
    const id = parseJobId(event.job);
    if (id) yield id;
  } else if (event.type === 'submitted' || event.type === 'materialized') {
    for (const [from, to] of event.procs)
      for (let proc = from; proc < to; proc++) yield { cluster: event.cluster, proc };
  }
}

function printer(style: readonly string[]): (event: UserLogEvent) => string {
  const dates = {
    legacy: style.includes('LEGACY'),
    utc: style.includes('UTC'),
    subSecond: style.includes('SUB_SECOND'),
  };
  if (style.includes('JSON')) return (event) => userLogJson(event, dates);
  if (style.includes('XML')) return (event) => userLogXml(event, dates);
  return (event) => printUserLog(event, dates);
}
