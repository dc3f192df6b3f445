import { GryphusError } from '../errors.ts';
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

/** A place in the queue's stream of events, and one within an entry that has several. */
const CURSOR = /^\d{1,20}-\d{1,20}(?:\.\d{1,9})?$/;

/**
 * Every change of the queue from this call on (not from the first `next()`) until `signal`; waits while Redis is down.
 */
export function eventsOf(
  queue: Queue,
  { from, signal }: { readonly from?: string | undefined; readonly signal: AbortSignal },
): AsyncGenerator<EventWithCursor> {
  if (from !== undefined && !CURSOR.test(from)) {
    throw new GryphusError('bad-input', `${JSON.stringify(from)} is no cursor of an event.`, {
      suggestions: ['Give the `cursor` of an earlier event, or none for what comes from now on.'],
    });
  }
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
    for await (const event of eventsOf(queue, { signal })) {
      if (!wanted(event)) continue;
      try {
        call(event);
      } catch (thrown) {
        // The program's own; the next event is for the callback again.
        throwAlone(thrown);
      }
    }
  })().catch(throwAlone);
}

/** Nothing awaits the promise in which it was thrown, so the error must be made visible. */
function throwAlone(thrown: unknown): void {
  queueMicrotask(() => {
    throw thrown;
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
