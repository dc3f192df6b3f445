import { candidateOf } from '../broker/site-ad.ts';
import { choose } from '../broker/choose.ts';
import { capacityFor } from '../broker/load.ts';
import { knownSites, measuresOf } from '../broker/known-sites.ts';
import { observe, type Sample } from '../broker/measures.ts';
import { isOwnRequest, SampleTaker } from '../broker/samples.ts';
import { siteBackoffs } from '../broker/site-backoff.ts';
import { type BackoffView, BROKER, CAPACITY_WANTED, SITE_MEASURES } from '../queue/tables.ts';
import type { CandidateSite, KnownSite } from '../broker/sites.ts';
import { type TakeBack, takeBack, type Waiting } from '../broker/take-back.ts';
import type { SiteRecord } from '../config/sites.ts';
import { narrowing, type ReportFault, Troubles } from '../job/faults.ts';
import { formatJobId, parseJobId } from '../job/ids.ts';
import { adOf, quoted, readNumber } from '../job/values.ts';
import type { Change, EventEntry, JobRecord, Lease, Queue } from '../queue/api.ts';
import { UNIVERSE } from '../job/universe.ts';
import { floodJobs, isFlooded } from './flooding.ts';
import { managerOf } from '../job/identity.ts';
import type { Listener } from './listener.ts';

export interface BrokerOptions {
  readonly queue: Pick<
    Queue,
    'kv' | 'totals' | 'get' | 'query' | 'nextJobs' | 'transitionMany' | 'clusters' | 'cluster' | 'candidates'
  >;
  readonly loadSites: () => Promise<ReadonlyMap<string, SiteRecord>>;
  /** How long a job may wait at one site, seconds; a job's GryphusMaxWait takes precedence. */
  readonly patience: () => number;
  /** Maximum number of sites at which a flooded job (`want_flood`) is queued at the same time. */
  readonly floodSites: () => number;
  readonly log: (message: string, facts?: object) => void;
  readonly onFault: ReportFault;
  readonly now?: () => number;
}

/** Maximum number of jobs that one round reads; the rest wait for the next round. */
const MOST = 10_000;
/** How often jobs waiting at sites are checked, milliseconds. */
const LOOK_BACK_MS = 5_000;

/** How long a first choice waits for sites that have not answered yet, milliseconds. */
const LISTEN_MS = 10_000;
const GONE: ReadonlySet<string> = new Set(['down', 'needs-login', 'refused']);

const COMES: ReadonlySet<string> = new Set(['submitted', 'materialized', 'edited', 'cluster-edited']);

/**
 * The personal resource broker (Condor-G, section 4.4): routes jobs without a site to the site that suits them best.
 */
export class Broker implements Listener {
  readonly #options: BrokerOptions;
  readonly #taker = new SampleTaker();
  /** Whether a cluster's jobs are routed by the broker, by cluster. */
  readonly #ours = new Map<number, boolean>();
  #lookedBackAt = 0;
  #hasWork = true;
  /** At the last look back there were jobs that the broker had routed and that had not started. */
  #waitingSeen = true;
  /** Unix milliseconds. */
  #listenUntil: number | undefined;
  /** Whether there may be flooded jobs that have not started. */
  #mayFlood = true;

  readonly #troubles: Troubles;

  constructor(options: BrokerOptions) {
    this.#options = options;
    this.#troubles = new Troubles(options.onFault, () => this.#now());
  }

