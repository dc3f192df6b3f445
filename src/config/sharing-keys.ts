import {
  duration,
  expression,
  flag,
  flagOrTexts,
  integer,
  interval,
  namedAmounts,
  oneOf,
  real,
  texts,
} from './kinds.ts';
import { entry, type Table } from './table.ts';

/** The keys that say how owners share the pool, in `config.toml` after `pool.`. */
export const SHARING_KEYS = {
  priority: entry(
    oneOf(['usage', 'updown']),
    'usage',
    "How owners are ordered: `usage`, HTCondor's user priorities; `updown`, the Up-Down index. See [priorities.md](priorities.md).",
  ),
  priority_halflife: entry(interval, '1d', 'The time after which past usage counts half (PRIORITY_HALFLIFE).'),
  default_prio_factor: entry(real(1), 1000, "An owner's priority factor (DEFAULT_PRIO_FACTOR)."),
  nice_user_prio_factor: entry(
    real(1),
    1e10,
    'The priority factor of jobs with `nice_user = true` (NICE_USER_PRIO_FACTOR).',
  ),
  'updown.interval': entry(interval, '2m', 'The interval to which `pool.updown.up` and `pool.updown.down` apply.'),
  'updown.up': entry(real(0), 1, "What is added to an owner's index in each interval for each core held."),
  'updown.down': entry(
    real(0),
    1,
    "What is subtracted from an owner's index in each interval in which its jobs wait for capacity that is denied.",
  ),
  'updown.halflife': entry(
    interval,
    '1h',
    'The half-life with which the index of an owner who neither holds nor wants capacity returns to 0.',
  ),
  preemption_requirements: entry(
    expression,
    undefined,
    'When an owner of better priority may preempt a job (PREEMPTION_REQUIREMENTS); MY is the slot, TARGET the waiting job. Default: `false`, with `pool.priority = "updown"` `true`.',
  ),
  preemption_rank: entry(
    expression,
    undefined,
    'Which of several jobs is preempted: where this is highest (PREEMPTION_RANK). Default: the one that started last.',
  ),
  negotiator_pre_job_rank: entry(
    expression,
    undefined,
    "Which free machine a job gets, before the job's own Rank is asked (NEGOTIATOR_PRE_JOB_RANK); MY is the machine.",
  ),
  negotiator_post_job_rank: entry(
    expression,
    undefined,
    'Which of the machines that it ranks alike a job gets (NEGOTIATOR_POST_JOB_RANK); MY is the machine.',
  ),
  dedicated_scheduler_use_fifo: entry(
    flag,
    true,
    'Whether parallel jobs of all owners are served in the order in which they were submitted (DEDICATED_SCHEDULER_USE_FIFO); `false`: owners take turns by `pool.priority`. See [parallel.md](parallel.md#the-dedicated-scheduler).',
  ),
  unused_claim_timeout: entry(
    duration,
    '10m',
    'How long a machine that names a DedicatedScheduler keeps what a parallel job has left for the next one, before other jobs get it (UNUSED_CLAIM_TIMEOUT); `0s`: not at all.',
  ),
  group_names: entry(
    texts,
    [],
    'The accounting groups that jobs may name (GROUP_NAMES), such as `["physics", "physics.atlas"]`.',
  ),
  group_quota: entry(
    namedAmounts,
    undefined,
    'A table of the cores that groups may use (GROUP_QUOTA_name), such as `physics = 20`.',
  ),
  group_quota_dynamic: entry(
    namedAmounts,
    undefined,
    "The same as parts of the pool, or of the enclosing group's quota (GROUP_QUOTA_DYNAMIC_name), such as `physics = 0.3`.",
  ),
  group_accept_surplus: entry(
    flagOrTexts,
    false,
    'Whether groups may exceed their quotas while no one else wants the cores, or which groups may (GROUP_ACCEPT_SURPLUS).',
  ),
  accounting_users: entry(
    texts,
    [],
    "Names that `accounting_group_user` may use besides the job's owner; any other name counts as the owner.",
  ),
  concurrency_limits: entry(
    namedAmounts,
    undefined,
    'A table of how much of each limit may be in use at once (name_LIMIT), such as `db = 2`, `"large.sw" = 3`.',
  ),
  concurrency_limit_default: entry(
    real(0),
    undefined,
    'The same for limits without an entry (CONCURRENCY_LIMIT_DEFAULT); without it, those limit nothing.',
  ),
  concurrency_limit_defaults: entry(
    namedAmounts,
    undefined,
    'The same for limits whose names begin with a word and a dot (CONCURRENCY_LIMIT_DEFAULT_word), such as `large = 3`.',
  ),
  job_start_count: entry(
    integer(1),
    1,
    'The maximum number of jobs that the pool starts in each `pool.job_start_delay` (JOB_START_COUNT).',
  ),
  job_start_delay: entry(duration, '0s', 'See `pool.job_start_count` (JOB_START_DELAY); `0s`: no limit.'),
  max_concurrent_uploads: entry(
    integer(0),
    100,
    'The maximum number of pool jobs that receive their input files at the same time (MAX_CONCURRENT_UPLOADS); 0: no limit.',
  ),
  max_concurrent_downloads: entry(
    integer(0),
    100,
    'The maximum number of pool jobs that send their output files home at the same time (MAX_CONCURRENT_DOWNLOADS); 0: no limit.',
  ),
} as const satisfies Table;
