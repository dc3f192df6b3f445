import type { Expr } from '../../classad/api.ts';
import type { Settings } from '../../config/settings.ts';
import { adFrom } from '../wire/ads.ts';
import { PRIORITY_RULES, type PriorityRules } from './priorities.ts';

export interface PreemptionRules {
  /** PREEMPTION_REQUIREMENTS; `undefined`: no preemption by priority; `true`: whoever has the better priority may. */
  readonly requirements: Expr | true | undefined;
  /** PREEMPTION_RANK. */
  readonly rank: Expr | undefined;
}

/** How owners share the pool. */
export interface SharingRules {
  readonly priorities: PriorityRules;
  readonly preemption: PreemptionRules;
}

export const SHARING_RULES: SharingRules = {
  priorities: PRIORITY_RULES,
  preemption: { requirements: undefined, rank: undefined },
};

type Sharing = {
  readonly [K in keyof Settings as K extends `pool.${string}` ? K : never]: Settings[K];
};

/** The expressions that look at jobs and machines. */
export function rulesOf({ preemption: { requirements, rank } }: SharingRules): Expr[] {
  return [requirements, rank].flatMap((expr) => (expr === undefined || expr === true ? [] : [expr]));
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
  };
}

function requirementsOf(text: string): PreemptionRules['requirements'] {
  if (/^\s*true\s*$/i.test(text)) return true;
  return /^\s*false\s*$/i.test(text) ? undefined : exprOf(text);
}

function exprOf(text: string | undefined): Expr | undefined {
  return text === undefined ? undefined : adFrom({ It: text }).find('it');
}
