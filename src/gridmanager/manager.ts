import { join } from 'node:path';
import { GryphusError } from '../errors.ts';
import type { QueueEvent } from '../job/events.ts';
import type { SiteRecord } from '../config/sites.ts';
import type { BidPlace, Lease, Place, Queue, Work, Worker } from '../queue/api.ts';
import type { Site } from '../site/contract.ts';
import { BlobIndex } from '../staging/blobs.ts';
import { AttemptSpool } from '../staging/streams.ts';
import { deferred } from '../util/deferred.ts';
import { Gathered } from '../util/gathered.ts';
import { SharedRuns } from '../util/shared-runs.ts';
import type { CredentialGate } from './credential-gate.ts';
import type { SiteContext } from './context.ts';
import type { HealthView } from './health.ts';
import { HAS_PLACE, hasPlace, IS_THERE, isThere, type Lane, LANES, lanesWanted } from './lanes.ts';
import { MANNERS, type MannersView, SiteManners } from './manners.ts';
import { OpenSites, type SiteShare } from './open-sites.ts';
import type { RetryLimits } from './pacing.ts';
import { isAboutTheSite, SiteAgent } from './site-agent.ts';
import { staying } from './stay.ts';
import { BROKER, WANTED_UNTIL } from './survey.ts';
import type { UrlAccess } from './url-access.ts';
import { UrlInputs } from './url-inputs.ts';
import { UrlOutputs } from './url-outputs.ts';

export interface ManagerOptions {
  readonly identity: string;
  readonly queue: Queue;
  readonly spoolDir: string;
  /** The sites as configured now; asked again when a job names one that is not known. */
  readonly loadSites: () => Promise<ReadonlyMap<string, SiteRecord>>;
  /** Why the file of a site that is not among them could not be read. */
  readonly problem: (name: string) => GryphusError | undefined;
  readonly openSite: (record: SiteRecord) => Promise<Site>;
  /** How long a site is left alone that did not answer, as it is set now. */
  readonly retry: () => RetryLimits;
  readonly gate: CredentialGate;
  /** How inputs and outputs that are URLs are reached. */
  readonly urls: UrlAccess;
  /** This manager has no work left for so long: it ends. Milliseconds. */
  readonly lingerMs: number;
  readonly log: (message: string, facts?: object) => void;
  readonly now?: () => number;
  readonly random?: () => number;
}

const LEASE_MS = 15_000;
const RENEW_MS = 5_000;
/** A site that could not be opened is tried again after so long, milliseconds. */
const UNOPENED_MS = 15_000;
/** Events that come together are looked at together, milliseconds. */
const GATHER_MS = 15;
/** Lost wake-ups cost at most so long, milliseconds. */
const LOOK_AROUND_MS = 30_000;

/**
 * One user's jobs on all their sites. It keeps nothing that the queue does not have: at its start, and whenever an
 * event says that somebody did something, it looks which sites' lanes have work and wakes them.
 */
export class GridManager {
  readonly #options: ManagerOptions;
  readonly #sites: OpenSites;
  /** Sites that could not be opened, and why: each is told of once. */
  readonly #rounds = new SharedRuns<number | undefined>();
  readonly #unopenable = new Map<string, string>();
  readonly #blobs = new BlobIndex();
  readonly #spool: AttemptSpool;
  readonly #urls: SiteContext['urls'];
  readonly #stop = new AbortController();
  readonly #work: Work;
  readonly #begun = deferred<undefined>();
  #lease: Lease | undefined;
  #worker: Worker | undefined;
  #places: readonly Place[] = [];
  #bids: readonly BidPlace[] = [];
  /** How many counts of the places were begun, and which of them `#places` is. */
  #counts = 0;
  #counted = 0;
  #busyAt: number;
  #end: (reason: Error | undefined) => void = () => undefined;

