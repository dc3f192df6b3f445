import { type WatchConfig, type Watched, type WatchedJob } from './watch/model.ts';
import { usability } from './watch/usability.ts';

/** One credential of `gryphus cred list`. Times in Unix seconds, lengths in seconds. */
export interface CredentialStatus {
  readonly name: string;
  readonly what: string;
  readonly state: 'good' | 'ended' | 'unusable' | 'early';
  readonly end: number | undefined;
  /** Never negative; `undefined`: no known end. */
  readonly left: number | undefined;
  /** Of its life, 0 to 1; `undefined` where its start or end is not known. */
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

/** All credentials, the one that ends first at the top. */
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
