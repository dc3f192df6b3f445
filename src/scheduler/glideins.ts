import type { Paths } from '../config/paths.ts';
import type { Settings } from '../config/settings.ts';
import { POOL_SITE, type SiteRecord } from '../config/sites.ts';
import { knownSites, measuresOf } from '../broker/known-sites.ts';
import { condorArch } from '../broker/site-ad.ts';
import type { KnownSite } from '../broker/sites.ts';
import type { ClassAd } from '../classad/api.ts';
import { asError, GryphusError } from '../errors.ts';
import { PilotTracker, type Pilot } from '../glidein/pilot-tracker.ts';
import { addFailures, failuresAt } from '../glidein/failures.ts';
import { type Demand, factory, LIMITS, type Supply } from '../glidein/factory.ts';
import { KindTimes, kindOf } from '../glidein/kind-times.ts';
import { orderGlideins, type OrderWorld } from '../glidein/order.ts';
import { asAttributes, rememberRuntimes } from '../glidein/runtimes-seen.ts';
import { expectedAd, maySuit, pilotAd, suits } from '../glidein/matches.ts';
import type { EventEntry, Queue } from '../queue/api.ts';
import { adOf, readBoolean } from '../job/values.ts';
import type { Listener } from './listener.ts';
import { PortKeeper } from './port-keeper.ts';

export interface GlideinKeeperOptions {
  readonly queue: Queue;
  readonly paths: Paths;
  readonly settings: Settings;
  readonly owner: string;
  readonly loadSites: () => Promise<ReadonlyMap<string, SiteRecord>>;
  readonly log: (message: string, facts?: object) => void;
}

/** Maximum number of waiting jobs that one round reads of each place; the rest are assumed to be similar. */
const MOST_JOBS = 1000;

/** Tracks pilots, and starts and withdraws those that the factory decides on. Rounds never overlap. */
export class GlideinKeeper implements Listener {
  readonly #options: GlideinKeeperOptions;
  readonly #world: OrderWorld;
  readonly #pilotTracker: PilotTracker;
  readonly #times: KindTimes;
  readonly #port: PortKeeper;
  #hasWork = true;

  constructor(options: GlideinKeeperOptions) {
    this.#options = options;
    this.#world = { ...options, now: () => Math.floor(Date.now() / 1000) };
    this.#pilotTracker = new PilotTracker(this.#world);
    this.#times = new KindTimes(options.queue);
    this.#port = new PortKeeper(options.log);
  }

  /** Learns the run times of pool jobs. */
  async hear(entries: readonly EventEntry[]): Promise<void> {
    await this.#times.hear(entries);
  }

  /**
   * Passes only an unavailable queue on to the Scheduler; other errors with pilots are logged, and retried in the next
   * round.
   */
  async round(): Promise<void> {
    try {
      await this.#look();
    } catch (thrown) {
      if (thrown instanceof GryphusError && thrown.code === 'queue-unavailable') throw thrown;
      this.#options.log('glideins are not managed now', { why: asError(thrown).message });
    }
  }

  /** Whether, at the last round, there were pilots, or sites for some. */
  get hasWork(): boolean {
    return this.#hasWork;
  }