  constructor(options: ManagerOptions) {
    this.#options = options;
    this.#spool = new AttemptSpool(options.spoolDir);
    this.#urls = {
      access: options.urls,
      inputs: new UrlInputs(join(options.spoolDir, '.urls', options.identity), options.urls, () => this.#now()),
      outputs: new UrlOutputs(options.urls, () => this.#now()),
    };
    this.#sites = new OpenSites({
      loadSites: options.loadSites,
      problem: options.problem,
      openSite: options.openSite,
      mannersOf: (name) => this.#manners(name),
      agentFor: (record, site, share) => this.#agentFor(record, site, share),
      now: () => this.#now(),
    });
    this.#work = options.queue.work(`gm-${options.identity}`);
    this.#busyAt = this.#now();
  }

  /** Resolves when there is no work left; rejects when it must end for another reason ('stale-epoch', say). */
  async run(): Promise<void> {
    const { queue, identity } = this.#options;
    this.#lease = await queue.acquireLease(`gm:${identity}`, LEASE_MS, { holder: String(process.pid), force: true });
    if (!this.#lease) throw new GryphusError('already-running', `A GridManager for ${identity} runs already.`);
    this.#begun.resolve(undefined);
    const ended = new Promise<Error | undefined>((resolve) => {
      this.#end = resolve;
    });
    const timers = [
      setInterval(() => void this.#guard(this.#renew()), RENEW_MS),
      setInterval(() => void this.#guard(this.#lookAround()), LOOK_AROUND_MS),
      setInterval(() => this.#endWhenIdle(), Math.min(1000, this.#options.lingerMs)),
    ];
    this.#worker = await this.#work.run(this.#handlers(), { concurrency: 64, fresh: true });
    const events = this.#guard(this.#follow());
    await this.#guard(this.#lookAround());
    const reason = await ended;
    for (const timer of timers) clearInterval(timer);
    this.#stop.abort();
    await this.#close();
    await events;
    if (reason) throw reason;
  }

  /** Ends it in order: what runs now is let end, nothing new begins. */
  end(): void {
    this.#end(undefined);
  }

  /** Somebody logged in to the site. */
  async encourage(site: string): Promise<void> {
    await this.#sites.use(site, async ({ agent }) => agent.encourage());
    for (const lane of LANES) await this.#wake(site, lane);
  }

  /** The open site, for a log-in; one that comes before the work has begun waits for it. */
  async site(name: string): Promise<Site> {
    await this.#begun.promise;
    return this.#sites.use(name, async ({ site }) => site);
  }

  #handlers(): Record<Lane, (item: { readonly id: string }) => Promise<{ againInMs: number } | undefined>> {
    const handler = (lane: Lane) => async (item: { readonly id: string }) => {
      const run = () => this.#round(item.id, lane).catch((thrown: unknown) => this.#fail(thrown));
      const again = await this.#rounds.run(`${lane}/${item.id}`, run);
      return again === undefined || this.#stop.signal.aborted ? undefined : { againInMs: again };
    };
    return {
      submit: handler('submit'),
      watch: handler('watch'),
      results: handler('results'),
      cancel: handler('cancel'),
      survey: handler('survey'),
    };
  }

  async #round(name: string, lane: Lane): Promise<number | undefined> {
    if (this.#stop.signal.aborted) return undefined;
    this.#busyAt = this.#now();
    const began = this.#counts;
    let opened = false;
    let again: number | undefined;
    try {
      again = await this.#sites.use(name, ({ agent }) => {
        opened = true;
        return agent.round(lane);
      });
    } catch (thrown) {
      if (opened) throw thrown;
      return await this.#unopened(name, thrown);
    }
    this.#busyAt = this.#now();
    if (lane !== 'watch' || again === undefined) return again;
    return (await this.#hasWork(name, 'watch', began)) ? again : undefined;
  }

  /** A site that cannot be opened (it is not configured any more, say) is told of, and the other sites go on. */
  async #unopened(name: string, thrown: unknown): Promise<number> {
    if (!isAboutTheSite(thrown)) throw thrown;
    if (this.#unopenable.get(name) === thrown.message) return UNOPENED_MS;
    this.#unopenable.set(name, thrown.message);
    await this.#tell(name, { connection: 'refused', words: thrown.message, since: this.#now() });
    return UNOPENED_MS;
  }

  #agentFor(record: SiteRecord, site: Site, share: SiteShare): SiteAgent {
    const { name } = record;
    const lease = this.#lease;
    if (!lease) throw new Error('The work at a site begins with the lease.');
    return new SiteAgent(
      {
        agent: this.#options.queue.agent,
        manager: this.#options.identity,
        lease,
        queue: this.#options.queue,
        record,
        site,
        blobs: this.#blobs,
        spool: this.#spool,
        gate: this.#options.gate,
        urls: this.#urls,
        ...share,
        now: () => this.#now(),
        wake: (lane) => void this.#guard(this.#wake(name, lane)),
        isFollowed: () => this.#isFollowed(),
      },
      {
        placed: () => this.#placed(name),
        there: () => this.#there(name),
        surveyWanted: () => this.#surveyWanted(),
        random: this.#options.random ?? Math.random,
        retry: this.#options.retry,
        onHealth: (view, at) => this.#tell(at, view),
        onWords: (view, at) => this.#note(at, view),
      },
    );
  }

  /** The state of a site for all who ask. */
  async #note(site: string, view: HealthView): Promise<void> {
    const { queue, identity } = this.#options;
    await queue.kv.set('site-status', `${identity}/${site}`, JSON.stringify(view));
  }

  /** A site that came or went: its state, and a notice for those who listen. */
  async #tell(site: string, view: HealthView): Promise<void> {
    const { queue, identity } = this.#options;
    await this.#note(site, view);
    const about =
      view.connection === 'up' ? 'site-up' : view.connection === 'needs-login' ? 'site-needs-login' : 'site-down';
    await queue.notice({
      about,
      site,
      manager: identity,
      message: view.words === '' ? `Site ${site} answers.` : view.words,
    });
    if (view.connection === 'up') for (const lane of LANES) await this.#wake(site, lane);
  }

  async #lookAround(): Promise<void> {
    const places = await this.#count();
    const wanted = this.#lanesWanted();
    await Promise.all([...wanted].flatMap(([site, lanes]) => [...lanes].map((lane) => this.#wake(site, lane))));
    if (await this.#surveyWanted()) {
      for (const { name, batch } of (await this.#options.loadSites()).values())
        if (batch !== 'pool') await this.#wake(name, 'survey');
    }
    if (wanted.size > 0 || unrouted(places)) this.#busyAt = this.#now();
  }

  async #surveyWanted(): Promise<boolean> {
    if (unrouted(this.#places)) return true;
    const until = await this.#options.queue.kv.get(BROKER, WANTED_UNTIL);
    return Number(until?.value ?? 0) > this.#now();
  }

  async #count(): Promise<readonly Place[]> {
    const { queue } = this.#options;
    const count = ++this.#counts;
    const [totals, bids] = await Promise.all([queue.totals(), queue.bids.places()]);
    this.#places = totals.places.filter((place) => place.manager === this.#options.identity);
    this.#bids = bids.filter((place) => place.manager === this.#options.identity);
    this.#counted = count;
    return this.#places;
  }

  #lanesWanted(): ReturnType<typeof lanesWanted> {
    return lanesWanted(this.#places, this.#bids);
  }

  async #placed(site: string): Promise<number> {
    const places = await this.#count();
    const jobs = places.filter((p) => p.site === site && HAS_PLACE.includes(p.state));
    const bids = this.#bids.filter((p) => p.site === site && hasPlace(p));
    return jobs.reduce((sum, p) => sum + p.jobs, 0) + bids.reduce((sum, p) => sum + p.bids, 0);
  }

  async #there(site: string): Promise<number> {
    const places = await this.#count();
    const jobs = places.filter((p) => p.site === site && IS_THERE.includes(p.state));
    const bids = this.#bids.filter((p) => p.site === site && isThere(p));
    return jobs.reduce((sum, p) => sum + p.jobs, 0) + bids.reduce((sum, p) => sum + p.bids, 0);
  }

  /** What an earlier GridManager learned of the site, and where this one writes it down. */
  async #manners(site: string): Promise<SiteManners> {
    const { kv } = this.#options.queue;
    const key = `${this.#options.identity}/${site}`;
    const known = await kv.get(MANNERS, key);
    const view = known === undefined ? undefined : (JSON.parse(known.value) as MannersView);
    return new SiteManners(view, this.#now(), async (news) => {
      await kv.set(MANNERS, key, JSON.stringify(news));
    });
  }

  /** By a count that began after `began`: what was committed before the lane's round is in no earlier one. */
  async #hasWork(site: string, lane: Lane, began: number): Promise<boolean> {
    if (this.#counted <= began) await this.#count();
    return this.#lanesWanted().get(site)?.has(lane) === true;
  }

  async #isFollowed(): Promise<boolean> {
    const signs = await this.#options.queue.kv.list('followed');
    return signs.some(({ value }) => Number(value) > this.#now());
  }

  #wake(site: string, lane: Lane): Promise<void> {
    return this.#work.wake(lane, site, null);
  }

  /** Reacts to what others did: submits, routes and users' actions; our own transitions wake their lanes themselves. */
  async #follow(): Promise<void> {
    const lookAround = new Gathered(() => void this.#guard(this.#lookAround()), GATHER_MS);
    for await (const { event } of this.#options.queue.subscribe({ signal: this.#stop.signal })) {
      if (event.type === 'notice' && event.about === 'credential-renewed') await this.#renewed(event.site);
      if (event.type === 'transition' && event.event === 'adopted') await this.#listAgain();
      if (isFromOutside(event)) lookAround.want();
    }
    lookAround.end();
  }

  /** A credential is fresh: who was refused tries at once, and the copies at the sites are made anew. */
  async #renewed(site: string | undefined): Promise<void> {
    for (const name of this.#sites.names)
      if (site === undefined || name === site)
        await this.encourage(name).catch((thrown: unknown) => this.#fail(thrown));
  }

  /** What the sites said before of an attempt that is ours only now was passed over. */
  async #listAgain(): Promise<void> {
    for (const name of this.#sites.names)
      await this.#sites
        .use(name, async ({ agent }) => agent.listAgain())
        .catch((thrown: unknown) => this.#fail(thrown));
  }

  async #renew(): Promise<void> {
    if (this.#lease && !(await this.#options.queue.renewLease(this.#lease, LEASE_MS))) {
      throw new GryphusError('stale-epoch', `Another GridManager serves ${this.#options.identity} now; this one ends.`);
    }
  }

  #endWhenIdle(): void {
    if (this.#now() - this.#busyAt < this.#options.lingerMs) return;
    void this.#guard(this.#endWithoutWork());
  }

  async #endWithoutWork(): Promise<void> {
    const places = await this.#count();
    if (this.#lanesWanted().size > 0 || unrouted(places)) return;
    if (!(await staying(this.#options.queue, this.#now())).has(this.#options.identity)) this.#end(undefined);
  }

  /** Background work: a queue that is away is waited for, anything else ends this process. */
  async #guard(work: Promise<unknown>): Promise<void> {
    try {
      await work;
    } catch (thrown) {
      this.#fail(thrown);
    }
  }

  #fail(thrown: unknown): number | undefined {
    if (this.#stop.signal.aborted) return undefined;
    if (thrown instanceof GryphusError && thrown.retry === 'later') {
      this.#options.log('trying again', { error: thrown.message });
      return 1000;
    }
    this.#end(thrown instanceof Error ? thrown : new Error(String(thrown)));
    return undefined;
  }

  async #close(): Promise<void> {
    this.#urls.outputs.close();
    await this.#urls.inputs.close();
    await this.#worker?.close();
    await this.#sites.close();
    await this.#work.close();
    if (this.#lease) await this.#options.queue.releaseLease(this.#lease).catch(() => undefined);
  }

  #now(): number {
    return (this.#options.now ?? Date.now)();
  }
}

const OTHERS = new Set(['hold', 'release', 'remove', 'takeback', 'adopted']);

/** Jobs wait for the broker to choose their site. */
function unrouted(places: readonly Place[]): boolean {
  return places.some(({ site, state, jobs }) => site === '' && state === 'idle' && jobs > 0);
}

function isFromOutside(event: QueueEvent): boolean {
  if (event.type === 'transition') return OTHERS.has(event.event);
  if (event.type === 'bid') return event.event === 'opened' || event.event === 'withdraw';
  return event.type === 'submitted' || event.type === 'materialized' || event.type === 'routed';
}
