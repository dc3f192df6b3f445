import type { AttemptKey } from '../../job/ids.ts';
import { groupsOf, quotas } from './accounting.ts';
import type { Attempt, Autocluster } from './attempts.ts';
import { LimitsInUse, limitsOf, type UsedUp } from './concurrency-limits.ts';
import type { Priorities } from './priorities.ts';
import { SHARING_RULES, type SharingRules } from './sharing-rules.ts';

type Job = Pick<Autocluster, 'owner' | 'ad' | 'size'>;

/** Why a job may not start although a slot is free. */
export type Barred =
  | ({ readonly by: 'limit' } & UsedUp)
  | { readonly by: 'quota'; readonly name: string; readonly used: number; readonly maximum: number };

/** What may start in one negotiation cycle. */
export interface Gate {
  /** Whether groups have quotas, so that a cycle serves those first who are within theirs. */
  readonly hasQuotas: boolean;
  /** `surplus`: groups that accept it may use what nobody within a quota wants. */
  bars(job: Job, surplus: boolean): Barred | undefined;
  /** Counts one more of these jobs, until the cycle is over. */
  take(job: Job): void;
  /** How much of its quota the group of this owner uses; `undefined`: it has none. */
  filled(owner: string): number | undefined;
}

const NO_QUOTAS: ReadonlyMap<string, number> = new Map();

/** Concurrency limits and group quotas, and what is used of them. */
export class Sharing {
  readonly #priorities: Priorities;
  readonly #poolCores: () => number;
  readonly #limits = new LimitsInUse();
  rules: SharingRules = SHARING_RULES;

  constructor(priorities: Priorities, poolCores: () => number) {
    this.#priorities = priorities;
    this.#poolCores = poolCores;
  }

  /** It is at a worker now. */
  starts({ key, kind }: Attempt): void {
    if (kind) this.#limits.take(key, limitsOf(kind.ad));
  }

  /** It is at no worker any more. */
  ends(key: AttemptKey): void {
    this.#limits.give(key);
  }

  /** Whether such jobs are limited in number, so that none is granted before its turn. */
  isLimited({ ad }: Pick<Job, 'ad'>): boolean {
    return limitsOf(ad).length > 0;
  }

  gate(): Gate {
    const { rules } = this;
    const more = new Map<string, number>();
    const each = rules.groups.groups.size === 0 ? NO_QUOTAS : quotas(rules.groups, this.#poolCores());
    const use = each.size === 0 ? new Map<string, number>() : this.#useOfGroups();
    const add = (map: Map<string, number>, name: string, much: number) => map.set(name, (map.get(name) ?? 0) + much);
    return {
      hasQuotas: each.size > 0,
      bars: ({ owner, ad, size }, surplus) => {
        const limit = this.#limits.usedUp(limitsOf(ad), rules.limits, more);
        if (limit) return { by: 'limit', ...limit };
        if (each.size === 0) return undefined;
        for (const group of groupsOf(owner, rules.groups)) {
          const maximum = each.get(group.name);
          const used = use.get(group.name) ?? 0;
          if (maximum !== undefined && used + size.cpus > maximum + 1e-9 && !(surplus && group.surplus))
            return { by: 'quota', name: group.name, used, maximum };
        }
        return undefined;
      },
      take: ({ owner, ad, size }) => {
        for (const { name, weight } of limitsOf(ad)) add(more, name, weight);
        for (const { name } of groupsOf(owner, rules.groups)) add(use, name, size.cpus);
      },
      filled: (owner) => {
        const group = groupsOf(owner, rules.groups).find(({ name }) => each.has(name));
        if (!group) return undefined;
        const quota = each.get(group.name) ?? 0;
        return quota === 0 ? Number.POSITIVE_INFINITY : (use.get(group.name) ?? 0) / quota;
      },
    };
  }

  #useOfGroups(): Map<string, number> {
    const use = new Map<string, number>();
    for (const [owner, cores] of this.#priorities.users())
      for (const { name } of groupsOf(owner, this.rules.groups)) use.set(name, (use.get(name) ?? 0) + cores);
    return use;
  }
}
