import type { Edited, QueueEvent, Transitioned } from '../job/events.ts';
import { formatJobId, type JobId, parseJobId } from '../job/ids.ts';
import { userLogJson, userLogXml } from '../user-log/as-ad.ts';
import type { UserLogEvent } from '../user-log/event.ts';
import { userLogPath } from '../job/user-log-path.ts';
import { printUserLog } from '../user-log/text.ts';
import type { EventEntry, JobRecord, Queue } from '../queue/api.ts';
import type { Listener } from './listener.ts';
import { isLogged, logEvents, runningEvents, submitEvent } from '../job/log-events.ts';
import type { UserLogs } from './user-logs/user-logs.ts';

export interface LogListenerOptions {
  readonly queue: Pick<Queue, 'get'>;
  readonly logs: Pick<UserLogs, 'accepted' | 'append'>;
  /** This machine's name, for the submit event. */
  readonly host: string;
  /** HTCondor's DEFAULT_USERLOG_FORMAT_OPTIONS. */
  readonly style: () => readonly string[];
}

/** Jobs whose texts are made and written together; a submit may have a million. */
const JOBS_AT_ONCE = 5000;

/** Writes the jobs' user logs (`log =`) from the queue's events. */
export class LogListener implements Listener {
  readonly #options: LogListenerOptions;
  /** Up to where everything has been accepted, in this process. */
  #written: string | undefined;

  constructor(options: LogListenerOptions) {
    this.#options = options;
  }

  async hear(heard: readonly EventEntry[]): Promise<void> {
    const [first] = heard;
    if (!first) return;
    const done = [this.#options.logs.accepted(first.id), this.#written];
    const fresh = pieces(heard).filter(({ id }) => done.every((upTo) => upTo === undefined || isLater(id, upTo)));
    for (const some of portions(fresh)) {
      const texts = await this.#texts(some.map(({ event }) => event));
      const last = some.at(-1)?.id ?? first.id;
      if (texts.size > 0) await this.#options.logs.append({ from: first.id, last, texts });
      this.#written = last;
    }
  }

  async #texts(events: readonly QueueEvent[]): Promise<ReadonlyMap<string, string>> {
    const jobs = await this.#jobs(events);
    const texts = new Map<string, string>();
    const print = printer(this.#options.style());
    for (const event of events) {
      for (const job of jobsOf(event, jobs)) {
        const path = userLogPath(job.attrs);
        if (path === undefined) continue;
        const said = this.#said(event, job).map(print).join('');
        if (said !== '') texts.set(path, (texts.get(path) ?? '') + said);
      }
    }
    return texts;
  }

  #said(event: QueueEvent, job: JobRecord): UserLogEvent[] {
    if (event.type === 'submitted' || event.type === 'materialized')
      return [submitEvent(job.id, event.at, job.attrs, this.#options.host)];
    if (event.type === 'edited') return runningEvents(job.id, event);
    return event.type === 'transition' ? logEvents(job.id, event, job.attrs) : [];
  }

  async #jobs(events: readonly QueueEvent[]): Promise<ReadonlyMap<string, JobRecord>> {
    const ids = new Map<string, JobId>();
    for (const event of events) for (const id of idsOf(event)) ids.set(formatJobId(id), id);
    const jobs = ids.size === 0 ? [] : await this.#options.queue.get([...ids.values()]);
    return new Map(jobs.map((job) => [formatJobId(job.id), job]));
  }
}

/**
 * Large events in parts, which get ids of their own. The same events have always the same parts, because they may be
 * delivered again after a crash.
 */
function pieces(entries: readonly EventEntry[]): EventEntry[] {
  return entries.flatMap(({ id, event }) => {
    const parts = partsOf(event);
    return parts.length === 1 ? [{ id, event }] : parts.map((part, i) => ({ id: `${id}/${i}`, event: part }));
  });
}

function* portions(entries: readonly EventEntry[]): Generator<readonly EventEntry[]> {
  let portion: EventEntry[] = [];
  let size = 0;
  for (const entry of entries) {
    const jobs = jobsIn(entry.event);
    if (size + jobs > JOBS_AT_ONCE && portion.length > 0) {
      yield portion;
      [portion, size] = [[], 0];
    }
    portion.push(entry);
    size += jobs;
  }
  if (portion.length > 0) yield portion;
}

function jobsIn(event: QueueEvent): number {
  if (event.type !== 'submitted' && event.type !== 'materialized') return 1;
  return event.procs.reduce((sum, [from, to]) => sum + to - from, 0);
}

/** New procs, a number at a time. */
function partsOf(event: QueueEvent): readonly QueueEvent[] {
  if (event.type !== 'submitted' && event.type !== 'materialized') return [event];
  const parts: [number, number][][] = [[]];
  let size = 0;
  for (const [begin, end] of event.procs) {
    for (let from = begin; from < end; ) {
      if (size >= JOBS_AT_ONCE) {
        parts.push([]);
        size = 0;
      }
      const to = Math.min(end, from + JOBS_AT_ONCE - size);
      parts.at(-1)?.push([from, to]);
      size += to - from;
      from = to;
    }
  }
  return parts.map((procs) => ({ ...event, procs }));
}

/**
 * Compares ids of events: milliseconds, a sequence number, the position in its bundle, of which the last event has the
 * id of the whole (`entriesOf`), and the part of the event.
 */
function isLater(id: string, than: string): boolean {
  const others = orderOf(than);
  for (const [i, mine] of orderOf(id).entries()) {
    const other = others[i] ?? 0;
    if (mine !== other) return mine > other;
  }
  return false;
}

function orderOf(id: string): readonly number[] {
  const [entry = '', part = '0'] = id.split('/');
  const [stream = '', position = 'Infinity'] = entry.split('.');
  return [...stream.split('-'), position, part].map(Number);
}

function* jobsOf(event: QueueEvent, jobs: ReadonlyMap<string, JobRecord>): Generator<JobRecord> {
  if (!isOfOne(event)) {
    for (const id of idsOf(event)) {
      const job = jobs.get(formatJobId(id));
      if (job) yield job;
    }
    return;
  }
  const job = jobs.get(event.job);
  if (job) yield job;
}

function isOfOne(event: QueueEvent): event is Transitioned | Edited {
  return event.type === 'transition' || (event.type === 'edited' && isLogged(event));
}

function* idsOf(event: QueueEvent): Generator<JobId> {
  if (isOfOne(event)) {
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
