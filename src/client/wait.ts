import { setTimeout as sleep } from 'node:timers/promises';
import type { QueueEvent } from '../job/events.ts';
import { IdSet } from '../job/id-set.ts';
import { type JobId, parseJobId } from '../job/ids.ts';
import { isEnd, LIFE, type State, STATES } from '../job/life.ts';
import { staysInQueue } from '../job/stays.ts';
import type { ClusterSummary, JobRecord, Queue } from '../queue/api.ts';
import { startTimer } from '../util/long-timer.ts';
import { factoryPause } from './factory-pause.ts';
import { patiently } from './patiently.ts';
import { selectJobs } from './select.ts';
import type { WaitRequest } from './types.ts';

type Until = NonNullable<WaitRequest['until']>;

const REACHED: Readonly<Record<Until, (state: State) => boolean>> = {
  end: isEnd,
  settled: (state) => isEnd(state) || LIFE[state].shows === 'held',
  start: (state) => isEnd(state) || !['idle', 'preparing', 'prepared', 'committed', 'unknown'].includes(state),
};
const ENDS: readonly State[] = STATES.filter(isEnd);
/**
 * The pause between two looks: this many times as long as the last one took, up to a limit. So a few looks suffice for
 * a thousand ends a second.
 */
const REST = 4;
const LONGEST_REST_MS = 250;
/** Events trigger a look; without any, look again after this many milliseconds. */
const LOOK_MS = 10_000;
/** How many jobs are requested at once. */
const CHUNK = 5000;

/**
 * Looks whenever an event may have changed the answer. True when one look found all jobs in their wanted state; false
 * when the time ran out or the signal came first. What a look finds is true at that moment, whatever events were
 * missed. Whole clusters are checked by their counters.
 */
export async function wait(queue: Queue, request: WaitRequest): Promise<boolean> {
  const stop = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const late = () => stop.abort();
  if (request.timeoutMs !== undefined) startTimer(request.timeoutMs, late, (next) => (timer = next));
  const signal = request.signal ? AbortSignal.any([request.signal, stop.signal]) : stop.signal;
  const until = request.until ?? 'end';
  const news = new News();
  let following: Promise<void> | undefined;
  try {
    // From before the first look, so that no event is missed in between.
    const from = await patiently(() => queue.position(), signal);
    const awaited = await patiently(() => awaitedJobs(queue, request), signal);
    if (from === undefined || !awaited) return false;
    following = news.follow(queue, from, awaited, until, signal);
    for (;;) {
      const began = performance.now();
      const open = await patiently(() => someOpen(queue, awaited, until), signal);
      if (open === undefined) return false;
      if (!open) return true;
      const rest = Math.min(LONGEST_REST_MS, REST * (performance.now() - began));
      await sleep(rest, undefined, { signal }).catch(() => undefined);
      await news.wait(LOOK_MS, signal);
    }
  } finally {
    clearTimeout(timer);
    stop.abort();
    await following;
  }
}

/** What to wait for: whole clusters, with the jobs they make later, and single jobs. */
interface Awaited {
  readonly clusters: ReadonlySet<number>;
  /** Jobs that may be in the queue; one that has left is not requested again. */
  ids: readonly JobId[];
  readonly single: IdSet;
}

async function awaitedJobs(queue: Queue, { or = [], ...first }: WaitRequest): Promise<Awaited> {
  const whole = new Set<number>();
  const ids: JobId[] = [];
  const single = new IdSet();
  for (const { constraint, ...selection } of [first, ...or]) {
    const { ids: named, clusters, owner } = selection;
    if (constraint !== undefined || named !== undefined) {
      const narrow = constraint === undefined ? { ids: named ?? [] } : { ...selection, constraint };
      const of = owner === undefined ? narrow : { ...narrow, owner };
      for await (const { id } of selectJobs(queue, of)) if (single.add(id)) ids.push(id);
    }
    if (constraint !== undefined || (named !== undefined && clusters === undefined)) continue;
    for (const one of await queue.summaries(clusters))
      if (owner === undefined || owner === one.owner) whole.add(one.cluster);
  }
  return { clusters: whole, ids, single };
}

