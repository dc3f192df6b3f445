import { hostname } from 'node:os';
import { z } from 'zod';
import type { Settings } from '../config/settings.ts';
import { asError, GryphusError } from '../errors.ts';
import type { Notice, Transitioned } from '../job/events.ts';
import { formatJobId, parseJobId } from '../job/ids.ts';
import { isEnd } from '../job/life.ts';
import { readNumber, readString } from '../job/values.ts';
import { type MailRoute, sendMail } from '../notify/mail.ts';
import { jobEnded, jobHeld, type Message, siteProblem } from '../notify/messages.ts';
import { type Limits, type Pending, post, type Sent } from '../notify/rate.ts';
import type { EventEntry, JobRecord, Queue, Work } from '../queue/api.ts';
import type { Listener } from './listener.ts';

/** HTCondor's JobNotification. */
const NOTIFY = { never: 0, always: 1, complete: 2, error: 3 } as const;
const TRIES = 12;
const BACK_OFF_MS = 5_000;

export interface MailOptions {
  readonly queue: Queue;
  readonly settings: Settings;
  readonly log: (message: string, facts?: object) => void;
}

/** Turns events into mail: what the job's `notification` asks for, and problems once an address is configured. */
export class MailListener implements Listener {
  readonly #options: MailOptions;
  readonly #work: Work;

  private constructor(options: MailOptions) {
    this.#options = options;
    this.#work = options.queue.work('mail');
  }

  /** Begins to send what waits. */
  static async open(options: MailOptions): Promise<MailListener> {
    const listener = new MailListener(options);
    await listener.#work.run(
      { post: () => listener.#post(), send: ({ data }) => listener.#send(MAIL.parse(data)) },
      {
        concurrency: 1,
        onFailed: (item, error) => options.log('mail given up', { id: item.id, error: error.message }),
      },
    );
    await listener.#work.add('post', 'all', null);
    return listener;
  }

  async hear(entries: readonly EventEntry[]): Promise<void> {
    const pending: Pending[] = [];
    const jobs = await this.#jobs(entries);
    for (const { event } of entries) {
      if (event.type === 'transition') {
        const job = jobs.get(event.job);
        const message = job && jobMessage(event, job);
        const to = job && this.#recipient(job);
        if (message && to) pending.push({ to, message, since: Math.floor(event.at / 1000) });
      } else if (event.type === 'notice') {
        const message = this.#options.settings['notify.problems'] ? noticeMessage(event) : undefined;
        const to = this.#options.settings['notify.email'];
        if (message && to) pending.push({ to, message, since: Math.floor(event.at / 1000) });
      }
    }
    if (pending.length === 0) return;
    const { kv } = this.#options.queue;
    for (const one of pending) await kv.set('mail-waiting', `${one.to} ${one.message.key}`, JSON.stringify(one));
    await this.#work.wake('post', 'all', null);
  }

  async #jobs(entries: readonly EventEntry[]): Promise<ReadonlyMap<string, JobRecord>> {
    const names = new Set(
      entries.flatMap(({ event }) => (event.type === 'transition' && tellsOf(event) ? [event.job] : [])),
    );
    const ids = [...names].flatMap((name) => parseJobId(name) ?? []);
    const jobs = ids.length === 0 ? [] : await this.#options.queue.get(ids);
    return new Map(jobs.map((job) => [formatJobId(job.id), job]));
  }

  #recipient(job: JobRecord): string | undefined {
    return readString(job.attrs, 'NotifyUser') ?? this.#options.settings['notify.email'];
  }

  /** Decides which mails go now, writes that down, and hands them to be sent. */
  async #post(): Promise<{ againInMs: number } | undefined> {
    const { kv } = this.#options.queue;
    const waiting = await kv.list('mail-waiting');
    const history = z.array(SENT).parse(JSON.parse((await kv.get('mail', 'sent'))?.value ?? '[]'));
    const now = Math.floor(Date.now() / 1000);
    const limits: Limits = { digestSeconds: this.#options.settings['notify.digest'], perHour: 12 };
    const due = post(
      waiting.map(({ value }) => JSON.parse(value) as Pending),
      history as Sent[],
      now,
      limits,
    );
    await kv.set('mail', 'sent', JSON.stringify(due.sent));
    for (const mail of due.mails) {
      await this.#work.add(
        'send',
        `${mail.to} ${mail.keys[0]}`,
        { to: mail.to, message: { ...mail.message } },
        { attempts: TRIES, backoffMs: BACK_OFF_MS },
      );
    }
    const left = new Set(due.waiting.map((one) => `${one.to} ${one.message.key}`));
    for (const { key } of waiting) if (!left.has(key)) await kv.delete('mail-waiting', key);
    return due.wakeAt === undefined ? undefined : { againInMs: Math.max(1, due.wakeAt - now) * 1000 };
  }

  async #send({ to, message }: z.infer<typeof MAIL>): Promise<undefined> {
    const { settings } = this.#options;
    try {
      await sendMail(mailRoute(settings), settings['notify.from'] ?? `gryphus@${hostname()}`, [to], message);
    } catch (thrown) {
      const error = asError(thrown);
      this.#options.log('mail not sent', { to, error: error.message });
      if (error instanceof GryphusError && error.retry === 'never') return undefined;
      throw error;
    }
    return undefined;
  }
}

