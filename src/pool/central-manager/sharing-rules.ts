import type { Expr } from '../../classad/api.ts';
import type { Settings } from '../../config/settings.ts';
import { adFrom } from '../wire/ads.ts';
import { type Group, type GroupRules, NO_GROUPS } from './accounting.ts';
import { type LimitRules, NO_LIMITS } from './concurrency-limits.ts';
import type { JobRanks } from './negotiator.ts';
import { NO_THROTTLE, type ThrottleRules } from './throttle.ts';
import { PRIORITY_RULES, type PriorityRules } from './priorities.ts';

export interface PreemptionRules {
  /** PREEMPTION_REQUIREMENTS; `undefined`: no preemption by priority; `true`: whoever has the better priority may. */
  readonly requirements: Expr | true | undefined;
  /** PREEMPTION_RANK. */
  readonly rank: Expr | undefined;
}

/** How the dedicated scheduler serves parallel jobs. */
export interface DedicatedRules {
  /** In the order in which they were submitted; otherwise owners take turns by their priorities. */
  readonly fifo: boolean;
  /** UNUSED_CLAIM_TIMEOUT. */
  readonly keepSeconds: number;
}

/** How owners share the pool. */
export interface SharingRules {
  readonly priorities: PriorityRules;
  readonly preemption: PreemptionRules;
  readonly ranks: JobRanks;
  readonly groups: GroupRules;
  readonly limits: LimitRules;
  readonly throttle: ThrottleRules;
  /** MAX_CONCURRENT_DOWNLOADS; 0: no limit. */
  readonly downloads: number;
  readonly dedicated: DedicatedRules;
}

export const SHARING_RULES: SharingRules = {
  priorities: PRIORITY_RULES,
  preemption: { requirements: undefined, rank: undefined },
  ranks: { pre: undefined, post: undefined },
  groups: NO_GROUPS,
  limits: NO_LIMITS,
  throttle: NO_THROTTLE,
  downloads: 0,
  dedicated: { fifo: true, keepSeconds: 0 },
};

type Sharing = {
  readonly [K in keyof Settings as K extends `pool.${string}` ? K : never]: Settings[K];
};

/** The expressions that look at jobs and machines. */
export function rulesOf({ preemption: { requirements, rank }, ranks }: SharingRules): Expr[] {
  return [requirements, rank, ranks.pre, ranks.post].flatMap((expr) =>
    expr === undefined || expr === true ? [] : [expr],
  );
}

/** The rules that the settings give. */
export function sharingRules(settings: Sharing): SharingRules {
  const upDown = settings['pool.priority'] === 'updown';
  const written = settings['pool.preemption_requirements'];
  return {
    priorities: {
      priority: settings['pool.priority'],
      halfLife: Math.max(1, settings['pool.priority_halflife']),
      factor: settings['pool.default_prio_factor'],
      niceFactor: settings['pool.nice_user_prio_factor'],
      updown: {
        interval: Math.max(1, settings['pool.updown.interval']),
        up: settings['pool.updown.up'],
        down: settings['pool.updown.down'],
        halfLife: Math.max(1, settings['pool.updown.halflife']),
      },
    },
    preemption: {
      requirements: written === undefined ? upDown || undefined : requirementsOf(written),
      rank: exprOf(settings['pool.preemption_rank']),
    },
    ranks: {
      pre: exprOf(settings['pool.negotiator_pre_job_rank']),
      post: exprOf(settings['pool.negotiator_post_job_rank']),
    },
    groups: groupRules(settings),
    limits: {
      maximum: lowered(settings['pool.concurrency_limits']),
      prefixed: lowered(settings['pool.concurrency_limit_defaults']),
      preset: settings['pool.concurrency_limit_default'] ?? Number.POSITIVE_INFINITY,
    },
    throttle: {
      count: settings['pool.job_start_count'],
      delay: settings['pool.job_start_delay'],
      uploads: settings['pool.max_concurrent_uploads'],
    },
    downloads: settings['pool.max_concurrent_downloads'],
    dedicated: {
      fifo: settings['pool.dedicated_scheduler_use_fifo'],
      keepSeconds: settings['pool.unused_claim_timeout'],
    },
  };
}

function groupRules(settings: Sharing): GroupRules {
  const quota = lowered(settings['pool.group_quota']);
  const part = lowered(settings['pool.group_quota_dynamic']);
  const accepting = settings['pool.group_accept_surplus'];
  const surplus = (key: string) =>
    typeof accepting === 'boolean' ? accepting : accepting.some((name) => name.toLowerCase() === key);
  const groups = settings['pool.group_names'].map((name): [string, Group] => {
    const key = name.toLowerCase();
    return [key, { name, quota: quota.get(key), part: part.get(key), surplus: surplus(key) }];
  });
  return { groups: new Map(groups), users: new Set(settings['pool.accounting_users']) };
}

function lowered(table: Readonly<Record<string, number>> | undefined): ReadonlyMap<string, number> {
  return new Map(Object.entries(table ?? {}).map(([name, much]) => [name.toLowerCase(), much]));
}

function requirementsOf(text: string): PreemptionRules['requirements'] {
  if (/^\s*true\s*$/i.test(text)) return true;
  return /^\s*false\s*$/i.test(text) ? undefined : exprOf(text);
}

function exprOf(text: string | undefined): Expr | undefined {
  return text === undefined ? undefined : adFrom({ It: text }).find('it');
}
