import type { QueueEvent } from '../job/events.ts';
import { formatJobId, type JobId } from '../job/ids.ts';
import { isEnd, LIFE, type State } from '../job/life.ts';
import type { EventEntry, Queue } from '../queue/api.ts';
import { selectJobs } from './select.ts';
import type { WaitRequest } from './types.ts';

const REACHED: Readonly<Record<NonNullable<WaitRequest['until']>, (state: State) => boolean>> = {
  end: isEnd,
  settled: (state) => isEnd(state) || LIFE[state].shows === 'held',
  start: (state) => isEnd(state) || !['idle', 'preparing', 'prepared', 'committed', 'unknown'].includes(state),
};

/** Waits for events, never in a loop of queries; false when the time ran out or the signal came first. */
export async function wait(queue: Queue, request: WaitRequest): Promise<boolean> {
  const stop = new AbortController();
  const timer = request.timeoutMs === undefined ? undefined : setTimeout(() => stop.abort(), request.timeoutMs);
  request.signal?.addEventListener('abort', () => stop.abort());
  if (request.signal?.aborted) stop.abort();
  const events = queue.subscribe({ signal: stop.signal })[Symbol.asyncIterator]();
  try {
    // Reading begins before the look at the queue, so that nothing falls between.
    let coming = events.next();
    const open = await stillOpen(queue, request);
    while (open.size > 0) {
      const entry: IteratorResult<EventEntry> = await coming;
      if (entry.done) return false;
      note(entry.value.event, request, open);
      coming = events.next();
    }
    stop.abort();
    await coming;
    return true;
  } finally {
    clearTimeout(timer);
    stop.abort();
  }
}

async function stillOpen(queue: Queue, request: WaitRequest): Promise<Set<string>> {
  const reached = REACHED[request.until ?? 'end'];
  const open = new Set<string>();
  for await (const job of selectJobs(queue, request)) if (!reached(job.state)) open.add(formatJobId(job.id));
  for (const waiting of await queue.unmaterialized()) {
    if (request.clusters?.includes(waiting.cluster)) open.add(moreOf(waiting.cluster));
  }
  return open;
}

function note(event: QueueEvent, request: WaitRequest, open: Set<string>): void {
  const reached = REACHED[request.until ?? 'end'];
  if (event.type === 'transition') {
    if (reached(event.to)) open.delete(event.job);
    else if (open.has(event.job) || belongs(event.job, request)) open.add(event.job);
  } else if (event.type === 'materialized' && request.clusters?.includes(event.cluster)) {
    for (const [from, to] of event.procs) for (let proc = from; proc < to; proc++) open.add(`${event.cluster}.${proc}`);
    if (event.done) open.delete(moreOf(event.cluster));
  } else if (event.type === 'retired') for (const job of event.jobs) open.delete(job);
}

/** A job that was reached and goes back (a release after a hold) is waited for again. */
function belongs(job: string, request: WaitRequest): boolean {
  if (request.constraint !== undefined || request.owner !== undefined) return false;
  const cluster = Number(job.split('.')[0]);
  return (
    request.clusters?.includes(cluster) === true || request.ids?.some((id: JobId) => formatJobId(id) === job) === true
  );
}

function moreOf(cluster: number): string {
  return `${cluster}.*`;
}
