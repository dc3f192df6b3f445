import { type WatchConfig, type Watched, type WatchedJob } from './watch/model.ts';
import { usability } from './watch/usability.ts';

/** One credential in `gryphus cred list`. Times are in Unix seconds, durations in seconds. */
export interface CredentialStatus {
  readonly name: string;
  readonly what: string;
  readonly state: 'good' | 'ended' | 'unusable' | 'early';
  readonly end: number | undefined;
  /** Never negative; `undefined` if no end is known. */
  readonly left: number | undefined;
  /** The fraction of its life that is left, 0 to 1; `undefined` if its start or end is unknown. */
  readonly level: number | undefined;
  readonly renews: boolean;
  readonly waiting: number;
  readonly there: number;
  readonly held: number;
  readonly sites: readonly string[];
  /** Why it cannot be used. */
  readonly problem: string | undefined;
  readonly type: readonly string[];
}

/** All credentials, those that end soonest first. */
export function credentialStatuses(
  credentials: readonly Watched[],
  jobs: readonly WatchedJob[],
  now: number,
  config: WatchConfig,
): readonly CredentialStatus[] {
  return credentials
    .map((one): CredentialStatus => {
      const users = jobs.filter((job) => job.needs.includes(one.name));
      const count = (where: WatchedJob['where']) => users.filter((job) => job.where === where).length;
      const found = usability(one, now, config);
      const left = one.end === undefined ? undefined : Math.max(0, one.end - now);
      const life = one.end === undefined || one.start === undefined ? undefined : one.end - one.start;
      return {
        name: one.name,
        what: one.what,
        state: found.is,
        end: one.end,
        left,
        level: left === undefined || life === undefined || life <= 0 ? undefined : Math.min(1, left / life),
        renews: one.renews,
        waiting: count('waiting'),
        there: count('there'),
        held: count('held'),
        sites: [...new Set(users.map((job) => job.site))].sort(),
        problem: found.is === 'good' ? undefined : found.why,
        type: one.type,
      };
    })
    .sort(
      (a, b) =>
        (a.left ?? Number.POSITIVE_INFINITY) - (b.left ?? Number.POSITIVE_INFINITY) || (a.name < b.name ? -1 : 1),
    );
}
