import type { QueueEvent } from '../job/events.ts';
import { isEnd, LIFE } from '../job/life.ts';
import type { EventEntry, Queue } from '../queue/api.ts';

export interface EventsRequest {
  /** The cursor of an earlier event: begin behind it. Default: what comes from now on. */
  readonly from?: string;
  /** Ends the events, in order: the iteration is over. */
  readonly signal?: AbortSignal;
}

export type EventWithCursor = QueueEvent & { readonly cursor: string };

/** Every change of the queue from this call on (not from the first `next()`), until `signal`; a Redis that is away is waited for. */
export function eventsOf(
  queue: Queue,
  { from, signal }: { readonly from?: string | undefined; readonly signal: AbortSignal },
): AsyncGenerator<EventWithCursor> {
  const entries = queue.subscribe({ ...(from === undefined ? {} : { from }), signal })[Symbol.asyncIterator]();
  const first = entries.next();
  // Whoever reads on is told of it.
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

/** Calls back for each event of the kind, until `signal`. */
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
    // Nobody awaits this: what ended the calls must not pass in silence.
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
