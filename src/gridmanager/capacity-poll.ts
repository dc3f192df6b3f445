import { JOB_STATUS, LIFE } from '../job/life.ts';
import type { Capacity, SiteFacts } from '../site/contract.ts';
import type { Again, SiteContext } from './context.ts';

/**
 * What a site reported about itself; the broker builds the site's ad from it. Stored in the queue under CAPACITY_POLLS,
 * key `<manager>/<site>`.
 */
export interface SiteCapacity
  extends Capacity,
    Pick<SiteFacts, 'host' | 'os' | 'arch' | 'freeDiskKb' | 'batchVersion'> {
  /** Unix milliseconds. */
  readonly at: number;
  readonly validUntil: number;
  /** Number of our jobs, of all managers, that were running there at that time. */
  readonly running: number;
}

export const CAPACITY_POLLS = 'site-capacity';
/**
 * In the queue under BROKER: until when (Unix milliseconds) capacity polls are wanted even if no job waits for a site.
 */
export const BROKER = 'broker';
export const WANTED_UNTIL = 'capacity-polls-until';

/**
 * While the broker has jobs, a site is asked at this interval; its answer is valid three times as long. Milliseconds.
 */
const EVERY_MS = 60_000;
const VALID_MS = 3 * EVERY_MS;

export interface CapacityPollState {
  /** Time of the last poll, Unix milliseconds. */
  at: number;
  readonly wanted: () => Promise<boolean>;
}

/** Asks the site about its platform and capacity, for the broker. */
export async function capacityPollRound(ctx: SiteContext, state: CapacityPollState): Promise<Again> {
  if (!(await state.wanted())) return undefined;
  const wait = Math.min(EVERY_MS, state.at + EVERY_MS - ctx.now());
  if (wait > 0) return wait;
  const { host, os, arch, freeDiskKb, batchVersion } = await ctx.site.describe();
  const capacity = (await ctx.site.capacity?.()) ?? {};
  const at = ctx.now();
  const capacityPoll: SiteCapacity = {
    at,
    validUntil: at + VALID_MS,
    running: await runningAt(ctx),
    host,
    os,
    arch,
    freeDiskKb,
    batchVersion,
    ...capacity,
  };
  await ctx.queue.kv.set(CAPACITY_POLLS, `${ctx.manager}/${ctx.record.name}`, JSON.stringify(capacityPoll));
  state.at = at;
  return EVERY_MS;
}

async function runningAt(ctx: SiteContext): Promise<number> {
  const { places } = await ctx.queue.totals();
  return places
    .filter((place) => place.site === ctx.record.name && JOB_STATUS[LIFE[place.state].shows] === JOB_STATUS.running)
    .reduce((sum, place) => sum + place.jobs, 0);
}
