import type { ClassAd } from '../classad/api.ts';
import type { SiteRecord } from '../config/sites.ts';
import type { BackoffView, ConnectionView, Measures, SiteCapacity } from '../queue/tables.ts';
import type { SiteLoad } from './load.ts';

/** Our jobs at a site: given to it but still at home, in its queue, running. */
export interface JobsThere {
  readonly here: number;
  readonly queued: number;
  readonly running: number;
}

/** Everything known about a site: from its configuration, its own reports, and our jobs there. */
export interface KnownSite {
  readonly record: SiteRecord;
  readonly capacityPoll: SiteCapacity | undefined;
  readonly connection: Pick<ConnectionView, 'connection' | 'message'> | undefined;
  readonly jobs: JobsThere;
  readonly backoff: BackoffView;
  readonly measures: Measures;
}

/** A site as the broker sees it. */
export interface CandidateSite {
  readonly name: string;
  readonly ad: ClassAd;
  readonly load: SiteLoad;
  readonly cost: number;
}