  async #look(): Promise<void> {
    this.#port.want(this.#options.settings['glidein.listen']);
    for (const [site, failures] of await this.#pilotTracker.tend()) {
      await addFailures(this.#options.queue.kv, site, failures, this.#world.now());
      for (const { job, message } of failures) this.#options.log('a pilot could not run', { site, job, message });
    }
    const sites = [...(await this.#options.loadSites()).values()].filter((site) => site.glidein.max > 0);
    this.#hasWork = sites.length > 0 || this.#pilotTracker.hasPilots;
    if (sites.length > 0) await this.#produce(sites);
  }

  /** From now on, nothing is started on this machine. */
  leave(): void {
    this.#port.leave();
  }

  async close(): Promise<void> {
    this.leave();
    this.#port.close();
    await this.#pilotTracker.close();
  }

  async #produce(sites: readonly SiteRecord[]): Promise<void> {
    const { queue, log } = this.#options;
    const pilots = (await this.#pilotTracker.pilots()).filter((pilot) => pilot.is !== 'ending');
    const ours = pilots.filter((pilot) => pilot.by === 'factory');
    const known = new Map(
      (await knownSites(queue, new Map(sites.map((one) => [one.name, one])))).map((one) => [one.record.name, one]),
    );
    const seen = await rememberRuntimes(queue.kv, pilots, this.#world.now());
    const demands = await this.#demands(
      sites.map((site) => ({
        name: site.name,
        // Only the factory's own pilots; those started by hand may have another size.
        home: ours.flatMap((pilot) => (pilot.site === site.name && pilot.ad ? [pilotAd(pilot.ad)] : [])).slice(0, 3),
        expected: expectedAd(site, condorArchSite(known.get(site.name)), asAttributes(seen.get(site.name))),
      })),
    );
    if (demands.length === 0 && ours.every((pilot) => pilot.is !== 'waiting')) return;
    const supplies: Supply[] = [];
    for (const { name, glidein } of sites) {
      const { wait } = await measuresOf(queue.kv, name);
      const connection = known.get(name)?.connection?.connection;
      supplies.push({
        site: name,
        most: glidein.max,
        cores: glidein.cores,
        ...(glidein.memoryMb === undefined ? {} : { memoryMb: glidein.memoryMb }),
        gpus: glidein.gpus,
        walltime: glidein.walltime,
        open: connection === undefined || connection === 'up' || connection === 'unused',
        ...supplyOf(pilots.filter((pilot) => pilot.site === name)),
        ...(wait === undefined ? {} : { wait }),
        failures: (await failuresAt(queue.kv, name, this.#world.now())).length,
      });
    }
    const plan = factory(demands, supplies, { ...LIMITS, most: this.#options.settings['glidein.most'] });
    for (const [name, count] of plan.withdraw) {
      const waiting = ours.filter((pilot) => pilot.site === name && pilot.is === 'waiting');
      await this.#pilotTracker.remove(waiting.slice(-count));
    }
    for (const site of sites) {
      const count = plan.start.get(site.name) ?? 0;
      if (count === 0) continue;
      const { cores, memoryMb, gpus, walltime } = site.glidein;
      const machine = known.get(site.name)?.capacityPoll?.arch;
      try {
        await orderGlideins(this.#world, { site, count, cores, memoryMb, gpus, walltime, by: 'factory', machine });
      } catch (thrown) {
        if (!(thrown instanceof GryphusError)) throw thrown;
        log('the factory could not request pilots', { site: site.name, why: thrown.message });
      }
    }
    if (plan.start.size + plan.withdraw.size > 0) log('the factory', { because: plan.because });
  }

  /** Demand in the pool by kind of job, and which sites' pilots would not run each kind. */
  async #demands(sites: readonly SitePilots[]): Promise<Demand[]> {
    const { queue } = this.#options;
    const kinds = new Map<string, Demand>();
    const { places } = await queue.totals();
    for (const { manager, state, jobs } of places.filter((place) => place.site === POOL_SITE.name)) {
      if (!WAITS.has(state) || jobs === 0) continue;
      const first = await queue.nextJobs({ manager, site: POOL_SITE.name, state, limit: MOST_JOBS });
      const weight = first.length === 0 ? 0 : jobs / first.length;
      for (const { attrs } of first) {
        if (readBoolean(attrs, 'WantGlidein') === false) continue;
        const { name, ...size } = kindOf(attrs);
        const id = `${name}\0${attrs.get('Requirements') ?? ''}`;
        const known = kinds.get(id) ?? { kind: name, idle: 0, ...size, refused: refusing(adOf(attrs), sites) };
        kinds.set(id, { ...known, idle: known.idle + weight });
      }
    }
    return Promise.all(
      [...kinds.values()].map(async (demand) => {
        const runSeconds = await this.#times.of(demand.kind);
        return { ...demand, idle: Math.round(demand.idle), ...(runSeconds === undefined ? {} : { runSeconds }) };
      }),
    );
  }
}

/** A site's pilots, as job matching sees them. */
interface SitePilots {
  readonly name: string;
  /** Some of the factory's pilots that are connected now. */
  readonly home: readonly ClassAd[];
  readonly expected: ClassAd;
}

function refusing(job: ClassAd, sites: readonly SitePilots[]): ReadonlySet<string> {
  const will = ({ home, expected }: SitePilots): boolean =>
    home.length > 0 ? home.some((pilot) => suitsNowOrSoon(job, pilot)) : maySuit(job, expected);
  return new Set(sites.filter((site) => !will(site)).map(({ name }) => name));
}

/** Whether the job matches now, or may match soon: a new pilot is still detecting its container runtimes. */
function suitsNowOrSoon(job: ClassAd, pilot: ClassAd): boolean {
  return suits(job, pilot) || (pilot.find('HasContainer') === undefined && maySuit(job, pilot));
}

function condorArchSite(site: KnownSite | undefined): string | undefined {
  return site?.capacityPoll && condorArch(site.capacityPoll.arch);
}

const WAITS: ReadonlySet<string> = new Set(['idle', 'preparing', 'prepared', 'committed']);

function supplyOf(pilots: readonly Pilot[]): Pick<Supply, 'waiting' | 'running' | 'free'> {
  const running = pilots.filter((pilot) => pilot.is === 'running' || pilot.is === 'home' || pilot.is === 'draining');
  // A pilot that runs but has not connected yet will do so soon: its cores count as free.
  const free = running.filter((pilot) => pilot.is !== 'draining');
  return {
    waiting: pilots.filter((pilot) => pilot.is === 'waiting').map((pilot) => pilot.age),
    running: running.length,
    free: free.map(({ cores, busy, left, ad }) => ({
      cpus: Math.max(0, cores - busy),
      ...(ad === undefined ? {} : { memoryMb: Number(ad['Memory'] ?? 0), gpus: Number(ad['GPUs'] ?? 0) }),
      ...(left === undefined ? {} : { left }),
    })),
  };
}
