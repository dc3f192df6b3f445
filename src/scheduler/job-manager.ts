import type { SiteRecord } from '../config/sites.ts';
import { managerIdentity } from '../job/identity.ts';
import { readString } from '../job/values.ts';
import type { JobRecord } from '../queue/api.ts';

/** The identity of the GridManager that handles the job at this site. */
export function managerOf(job: JobRecord, site: SiteRecord): string {
  const subject = readString(job.attrs, 'x509UserProxySubject');
  return managerIdentity(readString(job.attrs, 'Owner') ?? '', subject ?? site.credential);
}
