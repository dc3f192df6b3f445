import type { CredentialAction } from '../credentials/watch/model.ts';
import { holdAttributes, released } from '../job/hold.ts';
import type { NoticeKind } from '../job/events.ts';
import type { JobId } from '../job/ids.ts';
import { quoted, readNumber } from '../job/values.ts';
import { credentialNews } from '../notify/messages.ts';
import type { Change, JobRecord, Queue } from '../queue/api.ts';
import type { Alarms } from './alarms.ts';
import { HOLDABLE, isHeldByUs, RELEASABLE } from '../credentials/inventory/inventory.ts';

export interface ActionOptions {
  readonly queue: Pick<Queue, 'get' | 'transitionMany' | 'notice'>;
  readonly alarms: Pick<Alarms, 'raise'>;
}

/** Jobs that are read and changed at once. */
const AT_ONCE = 500;
const ABOUT: Readonly<Record<'ending' | 'ended' | 'broken' | 'fresh' | 'renewal-failing', NoticeKind>> = {
  ending: 'credential-expiring',
  'renewal-failing': 'credential-expiring',
  ended: 'credential-expired',
  broken: 'credential-expired',
  fresh: 'credential-renewed',
};

/** Performs the actions that a look decided on, except renewals. Each action may be repeated safely. */
export async function perform(
  options: ActionOptions,
  action: Exclude<CredentialAction, { do: 'renew' }>,
): Promise<void> {
  switch (action.do) {
    case 'alarm': {
      const message = credentialNews(action.news);
      await options.alarms.raise(message, action.news.now);
      await options.queue.notice({ about: ABOUT[action.news.news], message: message.subject, info: BY_WATCH });
      return;
    }
    case 'hold':
      return changeAll(options.queue, action.jobs, (job) => holdChange(job, action));
    case 'release':
      return changeAll(options.queue, action.jobs, (job) => releaseChange(job, action.reason));
    case 'refresh':
      await tellFresh(
        options.queue,
        action.site,
        `'${action.credential}' was renewed: its copy at ${action.site} is replaced.`,
      );
  }
}

/** Tells the GridManagers of one site, or of all, that a credential was renewed. */
export async function tellFresh(
  queue: Pick<Queue, 'notice'>,
  site: string | undefined,
  message: string,
): Promise<void> {
  await queue.notice({ about: 'credential-renewed', ...(site === undefined ? {} : { site }), message, info: BY_WATCH });
}

/** The watch ignores its own notices. */
export const BY_WATCH = { by: 'watch' } as const;

async function changeAll(
  queue: ActionOptions['queue'],
  ids: readonly JobId[],
  change: (job: JobRecord) => Change | undefined,
): Promise<void> {
  for (let from = 0; from < ids.length; from += AT_ONCE) {
    const jobs = await queue.get(ids.slice(from, from + AT_ONCE));
    const changes = jobs.flatMap((job) => change(job) ?? []);
    if (changes.length > 0) await queue.transitionMany(changes);
  }
}

function holdChange(job: JobRecord, action: CredentialAction & { do: 'hold' }): Change | undefined {
  if (!HOLDABLE.includes(job.state)) return undefined;
  return {
    id: job.id,
    event: 'hold',
    from: HOLDABLE,
    set: {
      ...holdAttributes(action.reason, action.code, action.subCode),
      NumHolds: String((readNumber(job.attrs, 'NumHolds') ?? 0) + 1),
    },
  };
}

function releaseChange(job: JobRecord, reason: string): Change | undefined {
  if (!RELEASABLE.includes(job.state) || !isHeldByUs(job.attrs)) return undefined;
  return {
    id: job.id,
    event: 'release',
    from: job.state,
    set: {
      ...released(job),
      ReleaseReason: quoted(reason),
    },
  };
}
