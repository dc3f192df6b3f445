import type { QueueEvent } from '../job/events.ts';
import { isEnd, LIFE } from '../job/life.ts';
import type { EventEntry, Queue } from '../queue/api.ts';

/** Where to begin and how to end; see `Gryphus.events()`. */
export interface EventsRequest {
  /** Start after this cursor of an earlier event. Default: only new events. */
  readonly from?: string;
  /** Ends the iteration cleanly. */
  readonly signal?: AbortSignal;
}

/** One change of the queue. `cursor` names its place: `events({ from: cursor })` continues behind it. */
export type EventWithCursor = QueueEvent & { readonly cursor: string };

/**
 * Every change of the queue from this call on (not from the first `next()`) until `signal`; waits while Redis is down.
 */
export function eventsOf(
  queue: Queue,
  { from, signal }: { readonly from?: string | undefined; readonly signal: AbortSignal },
): AsyncGenerator<EventWithCursor> {
  const entries = queue.subscribe({ ...(from === undefined ? {} : { from }), signal })[Symbol.asyncIterator]();
  const first = entries.next();
  // The consumer of the iterator gets this error too.
  first.catch(() => undefined);
  return follow(entries, first);
}

async function* follow(
  entries: AsyncIterator<EventEntry>,
  first: Promise<IteratorResult<EventEntry>>,
): AsyncGenerator<EventWithCursor> {
  try {
    for (let one = await first; !one.done; one = await entries.next()) {
      const { id, event } = one.value;
      yield { ...event, cursor: id };
    }
  } finally {
    await entries.return?.();
  }
}

const WANTED = { terminated: isTermination, problem: isProblem } as const;

/** Calls back for each event of this kind until `signal`. */
export function callBack(
  queue: Queue,
  what: keyof typeof WANTED,
  call: (event: QueueEvent) => void,
  signal: AbortSignal,
): void {
  const wanted = WANTED[what];
  void (async () => {
    for await (const event of eventsOf(queue, { signal })) if (wanted(event)) call(event);
  })().catch((thrown: unknown) => {
    // Nothing awaits this promise, so the error must be made visible.
    queueMicrotask(() => {
      throw thrown;
    });
  });
}

function isTermination(event: QueueEvent): boolean {
  return event.type === 'transition' && isEnd(event.to);
}

function isProblem(event: QueueEvent): boolean {
  if (event.type === 'notice')
    return ['site-down', 'site-needs-login', 'credential-expired', 'manager-failed', 'fault'].includes(event.about);
  return event.type === 'transition' && LIFE[event.to].shows === 'held' && LIFE[event.from].shows !== 'held';
}
