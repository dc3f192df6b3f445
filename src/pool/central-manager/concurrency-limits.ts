import { type ClassAd, evaluateAttr } from '../../classad/api.ts';
import type { AttemptKey } from '../../job/ids.ts';

/** One of a job's `concurrency_limits`: the name in lower case, and how much of it the job uses. */
export interface Limit {
  readonly name: string;
  readonly weight: number;
}

/** The pool's limits (`name_LIMIT`, CONCURRENCY_LIMIT_DEFAULT_prefix, CONCURRENCY_LIMIT_DEFAULT), by lower-case name. */
export interface LimitRules {
  readonly maximum: ReadonlyMap<string, number>;
  readonly prefixed: ReadonlyMap<string, number>;
  readonly preset: number;
}

export const NO_LIMITS: LimitRules = { maximum: new Map(), prefixed: new Map(), preset: Number.POSITIVE_INFINITY };

export interface UsedUp {
  readonly name: string;
  readonly used: number;
  readonly maximum: number;
}

const NONE: readonly Limit[] = [];
const KNOWN = new WeakMap<ClassAd, readonly Limit[]>();

/** What a job's ConcurrencyLimits name, such as `db,license:2`. Weights that are not positive count 1, as in HTCondor. */
export function limitsOf(ad: ClassAd): readonly Limit[] {
  if (ad.find('concurrencylimits') === undefined) return NONE;
  const known = KNOWN.get(ad);
  if (known) return known;
  const value = evaluateAttr(ad, 'ConcurrencyLimits');
  const limits = typeof value === 'string' ? parseLimits(value) : NONE;
  KNOWN.set(ad, limits);
  return limits;
}

export function parseLimits(text: string): Limit[] {
  const sums = new Map<string, number>();
  for (const word of text.toLowerCase().split(/[\s,]+/)) {
    const [name = '', weight = '1'] = word.split(':');
    if (name === '') continue;
    const much = Number(weight);
    sums.set(name, (sums.get(name) ?? 0) + (Number.isFinite(much) && much > 0 ? much : 1));
  }
  return [...sums].map(([name, weight]) => ({ name, weight }));
}

export function maximumOf(name: string, { maximum, prefixed, preset }: LimitRules): number {
  const dot = name.indexOf('.');
  return maximum.get(name) ?? (dot < 0 ? undefined : prefixed.get(name.slice(0, dot))) ?? preset;
}

/** How much of each limit is used by attempts that were granted and have not ended. */
export class LimitsInUse {
  readonly #of = new Map<AttemptKey, readonly Limit[]>();
  readonly #used = new Map<string, number>();

  /** Does nothing if the attempt is counted already. */
  take(key: AttemptKey, limits: readonly Limit[]): void {
    if (limits.length === 0 || this.#of.has(key)) return;
    this.#of.set(key, limits);
    for (const { name, weight } of limits) this.#used.set(name, this.used(name) + weight);
  }

  give(key: AttemptKey): void {
    const limits = this.#of.get(key);
    if (!limits) return;
    this.#of.delete(key);
    for (const { name, weight } of limits) {
      const left = this.used(name) - weight;
      if (left > 1e-9) this.#used.set(name, left);
      else this.#used.delete(name);
    }
  }

  used(name: string): number {
    return this.#used.get(name) ?? 0;
  }

  /** The first limit that one more such job would exceed. `more`: what is about to be used. */
  usedUp(limits: readonly Limit[], rules: LimitRules, more: ReadonlyMap<string, number>): UsedUp | undefined {
    for (const { name, weight } of limits) {
      const used = this.used(name) + (more.get(name) ?? 0);
      const maximum = maximumOf(name, rules);
      if (used + weight > maximum + 1e-9) return { name, used, maximum };
    }
    return undefined;
  }
}
