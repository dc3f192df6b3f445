import { candidateOf, siteAd } from '../broker/site-ad.ts';
import { knownSites } from '../broker/known-sites.ts';
import type { CandidateSite } from '../broker/sites.ts';
import { POOL_SITE, SCHEDULER_SITE, type SiteRecord } from '../config/sites.ts';
import { Attrs } from '../job/attrs.ts';
import { compileConstraint } from '../job/values.ts';
import type { Queue } from '../queue/api.ts';
import type { AdText } from './types.ts';

/** The sites' current ClassAds, in the order of the configuration. */
export async function siteAds(
  queue: Queue,
  records: ReadonlyMap<string, SiteRecord>,
  constraint?: string,
): Promise<AdText[]> {
  const wanted = constraint === undefined ? () => true : compileConstraint(constraint, 'constraint');
  const ads = (await knownSites(queue, records)).map((site) => siteAd(site, seconds()));
  return ads.filter((ad) => wanted(new Attrs(ad)));
}

/** The sites as the broker sees them: those that may be given jobs. */
export async function candidates(queue: Queue, records: ReadonlyMap<string, SiteRecord>): Promise<CandidateSite[]> {
  const sites = new Map([...records].filter(([name]) => name !== SCHEDULER_SITE.name && name !== POOL_SITE.name));
  return (await knownSites(queue, sites)).map((site) => candidateOf(site, seconds()));
}

function seconds(): number {
  return Math.floor(Date.now() / 1000);
}
