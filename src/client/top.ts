import type { Paths } from '../config/paths.ts';
import { POOL_SITE } from '../config/sites.ts';
import { formatJobId, type JobId } from '../job/ids.ts';
import { JOB_STATUS, LIFE } from '../job/life.ts';
import { UNIVERSE } from '../job/universe.ts';
import { readNumber, readString } from '../job/values.ts';
import { askCentralManager } from '../pool/central-manager-client.ts';
import { poolPlaces } from '../pool/host/places.ts';
import type { JobRecord, Queue } from '../queue/api.ts';
import { selectJobs } from './select.ts';
import type { Selections } from './types.ts';

/** A running job and its resource use, as far as known; for jobs outside the pool, only the time. */
export interface TopRow {
  readonly id: JobId;
  readonly owner: string;
  readonly command: string;
  readonly site: string;
  readonly host: string;
  readonly suspended: boolean;
  /** Seconds since it started. */
  readonly elapsed: number | undefined;
  readonly cpuSeconds: number | undefined;
  readonly memoryKb: number | undefined;
  readonly processes: number | undefined;
}

/** What these jobs use now, leaving out those that do not run. */
export async function topOf(queue: Queue, paths: Paths, selections: Selections): Promise<TopRow[]> {
  const now = await running(paths);
  const rows: TopRow[] = [];
  for await (const { id, state, site, attrs } of selectJobs(queue, selections)) {
    const shows = JOB_STATUS[LIFE[state].shows];
    if (shows !== JOB_STATUS.running && shows !== JOB_STATUS.suspended) continue;
    const seen = site === POOL_SITE.name ? now.get(`${queue.agent}.${formatJobId(id)}`) : undefined;
    const started = seen?.startedAt ?? readNumber(attrs, 'JobCurrentStartDate');
    rows.push({
      id,
      owner: readString(attrs, 'Owner') ?? '',
      command: isDag(attrs) ? 'dagman' : (readString(attrs, 'Cmd') ?? ''),
      site,
      host: seen?.host ?? readString(attrs, 'RemoteHost') ?? '',
      suspended: seen ? seen.is === 'suspended' : shows === JOB_STATUS.suspended,
      elapsed: started === undefined ? undefined : Math.max(0, Date.now() / 1000 - started),
      cpuSeconds: seen?.usage?.cpuSeconds,
      memoryKb: seen?.usage?.rssKb,
      processes: seen?.usage?.processes,
    });
  }
  return rows;
}

function isDag(attrs: JobRecord['attrs']): boolean {
  return readNumber(attrs, 'JobUniverse') === UNIVERSE.scheduler && attrs.has('DAG_NodesTotal');
}

/** What runs in the pool, by job; empty if no central manager runs. */
async function running(paths: Paths) {
  const centralManager = askCentralManager(poolPlaces(paths).clientSocket, 'top');
  try {
    const { runs } = await centralManager.ask({ t: 'top' }, 'tops');
    return new Map(runs.map((run) => [run.job, run]));
  } catch {
    return new Map<string, never>();
  } finally {
    await centralManager.close();
  }
}
