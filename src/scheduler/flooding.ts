import { GRID_FAILED } from '../job/hold.ts';
import { flood } from '../broker/flood.ts';
import type { CandidateSite } from '../broker/sites.ts';
import type { SiteRecord } from '../config/sites.ts';
import { formatJobId } from '../job/ids.ts';
import { adOf, quoted, readBoolean } from '../job/values.ts';
import type { CandidateStep, Lease, Queue } from '../queue/api.ts';
import type { JobRecord } from '../queue/api.ts';
import { managerOf } from '../job/identity.ts';

export interface FloodOptions {
  readonly queue: Pick<Queue, 'candidates' | 'transitionMany'>;
  readonly sites: readonly CandidateSite[];
  readonly records: ReadonlyMap<string, SiteRecord>;
  /** Maximum number of sites at which one job is queued at the same time. */
  readonly most: number;
  /** Unix seconds. */
  readonly now: number;
  readonly lease: Lease;
}

/** `want_flood = true`: queue the job at several sites, and run it where it can start first. */
export function isFlooded({ attrs }: Pick<JobRecord, 'attrs'>): boolean {
  return readBoolean(attrs, 'WantFlood') === true;
}

/** GRAM and the pool cannot let a job wait for permission to start. */
function takesCandidates(record: SiteRecord | undefined): boolean {
  return record !== undefined && record.target.kind !== 'gram' && record.batch !== 'pool';
}

export interface FloodedJobs {
  /** Number of jobs for which something was done. */
  readonly done: number;
  /** Jobs that match no site that takes candidates; the broker may choose another site for them. */
  readonly left: readonly JobRecord[];
}

/** Opens candidates for idle jobs without a site, and holds jobs that every matching site has refused. */
export async function floodJobs(jobs: readonly JobRecord[], options: FloodOptions): Promise<FloodedJobs> {
  const { queue, records, most, now, lease } = options;
  if (jobs.length === 0) return { done: 0, left: [] };
  const sites = options.sites.filter(({ name }) => takesCandidates(records.get(name)));
  const known = await queue.candidates.of(jobs.map(({ id }) => id));
  const all = jobs.map((job, i) => ({
    job,
    at: known[i]?.open.map(({ site }) => site) ?? [],
    refusedBy: known[i]?.refused.map(({ site }) => site) ?? [],
  }));
  const { candidates, hopeless, unsuited } = flood(all, ({ attrs }) => adOf(attrs), sites, most, now);
  const steps = candidates.flatMap(({ job, site }): CandidateStep[] => {
    const record = records.get(site);
    return record ? [{ id: job.id, event: 'opened', manager: managerOf(job, record), site }] : [];
  });
  if (steps.length > 0) await queue.candidates.step(steps, lease);
  const reasons = new Map(
    known.map(({ id, refused }) => [formatJobId(id), refused.map((one) => one.message).join(' ')]),
  );
  await queue.transitionMany(
    hopeless.map(({ id }) => ({
      id,
      event: 'refused',
      from: 'idle',
      set: {
        HoldReason: quoted(`Every suitable site refused it. ${reasons.get(formatJobId(id)) ?? ''}`.trim()),
        HoldReasonCode: String(GRID_FAILED),
        HoldReasonSubCode: '0',
      },
    })),
    lease,
  );
  const done = new Set([...steps, ...hopeless].map(({ id }) => formatJobId(id)));
  return { done: done.size, left: unsuited };
}
