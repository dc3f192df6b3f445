import { resolve } from 'node:path';
import type { QueueEvent } from '../job/events.ts';
import { formatJobId, type JobId, parseJobId } from '../job/ids.ts';
import { userLogJson, userLogXml } from '../job/user-log-ad.ts';
import type { UserLogEvent } from '../job/user-log.ts';
import { printUserLog } from '../job/user-log-text.ts';
import { readString } from '../job/values.ts';
import type { EventEntry, JobRecord, Queue } from '../queue/api.ts';
import type { Listener } from './listener.ts';
import { logEvents, submitEvent } from './log-events.ts';
import { UserLogs } from './user-logs.ts';

export interface LogListenerOptions {
  readonly queue: Pick<Queue, 'get' | 'kv'>;
  /** This machine's name, for the submit event. */
  readonly host: string;
  /** HTCondor's DEFAULT_USERLOG_FORMAT_OPTIONS. */
  readonly style: () => readonly string[];
  readonly log: (message: string, facts?: object) => void;
}

/** Writes the jobs' user logs (`log =`) from the queue's events. */
export class LogListener implements Listener {
  readonly #options: LogListenerOptions;
  readonly #logs: UserLogs;

  constructor(options: LogListenerOptions) {
    this.#options = options;
    this.#logs = new UserLogs(options.queue.kv, (path, error) =>
      options.log('a user log cannot be written', { path, error: error.message }),
    );
  }

  async hear(entries: readonly EventEntry[]): Promise<void> {
    const [first] = entries;
    if (!first) return;
    const jobs = await this.#jobs(entries);
    const texts = new Map<string, string>();
    const print = printer(this.#options.style());
    for (const { event } of entries) {
      for (const [job, said] of this.#said(event, jobs)) {
        const path = logPath(job);
        if (path !== undefined) texts.set(path, (texts.get(path) ?? '') + print(said));
      }
    }
    await this.#logs.append({ first: first.id, texts });
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

function* idsOf(event: QueueEvent): Generator<JobId> {
  if (event.type === 'transition') {
    const id = parseJobId(event.job);
    if (id) yield id;
  } else if (event.type === 'submitted' || event.type === 'materialized') {
    for (const [from, to] of event.procs)
      for (let proc = from; proc < to; proc++) yield { cluster: event.cluster, proc };
  }
}

/** `undefined` where the job keeps no log. */
function logPath({ attrs }: JobRecord): string | undefined {
  const path = readString(attrs, 'UserLog');
  return path === undefined || path === '' || path === '/dev/null'
    ? undefined
    : resolve(readString(attrs, 'Iwd') ?? '/', path);
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
