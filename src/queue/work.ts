import type { Job, Queue as BullQueue, Worker as BullWorker } from 'bullmq';
import * as z from 'zod';
import { GryphusError } from '../errors.ts';
import type { Json } from '../job/events.ts';
import { storedOr } from '../util/stored-json.ts';
import type { Work, WorkDone, WorkerOptions, WorkHandler, WorkItem, WorkOptions, WorkRunner } from './work-types.ts';
import type { Connection } from './redis.ts';

/** Items of a killed worker are delivered again after this time, milliseconds. */
const LOCK_MS = 10_000;
/** A worker without items asks for some after so many seconds, should a signal that there are some have been lost. */
const IDLE_SECONDS = 30;

const json = z.custom<Json>((value) => value !== undefined);
const ITEM = z.object({
  data: json,
  options: z.object({
    delayMs: z.exactOptional(z.number()),
    attempts: z.exactOptional(z.number()),
    backoffMs: z.exactOptional(z.number()),
  }),
});
type Item = z.infer<typeof ITEM>;
const DELIVERED = z.object({ id: z.string(), data: json });

/** At-least-once delivery of items named by kind and id, implemented with BullMQ. */
export class WorkQueue implements Work {
  readonly #db: Connection;
  readonly #name: string;
  readonly #onClose: () => void;
  /**
   * Key of the requested items. A run clears its item's request when it begins, so a request found at its end was made
   * in the meantime.
   */
  readonly #wished: string;
  readonly #workers = new Set<BullWorker>();
  #queue: Promise<BullQueue> | undefined;

  constructor(db: Connection, name: string, onClose: () => void) {
    this.#db = db;
    this.#name = encodeURIComponent(name);
    this.#wished = `${db.prefix}wished:${this.#name}`;
    this.#onClose = onClose;
  }

  async add(kind: string, id: string, data: Json, options: WorkOptions = {}): Promise<void> {
    await this.#wish(jobId(kind, id), { data, options });
    await this.#add(kind, id, { data, options });
  }

  async wake(kind: string, id: string, data: Json, options: WorkOptions = {}): Promise<void> {
    const { delayMs: _, ...now } = options;
    await this.#wish(jobId(kind, id), { data, options: now });
    await this.#add(kind, id, { data, options: now });
    const queue = await this.#open();
    // An item that is waiting, running or gone cannot be promoted, and need not be.
    await this.#db.run(async () => (await queue.getJob(jobId(kind, id)))?.promote().catch(() => undefined));
  }

  async remove(kind: string, id: string): Promise<void> {
    await this.#db.run((redis) => redis.hdel(this.#wished, jobId(kind, id)));
    const queue = await this.#open();
    await this.#db.run(async () => queue.remove(jobId(kind, id)));
  }

  async run(handlers: Readonly<Record<string, WorkHandler>>, options: WorkerOptions = {}): Promise<WorkRunner> {
    const bull = await import('bullmq');
    const queue = await this.#open();
    if (options.fresh) await this.#db.run(async () => queue.obliterate({ force: true }));
    const worker = new bull.Worker(
      this.#name,
      async (job: Job, token?: string) => {
        const later = await this.#work(handlers, job, bull.UnrecoverableError);
        if (!later) return;
        await job.moveToDelayed(Date.now() + later.againInMs, token);
        // A request made before the move found no delayed item to promote.
        if (await this.#wishOf(String(job.id))) await job.promote().catch(() => undefined);
        throw new bull.DelayedError();
      },
      {
        ...this.#bullOptions(),
        concurrency: options.concurrency ?? 1,
        lockDuration: LOCK_MS,
        // Nobody else's items are left to a worker that is the only one.
        stalledInterval: options.fresh ? 3 * LOCK_MS : LOCK_MS / 2,
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
    await this.#db.run((redis) => redis.hdel(this.#wished, String(job.id)));
    const handler = handlers[item.kind];
    if (!handler) throw new Unrecoverable(`There is no handler for work of the kind ${item.kind}.`);
    try {
      return await handler(item);
    } catch (thrown) {
      if (!(thrown instanceof GryphusError && thrown.retry === 'never')) throw thrown;
      throw Object.assign(new Unrecoverable(thrown.message), { cause: thrown });
    }
  }

  /** If the item was requested while it ran, adds it again, now that its name is free. */
  async #again(job: Job): Promise<void> {
    const wished = await this.#wishOf(String(job.id));
    if (wished) await this.#add(job.name, itemOf(job).id, wished);
  }

  async #wish(id: string, item: Item): Promise<void> {
    await this.#db.run((redis) => redis.hset(this.#wished, id, JSON.stringify(item)));
  }

  async #wishOf(id: string): Promise<Item | undefined> {
    const text = await this.#db.run((redis) => redis.hget(this.#wished, id));
    return text === null ? undefined : storedOr(ITEM, text);
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
  for (const pattern of [`${bullPrefix(db)}:*`, `${db.prefix}wished:*`]) {
    let at = '0';
    do {
      const [next, keys] = await db.run((redis) => redis.scan(at, 'MATCH', pattern, 'COUNT', 1000));
      if (keys.length > 0) await db.run((redis) => redis.unlink(...keys));
      at = next;
    } while (at !== '0');
  }
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
