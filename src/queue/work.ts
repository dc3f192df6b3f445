import type { Job, Queue as BullQueue, Worker as BullWorker } from 'bullmq';
import * as z from 'zod';
import { GryphusError } from '../errors.ts';
import type { Json } from '../job/events.ts';
import type { Work, WorkDone, WorkerOptions, WorkHandler, WorkItem, WorkOptions, WorkRunner } from './work-types.ts';
import type { Connection } from './redis.ts';

/**
 * Items of a killed worker are delivered again when their locks have ended and that is looked for; nobody else's items are left to a
 * `fresh` worker, which is the only one. Half of `renewMs` is how often such a process wakes for that alone. Milliseconds.
 */
const SHARED = { lockMs: 10_000, renewMs: 5000, lookMs: 15_000 } as const;
const FRESH = { lockMs: 30_000, renewMs: 16_000, lookMs: 30_000 } as const;
/** A worker without items asks for some after so many seconds, should a signal that there are some have been lost. */
const IDLE_SECONDS = 60;

const DELIVERED = z.object({ id: z.string(), data: z.custom<Json>((value) => value !== undefined) });

interface Item {
  readonly data: Json;
  readonly options: WorkOptions;
}

/** At-least-once delivery of items named by kind and id, implemented with BullMQ. */
export class WorkQueue implements Work {
  readonly #db: Connection;
  readonly #name: string;
  readonly #onClose: () => void;
  /**
   * The requested items. A run clears its item's request when it begins, so a request found at its end was made in the
   * meantime. What is not begun is in Redis as well.
   */
  readonly #wished = new Map<string, Item>();
  /** The items whose handlers run. */
  readonly #running = new Set<string>();
  readonly #workers = new Set<BullWorker>();
  #queue: Promise<BullQueue> | undefined;

  constructor(db: Connection, name: string, onClose: () => void) {
    this.#db = db;
    this.#name = encodeURIComponent(name);
    this.#onClose = onClose;
  }

  async add(kind: string, id: string, data: Json, options: WorkOptions = {}): Promise<void> {
    await this.#wish(kind, id, { data, options });
  }

