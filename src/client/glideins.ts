import { knownSites } from '../broker/known-sites.ts';
import type { Paths } from '../config/paths.ts';
import type { Settings } from '../config/settings.ts';
import { loadSite } from '../config/sites.ts';
import { GryphusError } from '../errors.ts';
import { PilotTracker, type Pilot } from '../glidein/pilot-tracker.ts';
import { allFailures } from '../glidein/failures.ts';
import { orderGlideins, type OrderWorld } from '../glidein/order.ts';
import type { Queue } from '../queue/api.ts';
import type { Failure } from '../queue/tables.ts';

/** How many workers are sent to which site, and how large each is. */
export interface GlideinRequest {
  readonly site: string;
  readonly count: number;
  /** Default: the site's configuration. */
  readonly cores?: number;
  readonly memoryMb?: number;
  readonly gpus?: number;
  /** Seconds. */
  readonly walltime?: number;
}

/** Which pilots are listed or stopped. */
export interface GlideinSelection {
  /** Pilots' jobs (`12.3`) or clusters. If absent, all pilots of `site`; without a site, all pilots. */
  readonly jobs?: readonly string[];
  readonly site?: string;
}

/** Workers sent to sites as jobs. */
export class GlideinClient {
  readonly #world: OrderWorld;

  constructor(queue: Queue, paths: Paths, settings: Settings, owner: string) {
    const log = (): void => undefined;
    this.#world = { queue, paths, settings, owner, log, now: () => Math.floor(Date.now() / 1000) };
  }

  /** Requests workers from a site; returns the cluster of their pilots once it is on disk. */
  async start({
    site: name,
    count,
    cores,
    memoryMb,
    gpus,
    walltime,
  }: GlideinRequest): Promise<{ readonly cluster: number }> {
    const { queue, paths } = this.#world;
    const site = await loadSite(paths, name);
    const [known] = await knownSites(queue, new Map([[name, site]]));
    const { cluster } = await orderGlideins(this.#world, {
      site,
      count,
      cores: cores ?? site.glidein.cores,
      memoryMb: memoryMb ?? site.glidein.memoryMb,
      gpus: gpus ?? site.glidein.gpus,
      walltime: walltime ?? site.glidein.walltime,
      by: 'hand',
      machine: known?.capacityPoll?.arch,
    });
    if (cluster === undefined) throw new GryphusError('internal', 'The pilots have no cluster.');
    return { cluster };
  }

  /** Every pilot that is not over. */
  async list(): Promise<readonly Pilot[]> {
    return this.#withPilotTracker((pilotTracker) => pilotTracker.pilots());
  }

  /** Pilots that failed within the last hour, by site, oldest first. */
  async failures(): Promise<ReadonlyMap<string, readonly Failure[]>> {
    return allFailures(this.#world.queue.kv, this.#world.now());
  }

  /** `drain`: let running jobs finish first. Returns the pilots that were told to stop. */
  async stop(selection: GlideinSelection, drain: boolean): Promise<readonly Pilot[]> {
    return this.#withPilotTracker(async (pilotTracker) => {
      const chosen = (await pilotTracker.pilots()).filter(
        (pilot) => pilot.is !== 'ending' && isMeant(pilot, selection),
      );
      if (drain) await pilotTracker.drain(chosen);
      else await pilotTracker.remove(chosen);
      return chosen;
    });
  }

  async #withPilotTracker<T>(work: (pilotTracker: PilotTracker) => Promise<T>): Promise<T> {
    const pilotTracker = new PilotTracker(this.#world);
    try {
      return await work(pilotTracker);
    } finally {
      await pilotTracker.close();
    }
  }
}

function isMeant(pilot: Pilot, { jobs, site }: GlideinSelection): boolean {
  if (site !== undefined && pilot.site !== site) return false;
  if (jobs === undefined || jobs.length === 0) return true;
  return jobs.includes(pilot.job) || jobs.includes(String(pilot.id.cluster));
}
