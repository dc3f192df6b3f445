import { asError, GryphusError } from '../errors.ts';
import type { SiteRecord } from '../config/sites.ts';
import type { Lease, Queue } from '../queue/api.ts';
import { BROKER, CAPACITY_WANTED, type ConnectionView, SITE_BACKOFF, SITE_STATUS } from '../queue/tables.ts';
import type { Site } from '../site/contract.ts';
import { BlobIndex } from '../staging/blobs.ts';
import { AttemptSpool } from '../staging/streams.ts';
import { eachSecond, lookNow } from '../util/each-second.ts';
import { deferred } from '../util/deferred.ts';
import { Gathered } from '../util/gathered.ts';
import { Pauses } from '../util/pauses.ts';
import { isAboutTheSite } from '../job/about-the-site.ts';
import { Census } from './census.ts';
import type { CredentialGate } from './credential-gate.ts';
import type { SiteContext } from './context.ts';
import { asFault, endsProcess, isFault, Troubles } from '../job/faults.ts';
import { Followers } from './followers.ts';
import { isFromOutside, MAY_CONCERN } from './from-outside.ts';
import { type WorkLoop, WORK_LOOPS } from '../job/work-loops.ts';
import { SiteBackoff } from './backoff.ts';
import { OpenSites, type SiteShare } from './open-sites.ts';
import type { RetryLimits } from './pacing.ts';
import { beatInTime } from './beat.ts';
import { Rounds } from './rounds.ts';
import { SiteAgent, type SiteAgentOptions } from './site-agent.ts';
import { staying } from '../queue/stay.ts';
import type { UrlAccess } from './url-access.ts';
import { closeUrls, openUrls } from './urls.ts';

export interface ManagerOptions {
  readonly identity: string;
  readonly queue: Queue;
  readonly spoolDir: string;
  /** The sites as configured now, and one of them; called again if a job names an unknown site. */
  readonly loadSites: () => Promise<ReadonlyMap<string, SiteRecord>>;
  readonly loadSite: (name: string) => Promise<SiteRecord | undefined>;
  /** Why the file of a site that they do not return could not be read. */
  readonly problem: (name: string) => GryphusError | undefined;
  readonly openSite: (record: SiteRecord) => Promise<Site>;
  /** How long to leave alone a site that did not answer, by the current settings. */
  readonly retry: () => RetryLimits;
  readonly gate: CredentialGate;
  readonly secrets: SiteAgentOptions['secrets'];
  readonly remoteIo: SiteAgentOptions['remoteIo'];
  /** Answers the reads of running jobs by connections of their own. */
  readonly directReads?: SiteAgentOptions['directReads'];
  readonly ioProxy: SiteContext['ioProxy'];
  /** How URLs of inputs and outputs are accessed. */
  readonly urls: UrlAccess;
  /** How often the growing output of a running job is stored at its URL, milliseconds, by the current settings. */
  readonly streamEveryMs: () => number;
  /** A GridManager whose lease is not renewed for so long is replaced, milliseconds, by the current settings. */
  readonly hungAfterMs: () => number;
  /** This manager ends after so long without work. Milliseconds. */
  readonly lingerMs: number;
  readonly log: (message: string, facts?: object) => void;
  /** Reports an unexpected error of ours that was contained. */
  readonly onFault: (message: string, error: Error) => void;
  readonly now?: () => number;
  readonly random?: () => number;
}

const LEASE_MS = 25_000;
/** Wait before a site that could not be opened is tried again, milliseconds. */
const UNOPENED_MS = 15_000;
/** Events within this time are handled together, milliseconds. */
const GATHER_MS = 15;
/** A lost wake-up delays work by at most this time; and how often it looks whether it has been without work for long enough. */
const LOOK_AROUND_SECONDS = 30;
const IDLE_SECONDS = 5;

/**
 * One user's jobs on all their sites. All state is in the queue: at its start, and whenever an event reports an action
 * from outside, it checks which work loops of which sites have work, and wakes them.
 */