/** Whether some job is not yet in its wanted state. */
async function someOpen(queue: Queue, awaited: Awaited, until: Until): Promise<boolean> {
  const reached = REACHED[until];
  // An end counts once the job is where it stays: in the history, or in the queue if it asked for that.
  const isOpen = ({ state, attrs }: JobRecord) =>
    !reached(state) || (until !== 'start' && isEnd(state) && !staysInQueue(attrs));
  if (awaited.clusters.size > 0 && (await someOpenIn(queue, awaited.clusters, until, isOpen))) return true;
  const stay: JobId[] = [];
  for (let rest = awaited.ids; rest.length > 0; ) {
    const some = await queue.get(rest.slice(0, CHUNK));
    rest = rest.slice(CHUNK);
    const there = some.map(({ id }) => id);
    if (some.some(isOpen)) {
      awaited.ids = [...there, ...rest, ...stay];
      return true;
    }
    stay.push(...there);
  }
  awaited.ids = stay;
  return false;
}

async function someOpenIn(
  queue: Queue,
  clusters: ReadonlySet<number>,
  until: Until,
  isOpen: (job: JobRecord) => boolean,
): Promise<boolean> {
  // Before the counters: if a cluster makes no more jobs now, they count all of its jobs.
  for (const { cluster } of await queue.unmaterialized()) {
    if (!clusters.has(cluster)) continue;
    // A cluster that is paused until someone resumes it is as settled as a held job.
    if (until !== 'settled' || (await factoryPause(queue, cluster)) === undefined) return true;
  }
  const summaries = await queue.summaries([...clusters]);
  const has = ({ counts }: ClusterSummary, which: (state: State) => boolean) =>
    STATES.some((state) => which(state) && (counts[state] ?? 0) > 0);
  if (summaries.some((summary) => has(summary, (state) => !REACHED[until](state)))) return true;
  const ended = summaries.filter((summary) => has(summary, isEnd)).map(({ cluster }) => cluster);
  if (until === 'start' || ended.length === 0) return false;
  for await (const jobs of queue.queryChunks({ clusters: ended, states: ENDS })) if (jobs.some(isOpen)) return true;
  return false;
}

/** Matches the text of those events `mayEnd` examines that are not steps of jobs. */
const OTHER_NEWS = '"type":"(?:edited|retired|materialized|cluster-edited)"';

/** Wakes the waiter when something happened that may have ended the wait. */
class News {
  #came = false;
  #wake: () => void = () => undefined;

  async follow(queue: Queue, from: string, awaited: Awaited, until: Until, signal: AbortSignal): Promise<void> {
    const only = new RegExp(`"to":"(?:${STATES.filter(REACHED[until]).join('|')})"|${OTHER_NEWS}`);
    for await (const { event } of queue.subscribe({ from, signal, only }))
      if (mayEnd(event, awaited, until)) this.#tell();
  }

  async wait(ms: number, signal: AbortSignal): Promise<void> {
    if (!this.#came && !signal.aborted) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, ms);
        this.#wake = () => {
          clearTimeout(timer);
          resolve();
        };
        signal.addEventListener('abort', this.#wake, { once: true });
      });
      signal.removeEventListener('abort', this.#wake);
    }
    this.#came = false;
  }

  #tell(): void {
    this.#came = true;
    this.#wake();
  }
}

function mayEnd(event: QueueEvent, { clusters, single }: Awaited, until: Until): boolean {
  const concerns = (job: string) => {
    const id = parseJobId(job);
    return id !== undefined && (clusters.has(id.cluster) || single.has(id));
  };
  switch (event.type) {
    case 'transition':
      return REACHED[until](event.to) && concerns(event.job);
    case 'edited':
      return concerns(event.job);
    case 'retired':
      return event.jobs.some(concerns);
    case 'materialized':
    case 'cluster-edited':
      return clusters.has(event.cluster);
    case 'submitted':
    case 'routed':
    case 'candidate':
    case 'notice':
      return false;
  }
}
