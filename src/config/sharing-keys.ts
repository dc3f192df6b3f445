import { duration, expression, oneOf, real } from './kinds.ts';
import { entry, type Table } from './table.ts';

/** The keys that say how owners share the pool, in `config.toml` after `pool.`. */
export const SHARING_KEYS = {
  priority: entry(
    oneOf(['usage', 'updown']),
    'usage',
    "How owners are ordered: `usage`, HTCondor's user priorities; `updown`, the Up-Down index. See [priorities.md](priorities.md).",
  ),
  priority_halflife: entry(duration, '1d', 'After this time, past usage counts half (PRIORITY_HALFLIFE).'),
  default_prio_factor: entry(real(1), 1000, "An owner's priority factor (DEFAULT_PRIO_FACTOR)."),
  nice_user_prio_factor: entry(
    real(1),
    1e10,
    'The priority factor of jobs with `nice_user = true` (NICE_USER_PRIO_FACTOR).',
  ),
  'updown.interval': entry(duration, '2m', 'The time for which `pool.updown.up` and `pool.updown.down` count.'),
  'updown.up': entry(real(0), 1, "What is added to an owner's index in each interval for each core held."),
  'updown.down': entry(
    real(0),
    1,
    "What is subtracted from an owner's index in each interval in which its jobs wait for capacity that is denied.",
  ),
  'updown.halflife': entry(
    duration,
    '1h',
    'The time in which the index of an owner who neither holds nor wants anything gets half as far from 0.',
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
} as const satisfies Table;
