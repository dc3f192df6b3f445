import { quoted, readNumber, readString, truthOf } from '../job/values.ts';
import { next } from '../job/life.ts';
import type { Change, JobRecord } from '../queue/api.ts';

const EXPRESSIONS = ['PeriodicRemove', 'PeriodicHold', 'PeriodicRelease'] as const;

/** A job with one of these is looked at from time to time. */
export function hasPeriodicPolicy(attrs: { get(name: string): string | undefined }): boolean {
  return EXPRESSIONS.some((name) => !/^(false|undefined)?$/i.test(attrs.get(name) ?? ''));
}

/**
 * What a job's periodic expressions ask for now, in HTCondor's order: a held job may be released, any other held; every
 * job removed (manual, "Periodic expressions"). Hold code 3: the user's own policy; 5: it is undefined.
 */
export function periodicChange(job: JobRecord): Change | undefined {
  const held = next(job.state, 'release') !== undefined;
  if (
    !held &&
    job.attrs.has('PeriodicHold') &&
    next(job.state, 'hold') &&
    truthOf(job.attrs, 'PeriodicHold') === true
  ) {
    return {
      id: job.id,
      event: 'hold',
      from: job.state,
      set: {
        HoldReason: quoted(because(job, 'PeriodicHold')),
        HoldReasonCode: '3',
        HoldReasonSubCode: String(readNumber(job.attrs, 'PeriodicHoldSubCode') ?? 0),
      },
    };
  }
  if (held && job.attrs.has('PeriodicRelease') && truthOf(job.attrs, 'PeriodicRelease') === true) {
    return {
      id: job.id,
      event: 'release',
      from: job.state,
      set: { ...RELEASED, ReleaseReason: quoted(because(job, 'PeriodicRelease')) },
    };
  }
  if (job.attrs.has('PeriodicRemove') && next(job.state, 'remove') && truthOf(job.attrs, 'PeriodicRemove') === true) {
    return {
      id: job.id,
      event: 'remove',
      from: job.state,
      set: { RemoveReason: quoted(because(job, 'PeriodicRemove')) },
    };
  }
  return undefined;
}

/** What a release takes away. */
export const RELEASED = { HoldReason: null, HoldReasonCode: null, HoldReasonSubCode: null } as const;

function because(job: JobRecord, attribute: (typeof EXPRESSIONS)[number]): string {
  return (
    readString(job.attrs, `${attribute}Reason`) ??
    `The job attribute ${attribute} expression '${job.attrs.get(attribute)}' evaluated to TRUE`
  );
}