const MESSAGE = z.object({
  key: z.string(),
  kind: z.enum(['job', 'problem', 'credential', 'test']),
  urgent: z.boolean(),
  subject: z.string(),
  body: z.string(),
});
const MAIL = z.object({ to: z.string(), message: MESSAGE });
const SENT = z.object({ to: z.string(), at: z.number(), keys: z.array(z.string()) });

export function mailRoute(settings: Settings): MailRoute {
  if (settings['notify.method'] === 'sendmail') return { method: 'sendmail', path: settings['notify.sendmail'] };
  const host = settings['notify.smtp.host'];
  if (host === undefined) {
    throw new GryphusError('bad-config', 'notify.method is smtp, but notify.smtp.host is not set.', {
      suggestions: ['Type `gryphus config set notify.smtp.host HOST`.'],
    });
  }
  const user = settings['notify.smtp.user'];
  const file = settings['notify.smtp.password_file'];
  return {
    method: 'smtp',
    host,
    port: settings['notify.smtp.port'],
    security: settings['notify.smtp.security'],
    ...(user === undefined ? {} : { user }),
    ...(file === undefined ? {} : { password: { file } }),
  };
}

function tellsOf(event: Transitioned): boolean {
  return isEnd(event.to)
    ? event.to === 'completed'
    : event.event === 'stop' || event.event === 'refused' || event.event === 'keep' || event.event === 'hold';
}

function jobMessage(event: Transitioned, job: JobRecord): Message | undefined {
  if (!tellsOf(event)) return undefined;
  const wants = readNumber(job.attrs, 'JobNotification') ?? NOTIFY.never;
  const command = [
    readString(job.attrs, 'Cmd') ?? '',
    readString(job.attrs, 'Args') ?? readString(job.attrs, 'Arguments') ?? '',
  ]
    .join(' ')
    .trim();
  const at = Math.floor(event.at / 1000);
  if (event.to !== 'completed') {
    if (wants === NOTIFY.never || wants === NOTIFY.complete || event.event === 'hold') return undefined;
    const reason = readString(job.attrs, 'HoldReason') ?? '';
    return jobHeld({
      id: job.id,
      since: at,
      command,
      reason,
      code: readNumber(job.attrs, 'HoldReasonCode') ?? 0,
      suggestions: [],
    });
  }
  const signal = readNumber(job.attrs, 'ExitSignal');
  const code = readNumber(job.attrs, 'ExitCode') ?? 0;
  const failed = signal !== undefined || code !== (readNumber(job.attrs, 'JobSuccessExitCode') ?? 0);
  if (wants === NOTIFY.never || (wants === NOTIFY.error && !failed)) return undefined;
  const startedAt = readNumber(job.attrs, 'JobCurrentStartDate');
  return jobEnded({
    id: job.id,
    attempt: job.attempt,
    command,
    site: job.site,
    how: signal === undefined ? { kind: 'exited', code } : { kind: 'signaled', signal },
    submittedAt: readNumber(job.attrs, 'QDate') ?? at,
    ...(startedAt === undefined ? {} : { startedAt }),
    endedAt: at,
    cpuSeconds: (readNumber(job.attrs, 'RemoteUserCpu') ?? 0) + (readNumber(job.attrs, 'RemoteSysCpu') ?? 0),
  });
}

/** Sites that need a person; one that is merely away is probed and said in `gryphus status`, not mailed. */
function noticeMessage(event: Notice): Message | undefined {
  if (event.about !== 'site-needs-login' || event.site === undefined) return undefined;
  const { site } = event;
  return siteProblem({
    site,
    since: Math.floor(event.at / 1000),
    words: event.message,
    jobs: typeof event.info?.['jobs'] === 'number' ? event.info['jobs'] : 0,
    suggestions: [`gryphus site login ${site}`],
  });
}
