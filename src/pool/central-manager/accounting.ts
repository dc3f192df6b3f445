import type { AttrTexts } from '../../job/attrs.ts';
import { inAd, readString } from '../../job/values.ts';

/** Accounting groups (GROUP_NAMES) and their quotas. */
export interface GroupRules {
  /** By lower-case name. A subgroup's name begins with its group's, and a dot. */
  readonly groups: ReadonlyMap<string, Group>;
  /** The names that jobs may use as `accounting_group_user` beside their owner's. */
  readonly users: ReadonlySet<string>;
}

export interface Group {
  readonly name: string;
  /** Cores (GROUP_QUOTA_name); `undefined`: without a quota of its own. */
  readonly quota: number | undefined;
  /** The part of its group's quota, or of the pool (GROUP_QUOTA_DYNAMIC_name). */
  readonly part: number | undefined;
  /** Whether it may use more than its quota while nobody else wants it (GROUP_ACCEPT_SURPLUS_name). */
  readonly surplus: boolean;
}

export const NO_GROUPS: GroupRules = { groups: new Map(), users: new Set() };

/** The group of jobs with `nice_user = true`. */
const NICE_GROUP = 'nice-user';

/**
 * The account for a job: its owner, after the accounting group if that is one of the pool's. A group that the pool does
 * not have and a user who is not the job's owner count for nothing: otherwise anybody could be somebody else, or many.
 */
export function accountOf(texts: AttrTexts, owner: string, { groups, users }: GroupRules): string {
  const ad = inAd(texts);
  const group = readString(ad, 'AcctGroup');
  const asked = readString(ad, 'AcctGroupUser');
  const user = asked !== undefined && users.has(asked) ? asked : owner;
  if (group === undefined) return user;
  if (group.toLowerCase() === NICE_GROUP) return `${NICE_GROUP}.${user}`;
  const known = groups.get(group.toLowerCase());
  return known ? `${known.name}.${user}` : user;
}

/** The groups that an account belongs to, the innermost first. */
export function groupsOf(account: string, { groups }: GroupRules): Group[] {
  if (groups.size === 0) return [];
  const words = account.toLowerCase().split('.');
  const found: Group[] = [];
  for (let length = words.length - 1; length > 0; length--) {
    const group = groups.get(words.slice(0, length).join('.'));
    if (group) found.push(group);
  }
  return found;
}

/** Each group's quota in cores, by its name; those without one are left out. */
export function quotas({ groups }: GroupRules, poolCores: number): Map<string, number> {
  const all = new Map<string, number>();
  const sorted = [...groups].sort(([a], [b]) => a.split('.').length - b.split('.').length);
  for (const [key, { name, quota, part }] of sorted) {
    const parent = groups.get(key.slice(0, Math.max(0, key.lastIndexOf('.'))));
    const whole = (parent && all.get(parent.name)) ?? poolCores;
    if (quota !== undefined) all.set(name, quota);
    else if (part !== undefined) all.set(name, part * whole);
  }
  return all;
}