  async wake(kind: string, id: string, data: Json, options: WorkOptions = {}): Promise<void> {
    const { delayMs: _, ...now } = options;
    if (!(await this.#wish(kind, id, { data, options: now }))) return;
    const queue = await this.#open();
    // An item that is waiting, running or gone cannot be promoted, and need not be.
    await this.#db.run(async () => (await queue.getJob(jobId(kind, id)))?.promote().catch(() => undefined));
  }

  async remove(kind: string, id: string): Promise<void> {
    this.#wished.delete(jobId(kind, id));
    const queue = await this.#open();
    await this.#db.run(async () => queue.remove(jobId(kind, id)));
  }

  async run(handlers: Readonly<Record<string, WorkHandler>>, options: WorkerOptions = {}): Promise<WorkRunner> {
    const bull = await import('bullmq');
    const queue = await this.#open();
    const { lockMs, renewMs, lookMs } = options.fresh ? FRESH : SHARED;
    if (options.fresh) {
      this.#wished.clear();
      await this.#db.run(async () => queue.obliterate({ force: true }));
    }
    const worker = new bull.Worker(
      this.#name,
      async (job: Job, token?: string) => {
        const later = await this.#work(handlers, job, bull.UnrecoverableError);
        if (!later) return;
        await job.moveToDelayed(Date.now() + later.againInMs, token);
        // A request made before the move found no delayed item to promote.
        if (this.#wished.has(String(job.id))) await job.promote().catch(() => undefined);
        throw new bull.DelayedError();
      },
      {
        ...this.#bullOptions(),
        concurrency: options.concurrency ?? 1,
        lockDuration: lockMs,
        lockRenewTime: renewMs,
        stalledInterval: lookMs,
        drainDelay: IDLE_SECONDS,
        maxStalledCount: 1_000_000,
      },
    );
    // Connections recover by themselves; interrupted work is done again.
    worker.on('error', () => undefined);
    worker.on('completed', (job) => void this.#again(job).catch(() => undefined));
    worker.on('failed', (job, error) => {
      if (!job?.finishedOn) return;
      options.onFailed?.(itemOf(job), error.cause instanceof Error ? error.cause : error);
      void this.#again(job).catch(() => undefined);
    });
    this.#workers.add(worker);
    await this.#db.unlessAway(worker.waitUntilReady());
    return {
      close: async () => {
        this.#workers.delete(worker);
        await this.#ended(worker.close());
      },
    };
  }

  async close(): Promise<void> {
    this.#onClose();
    await Promise.all([...this.#workers].map((worker) => this.#ended(worker.close())));
    this.#workers.clear();
    const queue = await this.#queue;
    if (queue) await this.#ended(queue.close());
    this.#queue = undefined;
  }

  /** BullMQ's orderly end asks the server, and waits for one that is away. */
  async #ended(closing: Promise<unknown>): Promise<void> {
    await this.#db.unlessAway(closing).catch(() => undefined);
  }

  async #work(
    handlers: Readonly<Record<string, WorkHandler>>,
    job: Job,
    Unrecoverable: new (message: string) => Error,
  ): Promise<WorkDone> {
    const item = itemOf(job);
    const name = String(job.id);
    this.#wished.delete(name);
    const handler = handlers[item.kind];
    if (!handler) throw new Unrecoverable(`There is no handler for work of the kind ${item.kind}.`);
    this.#running.add(name);
    try {
      return await handler(item);
    } catch (thrown) {
      if (!(thrown instanceof GryphusError && thrown.retry === 'never')) throw thrown;
      throw Object.assign(new Unrecoverable(thrown.message), { cause: thrown });
    } finally {
      this.#running.delete(name);
    }
  }

  /** If the item was requested while it ran, adds it again, now that its name is free. */
  async #again(job: Job): Promise<void> {
    const wished = this.#wished.get(String(job.id));
    if (wished) await this.#add(job.name, itemOf(job).id, wished);
  }

  /** Returns false if a run of the item has begun, whose end sees the request. */
  async #wish(kind: string, id: string, item: Item): Promise<boolean> {
    const name = jobId(kind, id);
    this.#wished.set(name, item);
    if (this.#running.has(name)) return false;
    await this.#add(kind, id, item);
    return true;
  }

  async #add(kind: string, id: string, { data, options }: Item): Promise<void> {
    const queue = await this.#open();
    await this.#db.run(async () =>
      queue.add(
        kind,
        { id, data },
        {
          jobId: jobId(kind, id),
          removeOnComplete: true,
          removeOnFail: true,
          attempts: options.attempts ?? 1,
          backoff: { type: 'exponential', delay: options.backoffMs ?? 1000 },
          ...(options.delayMs !== undefined && { delay: options.delayMs }),
        },
      ),
    );
  }

  #open(): Promise<BullQueue> {
    this.#queue ??= import('bullmq').then(({ Queue }) => {
      const queue = new Queue(this.#name, this.#bullOptions());
      queue.on('error', () => undefined);
      return queue;
    });
    return this.#queue;
  }

  #bullOptions() {
    // What is too old was refused before (redis-fit.ts).
    return { connection: { ...this.#db.bullOptions() }, prefix: bullPrefix(this.#db), skipVersionCheck: true };
  }
}

/** Deletes all work items, as if all of BullMQ's keys had been lost. */
export async function forgetAllWork(db: Connection): Promise<void> {
  let at = '0';
  do {
    const [next, keys] = await db.run((redis) => redis.scan(at, 'MATCH', `${bullPrefix(db)}:*`, 'COUNT', 1000));
    if (keys.length > 0) await db.run((redis) => redis.unlink(...keys));
    at = next;
  } while (at !== '0');
}

function bullPrefix(db: Connection): string {
  return `${db.prefix}bull`;
}

/** BullMQ's ids must not contain a colon or be a number. */
function jobId(kind: string, id: string): string {
  return `${encodeURIComponent(kind)}/${encodeURIComponent(id)}`;
}

function itemOf(job: Job): WorkItem {
  const { id, data } = DELIVERED.parse(job.data);
  return { kind: job.name, id, data, attempt: job.attemptsMade + 1 };
}
