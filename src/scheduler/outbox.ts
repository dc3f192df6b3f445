import * as z from 'zod';
import type { Settings } from '../config/settings.ts';
import { asError, GryphusError } from '../errors.ts';
import { formatJobId, parseJobId } from '../job/ids.ts';
import { LIFE } from '../job/life.ts';
import { sendMail } from '../notify/mail.ts';
import { MESSAGE } from '../notify/messages.ts';
import { type Limits, type Pending, post } from '../notify/rate.ts';
import type { Queue, Work } from '../queue/api.ts';
import type { WorkDone } from '../queue/work-types.ts';
import { SENT_MAIL, UNSENT_MAIL, WAITING_MAIL, WHOLE } from '../queue/tables.ts';
import { mailRoute, mailSender } from '../notify/mail-route.ts';

/** Between two tries to send a mail: half of its age, within these bounds; milliseconds. */
const FIRST_PAUSE_MS = 5_000;
const LONGEST_PAUSE_MS = 3_600_000;
/** A mail that could not be sent for so long is given up, milliseconds. */
const GIVEN_UP_MS = 7 * 86_400_000;
const PER_HOUR = 12;

export interface OutboxOptions {
  readonly queue: Queue;
  readonly settings: Settings;
  readonly log: (message: string, facts?: object) => void;
}

/** `at`: when it was to be sent first, Unix milliseconds. Mails of older builds lack it, and are tried twelve times. */
const MAIL = z.object({ to: z.string(), message: MESSAGE, at: z.number().optional() });

/** Outgoing mail: kept in the queue until sent, never sent twice, and combined if there is much of it (`post`). */
export class Outbox {
  readonly #options: OutboxOptions;
  readonly #work: Work;

  private constructor(options: OutboxOptions) {
    this.#options = options;
    this.#work = options.queue.work('mail');
  }

  /** Starts sending pending mail. */
  static async open(options: OutboxOptions): Promise<Outbox> {
    const outbox = new Outbox(options);
    await outbox.#work.run(
      { post: () => outbox.#post(), send: ({ data }) => outbox.#send(MAIL.parse(data)) },
      {
        concurrency: 1,
        onFailed: (item, error) => options.log('mail abandoned', { id: item.id, error: error.message }),
      },
    );
    await outbox.#work.add('post', 'all', null);
    return outbox;
  }

  async put(pending: readonly Pending[]): Promise<void> {
    if (pending.length === 0) return;
    const { kv } = this.#options.queue;
    for (const one of pending) await WAITING_MAIL.set(kv, `${one.to} ${one.message.key}`, one);
    await this.#work.wake('post', 'all', null);
  }

  /** Decides which mails are sent now, records that, and queues them. */
  async #post(): Promise<{ againInMs: number } | undefined> {
    const { kv } = this.#options.queue;
    const all = await WAITING_MAIL.list(kv);
    const waiting = await this.#stillTrue(all.map(({ value }) => value));
    const history = (await SENT_MAIL.get(kv, WHOLE)) ?? [];
    const now = Math.floor(Date.now() / 1000);
    const limits: Limits = { digestSeconds: this.#options.settings['notify.digest'], perHour: PER_HOUR };
    const due = post(waiting, history, now, limits);
    await SENT_MAIL.set(kv, WHOLE, due.sent);
    for (const mail of due.mails) {
      await this.#work.add('send', `${mail.to} ${mail.keys[0]}`, {
        to: mail.to,
        message: { ...mail.message },
        at: Date.now(),
      });
    }
    const left = new Set(due.waiting.map((one) => `${one.to} ${one.message.key}`));
    for (const { key } of all) if (!left.has(key)) await WAITING_MAIL.delete(kv, key);
    return due.wakeAt === undefined ? undefined : { againInMs: Math.max(1, due.wakeAt - now) * 1000 };
  }

  /** Without holds that are over: the job was released or removed, or is held for another reason by now. */
  async #stillTrue(all: readonly Pending[]): Promise<readonly Pending[]> {
    const latest = new Map<string, Pending>();
    for (const one of all) {
      const { held } = one.message;
      const other = held === undefined ? undefined : latest.get(held);
      if (held !== undefined && (!other || one.since >= other.since)) latest.set(held, one);
    }
    const ids = [...latest.keys()].flatMap((name) => parseJobId(name) ?? []);
    const jobs = ids.length === 0 ? [] : await this.#options.queue.get(ids);
    const held = new Set(jobs.flatMap(({ id, state }) => (LIFE[state].shows === 'held' ? [formatJobId(id)] : [])));
    return all.filter((one) => {
      const job = one.message.held;
      return job === undefined || (held.has(job) && latest.get(job) === one);
    });
  }

  async #send({ to, message, at }: z.infer<typeof MAIL>): Promise<WorkDone> {
    const { queue, settings, log } = this.#options;
    try {
      await sendMail(mailRoute(settings), mailSender(settings), [to], message);
    } catch (thrown) {
      const error = asError(thrown);
      const age = at === undefined ? 0 : Date.now() - at;
      const lost = (error instanceof GryphusError && error.retry === 'never') || age > GIVEN_UP_MS;
      log(lost ? 'mail abandoned' : 'mail not sent', { to, error: error.message });
      await this.#failed(error.message, lost);
      if (lost) return undefined;
      if (at === undefined) throw error;
      return { againInMs: Math.min(LONGEST_PAUSE_MS, Math.max(FIRST_PAUSE_MS, age / 2)) };
    }
    await UNSENT_MAIL.delete(queue.kv, WHOLE);
    return undefined;
  }

  /** Publishes it for `status`. */
  async #failed(error: string, lost: boolean): Promise<void> {
    const { kv } = this.#options.queue;
    const now = Date.now();
    const before = await UNSENT_MAIL.get(kv, WHOLE);
    await UNSENT_MAIL.set(kv, WHOLE, {
      since: before?.since ?? now,
      at: now,
      error,
      lost: lost || before?.lost === true,
    });
  }
}
