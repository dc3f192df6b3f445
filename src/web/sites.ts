import type * as z from 'zod';
import type { AdText } from '../index.ts';
import { readNumber, readString } from '../job/values.ts';
import { sitesOf } from './overview.ts';
import type { SITE } from './schemas.ts';
import type { Web } from './web.ts';

type Site = z.infer<typeof SITE>;

/** The sites, with what their ads say of their cores, and of how our jobs fared there. */
export async function measuredSites(web: Web): Promise<Site[]> {
  const [sites, ads] = await Promise.all([sitesOf(web), web.recent.get('site ads', 3000, () => web.gryphus.siteAds())]);
  const measured = new Map(ads.map((ad) => [readString({ get: (name) => ad[name] }, 'Name'), measuredOf(ad)]));
  return sites.map((site) => ({ ...site, measured: measured.get(site.name) }));
}

function measuredOf(ad: AdText): NonNullable<Site['measured']> {
  const number = (name: string) => readNumber({ get: (attribute) => ad[attribute] }, name);
  return {
    cores: number('TotalCpus'),
    freeCores: number('FreeCpus'),
    meanWait: number('MeanWait'),
    meanRun: number('MeanRunTime'),
    expectedWait: number('ExpectedWait'),
    failures: number('RecentFailures') ?? 0,
  };
}
