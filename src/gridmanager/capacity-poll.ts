import { JOB_STATUS, LIFE } from '../job/life.ts';
import type { Capacity, SiteFacts } from '../site/contract.ts';
import type { Again, SiteContext } from './context.ts';

/** What a site said of itself, in the queue under CAPACITY_POLLS by `<manager>/<site>`: the broker makes the site's ad of it. */
export interface SiteCapacity
  extends Capacity,
    Pick<SiteFacts, 'host' | 'os' | 'arch' | 'freeDiskKb' | 'batchVersion'> {
  /** Unix milliseconds. */
  readonly at: number;
  readonly validUntil: number;
  /** Jobs of ours, of all managers, that ran there then. */
  readonly running: number;
}

export const CAPACITY_POLLS = 'site-capacity';
/** Under BROKER in the queue: until when (Unix milliseconds) somebody wants capacity polls though no job is without a site. */
export const BROKER = 'broker';
export const WANTED_UNTIL = 'capacity-polls-until';

/** A site is asked so often while the broker has jobs, and its answer is believed three times as long; milliseconds. */
const EVERY_MS = 60_000;
const VALID_MS = 3 * EVERY_MS;

export interface CapacityPollState {
  /** Unix milliseconds of the last one. */
  at: number;
  readonly wanted: () => Promise<boolean>;
}

/** Asks the site what it is and has, for the broker. */
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
