import type { ClassAd } from '../classad/api.ts';
import type { SiteRecord } from '../config/sites.ts';
import type { HealthView } from '../gridmanager/health.ts';
import type { SiteCapacity } from '../gridmanager/capacity-poll.ts';
import type { Load } from './load.ts';
import type { Measures } from './measures.ts';
import type { KnownBackoff } from './site-backoff.ts';

/** Jobs of ours at a site: given to it and still at home, in its queue, running. */
export interface JobsThere {
  readonly here: number;
  readonly queued: number;
  readonly running: number;
}

/** All that is known of a site, from the configuration, from itself, and from what our jobs met there. */
export interface KnownSite {
  readonly record: SiteRecord;
  readonly capacityPoll: SiteCapacity | undefined;
  readonly connection: Pick<HealthView, 'connection' | 'message'> | undefined;
  readonly jobs: JobsThere;
  readonly backoff: KnownBackoff;
  readonly measures: Measures;
}

/** A site as the broker sees it. */
export interface Candidate {
  readonly name: string;
  readonly ad: ClassAd;
  readonly load: Load;
  readonly cost: number;
}
