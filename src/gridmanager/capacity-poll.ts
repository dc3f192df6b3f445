import { JOB_STATUS, LIFE } from '../job/life.ts';
import { SITE_CAPACITY, type SiteCapacity } from '../queue/tables.ts';
import type { Again, SiteContext } from './context.ts';

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
  await SITE_CAPACITY.set(ctx.queue.kv, `${ctx.manager}/${ctx.record.name}`, capacityPoll);
  state.at = at;
  return EVERY_MS;
}

async function runningAt(ctx: SiteContext): Promise<number> {
  const { places } = await ctx.queue.totals();
  return places
    .filter((place) => place.site === ctx.record.name && JOB_STATUS[LIFE[place.state].shows] === JOB_STATUS.running)
    .reduce((sum, place) => sum + place.jobs, 0);
}