  /** Updates the sites' measurements from the events of their jobs. */
  async hear(entries: readonly EventEntry[]): Promise<void> {
    const { queue } = this.#options;
    const taken: { readonly job: string; readonly site?: string; readonly sample: Sample }[] = [];
    for (const { event } of entries) {
      if (COMES.has(event.type) || (event.type === 'transition' && event.to === 'idle')) this.#mayFlood = true;
      if (event.type === 'candidate') {
        const { job, site } = event;
        for (const sample of this.#taker.takeCandidate(event)) taken.push({ job, site, sample });
      }
      if (event.type !== 'transition') continue;
      for (const sample of this.#taker.take(event)) taken.push({ job: event.job, sample });
    }
    const names = new Set(taken.map(({ job }) => job));
    const ids = [...names].flatMap((name) => parseJobId(name) ?? []);
    const jobs = new Map((ids.length === 0 ? [] : await queue.get(ids)).map((job) => [formatJobId(job.id), job]));
    const bySite = new Map<string, Sample[]>();
    for (const { job: name, site: named, sample } of taken) {
      const job = jobs.get(name);
      const site = named ?? job?.site ?? '';
      if (site === '') continue;
      if (job && sample.is === 'failure' && isOwnRequest(job.attrs, sample.message ?? '')) continue;
      bySite.set(site, [...(bySite.get(site) ?? []), sample]);
    }
    for (const [site, all] of bySite) {
      await SITE_MEASURES.set(queue.kv, site, all.reduce(observe, await measuresOf(queue.kv, site)));
    }
  }

  /** Whether, at the last round, there were jobs to route, or that may be taken back. */
  get hasWork(): boolean {
    return this.#hasWork;
  }

  /** Chooses sites for jobs without one, and takes back jobs that have waited too long. */
  async round(lease: Lease): Promise<void> {
    const { queue, loadSites } = this.#options;
    const { places } = await queue.totals();
    const managers = places.filter(({ site, state, jobs }) => site === '' && state === 'idle' && jobs > 0);
    const lookBack = Math.abs(this.#now() - this.#lookedBackAt) >= LOOK_BACK_MS;
    const waiting = lookBack ? await this.#waiting() : [];
    this.#hasWork = managers.length > 0 || this.#waitingSeen;
    if (managers.length === 0 && waiting.length === 0) return;
    const now = Math.floor(this.#now() / 1000);
    const records = await loadSites();
    const known = await knownSites(queue, records);
    const sites = known.map((site) => candidateOf(site, now));
    if (managers.length > 0 && this.#shouldListen(known)) return;
    const free = sites.reduce((sum, { load }) => sum + capacityFor(load, 1), 0);
    const candidates = (await queue.candidates.places()).reduce((sum, place) => sum + place.candidates, 0);
    // Even if all sites are full, flooded jobs may still be queued there.
    const wanted = free > 0 || this.#mayFlood;
    if (wanted) this.#mayFlood = false;
    for (const { manager, jobs } of wanted ? managers : []) {
      // Most rounds fill only a few places; more jobs are read only if the first ones match no site.
      const first = Math.min(MOST, Math.max(500, 2 * free) + candidates);
      const placed = await this.#choose(manager, first, sites, records, lease);
      if (placed === 0 && jobs > first) await this.#choose(manager, MOST, sites, records, lease);
    }
    if (waiting.length > 0) await this.#takeBack(waiting, sites, lease);
  }

  /** Whether to wait a moment for sites that have not reported yet. */
  #shouldListen(sites: readonly KnownSite[]): boolean {
    const now = this.#now();
    const silent = sites.some(
      ({ capacityPoll, connection }) =>
        (capacityPoll === undefined || capacityPoll.validUntil < now) && !GONE.has(connection?.connection ?? 'unused'),
    );
    if (!silent) this.#listenUntil = undefined;
    else this.#listenUntil ??= now + LISTEN_MS;
    return this.#listenUntil !== undefined && now < this.#listenUntil && this.#listenUntil - now <= LISTEN_MS;
  }

  async #choose(
    manager: string,
    limit: number,
    sites: readonly CandidateSite[],
    records: ReadonlyMap<string, SiteRecord>,
    lease: Lease,
  ): Promise<number> {
    const now = Math.floor(this.#now() / 1000);
    const jobs = await this.#options.queue.nextJobs({ manager, site: '', state: 'idle', limit });
    const flooded = jobs.filter(isFlooded);
    if (flooded.length > 0) this.#mayFlood = true;
    const { queue, floodSites } = this.#options;
    const most = floodSites();
    const bidding = await floodJobs(flooded, { queue, sites, records, most, now, lease });
    const others = flooded.length === 0 ? jobs : [...jobs.filter((job) => !isFlooded(job)), ...bidding.left];
    const choices = await this.#chosen(others, sites, now);
    const changes = choices.flatMap(({ job, site, because }): Change[] => {
      const record = records.get(site);
      if (record === undefined) return [];
      return [
        {
          id: job.id,
          from: 'idle',
          route: { manager: managerOf(job, record), site },
          set: {
            GridResource: quoted(`batch ${record.batch} ${site}`),
            GryphusRoutedAt: String(now),
            GryphusChoice: quoted(because),
          },
        },
      ];
    });
    if (changes.length === 0) return bidding.done;
    await queue.transitionMany(changes, lease);
    this.#options.log('sites chosen', { jobs: changes.length });
    return changes.length + bidding.done;
  }

  /** A job whose ad cannot be matched must not prevent the others from being routed. */
  async #chosen(jobs: readonly JobRecord[], sites: readonly CandidateSite[], now: number) {
    const ofThese = (some: readonly JobRecord[]) => choose(some, ({ attrs }) => adOf(attrs), sites, now).choices;
    const sound = jobs.filter((job) => !this.#troubles.isResting(job));
    try {
      return ofThese(sound);
    } catch (thrown) {
      const { failed } = await narrowing(sound, async (some) => ofThese(some));
      if (failed.size === 0) throw thrown;
      for (const [job, why] of failed) this.#troubles.met(job, 'choosing the site', why);
      return ofThese(sound.filter((job) => !failed.has(job)));
    }
  }

  /** Jobs that the broker routed and that have waited too long, or whose site is out of use. */
  async #waiting(): Promise<Waiting<JobRecord>[]> {
    const { queue, patience } = this.#options;
    this.#lookedBackAt = this.#now();
    const now = Math.floor(this.#now() / 1000);
    const waiting: Waiting<JobRecord>[] = [];
    const backoff = await siteBackoffs(queue.kv);
    const clusters = await queue.clusters();
    const live = new Set(clusters.map(({ cluster }) => cluster));
    for (const known of this.#ours.keys()) if (!live.has(known)) this.#ours.delete(known);
    for (const { cluster, counts } of clusters) {
      if ((counts.committed ?? 0) + (counts.prepared ?? 0) + (counts.idle ?? 0) === 0 || !(await this.#isOurs(cluster)))
        continue;
      for await (const job of queue.query({ clusters: [cluster], states: ['idle', 'prepared', 'committed'] })) {
        const since = readNumber(job.attrs, 'GryphusRoutedAt');
        if (since === undefined || job.site === '') continue;
        waiting.push({
          job,
          ad: adOf(job.attrs),
          site: job.site,
          waited: now - since,
          patience: readNumber(job.attrs, 'GryphusMaxWait') ?? patience(),
          abandoned: isAbandoned(job, backoff.get(job.site), this.#now()),
        });
      }
    }
    this.#waitingSeen = waiting.length > 0;
    const impatient = waiting.filter((one) => one.waited >= one.patience || one.abandoned);
    if (impatient.length > 0) await BROKER.set(queue.kv, CAPACITY_WANTED, this.#now() + 90_000);
    return impatient;
  }

  async #isOurs(cluster: number): Promise<boolean> {
    const known = this.#ours.get(cluster);
    if (known !== undefined) return known;
    const shared = await this.#options.queue.cluster(cluster);
    const ours =
      shared !== undefined &&
      readNumber(shared.attrs, 'JobUniverse') === UNIVERSE.grid &&
      !shared.attrs.has('GridResource');
    this.#ours.set(cluster, ours);
    return ours;
  }

  /** A job that is still idle here is rerouted at once; one that waits at its site must be withdrawn there first. */
  async #takeBack(
    waiting: readonly Waiting<JobRecord>[],
    sites: readonly CandidateSite[],
    lease: Lease,
  ): Promise<void> {
    const back = takeBack(waiting, sites, Math.floor(this.#now() / 1000));
    if (back.length === 0) return;
    await this.#options.queue.transitionMany(back.map(changeOf), lease);
    this.#options.log('jobs withdrawn', { jobs: back.length });
  }

  #now(): number {
    return (this.#options.now ?? Date.now)();
  }
}

/**
 * Whether the job is at a site that is out of use, and is neither its probe nor about to become one. `now`: Unix
 * milliseconds.
 */
function isAbandoned({ state }: JobRecord, backoff: BackoffView | undefined, now: number): boolean {
  const outOfUse = backoff?.outOfUse;
  if (outOfUse === undefined) return false;
  return state === 'idle' ? outOfUse.probing || now < outOfUse.probeAt : !outOfUse.probing;
}

function changeOf({ job, from }: TakeBack<JobRecord>): Change {
  const set = { GryphusTakenBackFrom: quoted(from.join(',')) };
  if (job.state !== 'idle') return { id: job.id, attempt: job.attempt, event: 'takeback', from: job.state, set };
  return {
    id: job.id,
    from: 'idle',
    route: { manager: job.manager, site: '' },
    set: { ...set, GridResource: null, GryphusRoutedAt: null },
  };
}
