import { POOL_SITE } from '../config/sites.ts';
import { holdAttributes, policyHold, released } from '../job/hold.ts';
import type { State } from '../job/life.ts';
import { quoted, readNumber, readString, truthOf } from '../job/values.ts';
import { next } from '../job/life.ts';
import type { Change, JobRecord } from '../queue/api.ts';

const EXPRESSIONS = ['PeriodicRemove', 'PeriodicHold', 'PeriodicRelease', 'PeriodicVacate'] as const;

interface Limit {
  readonly attribute: string;
  readonly says: string;
  /** HTCondor's HoldReasonCode. */
  readonly code: number;
}

/** How long a job may run, in seconds (manual, "allowed_job_duration", "allowed_execute_duration"). */
const LIMITS: readonly Limit[] = [
  { attribute: 'AllowedJobDuration', says: 'job', code: 46 },
  { attribute: 'AllowedExecuteDuration', says: 'execute', code: 47 },
];

/** Whether an edit of this attribute adds or removes a periodic policy. */
export function isPolicy(attribute: string): boolean {
  const low = attribute.toLowerCase();
  return low.startsWith('periodic') || LIMITS.some((limit) => limit.attribute.toLowerCase() === low);
}

/** Whether the job has a periodic policy, so that it must be checked regularly. */
export function hasPeriodicPolicy(attrs: { get(name: string): string | undefined }): boolean {
  return [...EXPRESSIONS, ...LIMITS.map(({ attribute }) => attribute)].some(
    (name) => !/^(false|undefined)?$/i.test(attrs.get(name) ?? ''),
  );
}

/**
 * What a job's periodic expressions ask for now, in HTCondor's order: a held job may be released, any other held; every
 * job may be removed (manual, "Periodic expressions"). Hold code 3: the user's own policy; 5: it is undefined.
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

const RUNS: ReadonlySet<State> = new Set(['running', 'suspended', 'unknown-running']);

/** Unix seconds at which the job exceeds its allowed time. */
export function deadlineOf(job: JobRecord): number | undefined {
  const times = LIMITS.map((limit) => endOf(job, limit)).filter((time) => time !== undefined);
  return times.length === 0 ? undefined : Math.min(...times);
}

/** The hold of a job that exceeded its allowed time; `now`: Unix seconds. */
export function overTime(job: JobRecord, now: number): Change | undefined {
  const limit = LIMITS.find((one) => (endOf(job, one) ?? Number.POSITIVE_INFINITY) <= now);
  if (limit === undefined) return undefined;
  const allowed = lengthText(readNumber(job.attrs, limit.attribute) ?? 0);
  return {
    id: job.id,
    event: 'hold',
    from: job.state,
    set: {
      ...holdAttributes(`The job exceeded allowed ${limit.says} duration of ${allowed}`, limit.code),
      NumHolds: String((readNumber(job.attrs, 'NumHolds') ?? 0) + 1),
    },
    info: BY_POLICY,
  };
}

function endOf({ state, attrs }: JobRecord, { attribute }: Limit): number | undefined {
  if (!RUNS.has(state)) return undefined;
  const allowed = readNumber(attrs, attribute);
  const started = readNumber(attrs, 'JobCurrentStartDate');
  return allowed === undefined || started === undefined ? undefined : started + Math.floor(allowed) + 1;
}

/** A duration in the format of HTCondor's tools: `05:00`, `1:15:00`, `3+00:00:00`. */
function lengthText(seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds));
  const [days, hours, minutes] = [
    Math.floor(whole / 86_400),
    Math.floor(whole / 3600) % 24,
    Math.floor(whole / 60) % 60,
  ];
  const two = (value: number) => String(value).padStart(2, '0');
  const full = `${days}+${two(hours)}:${two(minutes)}:${two(whole % 60)}`;
  return full.replace(/^[0+]+/, '').replace(/^:/, '');
}

/** Whether the job, which runs in the pool, is to be vacated and run again. */
export function vacates(job: JobRecord): boolean {
  return job.state === 'running' && job.site === POOL_SITE.name && truthOf(job.attrs, 'PeriodicVacate') === true;
}

const BY_POLICY = { by: 'policy' } as const;

function because(job: JobRecord, attribute: (typeof EXPRESSIONS)[number]): string {
  return (
    readString(job.attrs, `${attribute}Reason`) ??
    `The job attribute ${attribute} expression '${job.attrs.get(attribute)}' evaluated to TRUE`
  );
}