export class GridManager {
  readonly #options: ManagerOptions;
  readonly #sites: OpenSites;
  readonly #rounds: Rounds;
  readonly #unopenable = new Map<string, string>();
  readonly #blobs = new BlobIndex();
  readonly #spool: AttemptSpool;
  readonly #urls: SiteContext['urls'];
  readonly #stop = new AbortController();
  readonly #begun = deferred<undefined>();
  readonly #pauses = new Pauses();
  readonly #troubles: Troubles;
  #lease: Lease | undefined;
  readonly #census: Census;
  readonly #followers: Followers;
  #busyAt: number;
  /** May be told before it runs. */
  readonly #ended = deferred<Error | undefined>();

  constructor(options: ManagerOptions) {
    this.#options = options;
    this.#spool = new AttemptSpool(options.spoolDir);
    this.#urls = openUrls(options, this.#spool, () => this.#now());
    this.#sites = new OpenSites({
      loadSite: options.loadSite,
      problem: options.problem,
      openSite: options.openSite,
      backoffOf: (name) => this.#backoff(name),
      agentFor: (record, site, share) => this.#agentFor(record, site, share),
      now: () => this.#now(),
    });
    this.#followers = new Followers(options.queue, () => this.#now());
    this.#census = new Census(options.queue, options.identity);
    this.#rounds = new Rounds({
      work: options.queue.work(`gm-${options.identity}`),
      round: (site, workLoop) => this.#guarded(site, workLoop),
      watched: () => this.#census.watched,
    });
    this.#troubles = new Troubles(
      (where, error, waitMs) => this.#tellFault(where, error, waitMs),
      () => this.#now(),
    );
    this.#busyAt = this.#now();
  }

  /** Resolves when there is no work left; rejects if it must end for another reason, such as 'stale-epoch'. */
  async run(): Promise<void> {
    const { queue, identity, lingerMs } = this.#options;
    this.#lease = await queue.acquireLease(`gm:${identity}`, LEASE_MS, { holder: String(process.pid), force: true });
    if (!this.#lease) throw new GryphusError('already-running', `A GridManager for ${identity} is already running.`);
    this.#begun.resolve(undefined);
    const stops = [
      beatInTime(() => void this.#guard('renewing the lease', this.#renew()), this.#options.hungAfterMs),
      eachSecond(() => void this.#guard('looking for work', this.#lookAround()), { every: LOOK_AROUND_SECONDS }),
      eachSecond(() => this.#endWhenIdle(), { every: Math.min(IDLE_SECONDS, Math.ceil(lingerMs / 1000)) }),
    ];
    await this.#rounds.open();
    const events = this.#follow();
    await this.#guard('looking for work', this.#lookAround());
    const reason = await this.#ended.promise;
    for (const stop of stops) stop();
    this.#stop.abort();
    await this.#close();
    await events;
    if (reason) throw reason;
  }

  /** Shuts down in order: finishes what is running, starts nothing new. */
  end(error?: Error): void {
    this.#ended.resolve(error);
  }

  /** The user logged in to the site. */
  async encourage(site: string): Promise<void> {
    await this.#sites.use(site, async ({ agent }) => agent.encourage());
    for (const workLoop of WORK_LOOPS) await this.#wake(site, workLoop);
  }

  /** Something that this work loop waits for has happened. */
  wake(site: string, workLoop: WorkLoop): void {
    void this.#guard(`waking site ${site}`, this.#wake(site, workLoop));
  }

  /** The open site, for a login. Waits until this manager has started. */
  async site(name: string): Promise<Site> {
    await this.#begun.promise;
    return this.#sites.use(name, async ({ site }) => site);
  }

  async #guarded(site: string, workLoop: WorkLoop): Promise<number | undefined> {
    const where = `running the ${workLoop} work loop of site ${site}`;
    return this.#round(site, workLoop).catch((thrown: unknown) => this.#fail(where, thrown));
  }

  async #round(name: string, workLoop: WorkLoop): Promise<number | undefined> {
    if (this.#stop.signal.aborted) return undefined;
    this.#busyAt = this.#now();
    const began = this.#census.begun;
    let opened = false;
    let again: number | undefined;
    try {
      again = await this.#sites.use(name, ({ agent }) => {
        opened = true;
        return agent.round(workLoop);
      });
    } catch (thrown) {
      if (opened) throw thrown;
      return await this.#unopened(name, thrown);
    }
    this.#busyAt = this.#now();
    if (workLoop !== 'watch' || again === undefined) return again;
    return (await this.#census.hasWork(name, 'watch', began)) ? again : undefined;
  }

  /** A site that cannot be opened (for example, no longer configured) is reported once; the other sites continue. */
  async #unopened(name: string, thrown: unknown): Promise<number> {
    if (!isAboutTheSite(thrown) && !isFault(thrown)) throw thrown;
    const { message } = asFault(thrown, `opening site ${name}`);
    if (this.#unopenable.get(name) === message) return UNOPENED_MS;
    if (isFault(thrown)) this.#tellFault(`opening site ${name}`, asError(thrown), UNOPENED_MS);
    this.#unopenable.set(name, message);
    await this.#tell(name, { connection: 'refused', message, since: this.#now() });
    return UNOPENED_MS;
  }

  #agentFor(record: SiteRecord, site: Site, share: SiteShare): SiteAgent {
    const { name } = record;
    const lease = this.#lease;
    if (!lease) throw new Error('Work at a site needs the lease.');
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
        ioProxy: this.#options.ioProxy,
        urls: this.#urls,
        ...share,
        now: () => this.#now(),
        troubles: this.#troubles,
        moved: () => this.#census.outdate(),
        wake: (workLoop) => void this.#guard(`waking site ${name}`, this.#wake(name, workLoop)),
        quietMs: () => this.#rounds.quietMs,
        isFollowed: () => this.#followers.are(),
      },
      {
        secrets: this.#options.secrets,
        remoteIo: this.#options.remoteIo,
        directReads: this.#options.directReads,
        placed: () => this.#census.placed(name),
        there: () => this.#census.there(name),
        capacityWanted: () => this.#capacityWanted(),
        random: this.#options.random ?? Math.random,
        retry: this.#options.retry,
        onHealth: (view, at) => this.#tell(at, view),
        onMessage: (view, at) => this.#note(at, view),
        onFault: (where, error, waitMs) => this.#tellFault(where, error, waitMs),
      },
    );
  }

  /** Publishes the state of a site. */
  async #note(site: string, view: ConnectionView): Promise<void> {
    await SITE_STATUS.set(this.#options.queue.kv, `${this.#options.identity}/${site}`, view);
  }

  /** A site's connection changed: publishes its state, and sends a notice. */
  async #tell(site: string, view: ConnectionView): Promise<void> {
    const { queue, identity: manager } = this.#options;
    await this.#note(site, view);
    const about =
      view.connection === 'up' ? 'site-up' : view.connection === 'needs-login' ? 'site-needs-login' : 'site-down';
    await queue.notice({ about, site, manager, message: view.message === '' ? `Site ${site} answers.` : view.message });
    if (view.connection === 'up') for (const workLoop of WORK_LOOPS) await this.#wake(site, workLoop);
  }

  async #lookAround(): Promise<void> {
    await this.#census.count();
    const wanted = this.#census.workLoopsWanted();
    await Promise.all([...wanted].flatMap(([site, loops]) => [...loops].map((loop) => this.#wake(site, loop))));
    if (await this.#capacityWanted()) {
      for (const { name, batch } of (await this.#options.loadSites()).values())
        if (batch !== 'pool') await this.#wake(name, 'capacityPoll');
    }
    if (wanted.size > 0 || this.#census.unrouted) this.#busyAt = this.#now();
  }

  async #capacityWanted(): Promise<boolean> {
    if (this.#census.unrouted) return true;
    const until = await BROKER.get(this.#options.queue.kv, CAPACITY_WANTED);
    return (until ?? 0) > this.#now();
  }

  /** What an earlier GridManager learned about the site; also saves what this one learns. */
  async #backoff(site: string): Promise<SiteBackoff> {
    const { kv } = this.#options.queue;
    const key = `${this.#options.identity}/${site}`;
    return new SiteBackoff(await SITE_BACKOFF.get(kv, key), this.#now(), async (news) => {
      await SITE_BACKOFF.set(kv, key, news);
    });
  }

  #wake(site: string, workLoop: WorkLoop): Promise<void> {
    return this.#rounds.wake(site, workLoop);
  }

  /** Reacts to others' actions: submits, routes and users' commands. Our own transitions wake their work loops. */
  async #follow(): Promise<void> {
    while (!this.#stop.signal.aborted) {
      let wait = 0;
      const followed = this.#followOnce().catch((thrown: unknown) => {
        wait = this.#fail('following events', thrown) ?? 0;
      });
      await followed;
      if (this.#stop.signal.aborted) return;
      await new Promise((done) => setTimeout(done, wait));
      // Events in the meantime were missed.
      await this.#guard('looking for work', this.#lookAround());
    }
  }

  async #followOnce(): Promise<void> {
    const lookAround = new Gathered(() => {
      void this.#guard('looking for work', this.#lookAround());
      // A pilot comes with its token.
      lookNow();
    }, GATHER_MS);
    try {
      const wish = { signal: this.#stop.signal, only: MAY_CONCERN };
      for await (const { event } of this.#options.queue.subscribe(wish)) {
        if (event.type === 'notice' && event.about === 'credential-renewed') await this.#renewed(event.site);
        if (event.type === 'transition' && event.event === 'adopted') await this.#listAgain();
        if (isFromOutside(event)) lookAround.want();
      }
    } finally {
      lookAround.end();
    }
  }

  /** A credential was renewed: sites that were refused are tried at once, and the copies at the sites are replaced. */
  async #renewed(site: string | undefined): Promise<void> {
    for (const name of this.#sites.names)
      if (site === undefined || name === site)
        await this.encourage(name).catch((thrown: unknown) => this.#fail(`encouraging site ${name}`, thrown));
  }

  /** The sites' earlier reports of an attempt that was just adopted were ignored, so they list everything again. */
  async #listAgain(): Promise<void> {
    for (const name of this.#sites.names)
      await this.#sites
        .use(name, async ({ agent }) => agent.listAgain())
        .catch((thrown: unknown) => this.#fail(`asking site ${name} for everything`, thrown));
  }

  async #renew(): Promise<void> {
    if (this.#lease && !(await this.#options.queue.renewLease(this.#lease, LEASE_MS))) {
      throw new GryphusError('stale-epoch', `Another GridManager serves ${this.#options.identity} now; this one ends.`);
    }
  }

  #endWhenIdle(): void {
    if (this.#now() - this.#busyAt < this.#options.lingerMs) return;
    void this.#guard('checking whether there is work left', this.#endWithoutWork());
  }

  async #endWithoutWork(): Promise<void> {
    await this.#census.count();
    if (this.#census.workLoopsWanted().size > 0 || this.#census.unrouted) {
      // Sites that have nothing to say may be silent for longer than that.
      this.#busyAt = this.#now();
      return;
    }
    if (!(await staying(this.#options.queue, this.#now())).has(this.#options.identity)) this.#ended.resolve(undefined);
  }

  async #guard(where: string, work: Promise<unknown>): Promise<void> {
    try {
      await work;
      this.#pauses.passed(where);
    } catch (thrown) {
      this.#fail(where, thrown);
    }
  }

  /** Waits for the queue, reports an unexpected error, or ends the process. Returns when to try again, milliseconds. */
  #fail(where: string, thrown: unknown): number | undefined {
    if (this.#stop.signal.aborted) return undefined;
    if (endsProcess(thrown)) {
      this.#ended.resolve(asError(thrown));
      return undefined;
    }
    if (!isFault(thrown)) {
      this.#options.log('trying again', { error: asError(thrown).message });
      return 1000;
    }
    const wait = this.#pauses.of(this.#pauses.failed(where, this.#now()));
    this.#tellFault(where, asError(thrown), wait);
    return wait;
  }

  #tellFault(where: string, error: Error, waitMs: number): void {
    const again = `it retries in ${Math.ceil(waitMs / 1000)} s`;
    this.#options.onFault(
      `Gryphus failed while ${where}, because of an internal error; ${again}: ${error.message}`,
      error,
    );
  }

  async #close(): Promise<void> {
    await closeUrls(this.#urls);
    await this.#rounds.end();
    await this.#sites.close();
    await this.#rounds.close();
    if (this.#lease) await this.#options.queue.releaseLease(this.#lease).catch(() => undefined);
  }

  #now(): number {
    return (this.#options.now ?? Date.now)();
  }
}
