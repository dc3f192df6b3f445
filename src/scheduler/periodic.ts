import { policyHold } from '../gridmanager/decide.ts';
import { released } from '../gridmanager/hold.ts';
import { quoted, readString, truthOf } from '../job/values.ts';
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
      set: policyHold(job, 'PeriodicHold'),
      info: BY_POLICY,
    };
  }
  if (held && job.attrs.has('PeriodicRelease') && truthOf(job.attrs, 'PeriodicRelease') === true) {
    return {
      id: job.id,
      event: 'release',
      from: job.state,
      set: { ...released(job), ReleaseReason: quoted(because(job, 'PeriodicRelease')) },
      info: BY_POLICY,
    };
  }
  if (job.attrs.has('PeriodicRemove') && next(job.state, 'remove') && truthOf(job.attrs, 'PeriodicRemove') === true) {
    return {
      id: job.id,
      event: 'remove',
      from: job.state,
      set: { RemoveReason: quoted(because(job, 'PeriodicRemove')) },
      info: BY_POLICY,
    };
  }
  return undefined;
}

const BY_POLICY = { by: 'policy' } as const;

function because(job: JobRecord, attribute: (typeof EXPRESSIONS)[number]): string {
  return (
    readString(job.attrs, `${attribute}Reason`) ??
    `The job attribute ${attribute} expression '${job.attrs.get(attribute)}' evaluated to TRUE`
  );
}
