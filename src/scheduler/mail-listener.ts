import type { Settings } from '../config/settings.ts';
import type { Notice, Transitioned } from '../job/events.ts';
import { formatJobId, parseJobId } from '../job/ids.ts';
import { isEnd } from '../job/life.ts';
import { readNumber, readString } from '../job/values.ts';
import { jobEnded, jobHeld, type Message, siteProblem } from '../notify/messages.ts';
import type { Pending } from '../notify/rate.ts';
import type { EventEntry, JobRecord, Queue } from '../queue/api.ts';
import type { Alarms } from './alarms.ts';
import type { Listener } from './listener.ts';
import type { Outbox } from './outbox.ts';

/** HTCondor's JobNotification. */
const NOTIFY = { never: 0, always: 1, complete: 2, error: 3 } as const;

export interface MailOptions {
  readonly queue: Pick<Queue, 'get'>;
  readonly settings: Settings;
  readonly outbox: Pick<Outbox, 'put'>;
  readonly alarms: Pick<Alarms, 'raise'>;
}

/**
 * Turns events into mail, as the job's `notification` requests, and into alarms for sites that need a person to act.
 */
export class MailListener implements Listener {
  readonly #options: MailOptions;

  constructor(options: MailOptions) {
    this.#options = options;
  }

  async hear(entries: readonly EventEntry[]): Promise<void> {
    const pending: Pending[] = [];
    const jobs = await this.#jobs(entries);
    for (const { event } of entries) {
      if (event.type === 'transition') {
        const job = jobs.get(event.job);
        const message = job && jobMessage(event, job, this.#tellsProblems());
        const to = job && this.#recipient(job);
        if (message && to) pending.push({ to, message, since: Math.floor(event.at / 1000) });
      } else if (event.type === 'notice') {
        const message = noticeMessage(event);
        if (message) await this.#options.alarms.raise(message, Math.floor(event.at / 1000));
      }
    }
    await this.#options.outbox.put(pending);
  }

  async #jobs(entries: readonly EventEntry[]): Promise<ReadonlyMap<string, JobRecord>> {
    const names = new Set(
      entries.flatMap(({ event }) => (event.type === 'transition' && tellsOf(event) ? [event.job] : [])),
    );
    const ids = [...names].flatMap((name) => parseJobId(name) ?? []);
    const jobs = ids.length === 0 ? [] : await this.#options.queue.get(ids);
    return new Map(jobs.map((job) => [formatJobId(job.id), job]));
  }

  /** Whether to mail about problems of jobs without `notification`: if enabled, and once an address is configured. */
  #tellsProblems(): boolean {
    return this.#options.settings['notify.problems'] && this.#options.settings['notify.email'] !== undefined;
  }

  #recipient(job: JobRecord): string | undefined {
    return readString(job.attrs, 'NotifyUser') ?? this.#options.settings['notify.email'];
  }
}

function tellsOf(event: Transitioned): boolean {
  return isEnd(event.to)
    ? event.to === 'completed'
    : event.event === 'stop' || event.event === 'refused' || event.event === 'keep' || event.event === 'hold';
}

function jobMessage(event: Transitioned, job: JobRecord, tellsProblems: boolean): Message | undefined {
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
    // A user who held the job knows about it; a hold by the job's own policy would go unnoticed.
    if (event.event === 'hold' && event.info?.['by'] !== 'policy') return undefined;
    if (wants === NOTIFY.complete || (wants === NOTIFY.never && !tellsProblems)) return undefined;
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
    attributes: wanted(job),
    cpuSeconds: (readNumber(job.attrs, 'RemoteUserCpu') ?? 0) + (readNumber(job.attrs, 'RemoteSysCpu') ?? 0),
  });
}

function wanted({ attrs }: JobRecord): (readonly [name: string, text: string])[] {
  const names = (readString(attrs, 'EmailAttributes') ?? '').split(/[\s,]+/).filter((name) => name !== '');
  return names.map((name) => [name, attrs.get(name) ?? 'undefined'] as const);
}

/**
 * Sites that need a person to act. One that is merely unreachable is retried and shown in `gryphus status`, not mailed.
 */
function noticeMessage(event: Notice): Message | undefined {
  if (event.about !== 'site-needs-login' || event.site === undefined) return undefined;
  const { site } = event;
  return siteProblem({
    site,
    since: Math.floor(event.at / 1000),
    message: event.message,
    jobs: typeof event.info?.['jobs'] === 'number' ? event.info['jobs'] : 0,
    suggestions: [`gryphus site login ${site}`],
  });
}
