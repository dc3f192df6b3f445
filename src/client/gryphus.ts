import { ensureStateDirs, loadPaths, type Paths } from '../config/paths.ts';
import { SiteBook } from '../config/follow.ts';
import { loadSettings, type Settings } from '../config/settings.ts';
import { loadSite } from '../config/sites.ts';
import type { CredentialStatus } from '../credentials/status.ts';
import type { Renewed } from '../credentials/renew.ts';
import { asError, GryphusError } from '../errors.ts';
import type { QueueEvent } from '../job/events.ts';
import { managerIdentity } from '../job/identity.ts';
import type { GlideinClient } from './glideins.ts';
import { keepScheduler } from './keep-scheduler.ts';
import { callBack, type EventsRequest, eventsOf, type EventWithCursor } from './news.ts';
import type { UserLogEvent } from '../user-log/event.ts';
import type { Steer } from '../pool/wire/client-wire.ts';
import { installRedis, type Queue, type QueueOptions, serverState } from '../queue/api.ts';
import type { SiteWaysView } from '../queue/tables.ts';
import { act, withMissing } from './act.ts';
import { ensureScheduler, environment, queuePlace, startScheduler } from './daemon.ts';
import type { DagClient } from './dag.ts';
import { daemonStatus, endDaemons, statusWithoutQueue } from './daemon-status.ts';
import type { MapRequest, MapResult, MapTask } from './map.ts';
import { whyNotMade } from './factory-pause.ts';
import { historyOf, lookForJobs, selectChunks, selectJobs, viewsOf } from './select.ts';
import type { ShellRequest } from './shell.ts';
import type { RetryResult } from './retry.ts';
import { siteStatuses } from './site-status.ts';
import { tail } from './tail.ts';
import type { TopRow } from './top.ts';
import { openPresentQueue } from './upgrade.ts';
import { clusterViews, totalsOf } from './totals.ts';
import type {
  Action,
  ActionRequest,
  ActionResult,
  AdText,
  AskUser,
  AuditEntry,
  CheckStep,
  ClusterSelection,
  ClusterView,
  DaemonStatus,
  DownOptions,
  DryRun,
  JobView,
  LeftSite,
  OpenOptions,
  QueryRequest,
  QueueRequest,
  SeenJobView,
  Selection,
  Selections,
  SiteStatus,
  Submitted,
  SubmitRequest,
  TailRequest,
  Totals,
  WaitRequest,
  Why,
} from './types.ts';
import { ownUser } from '../util/own-user.ts';
import { wait } from './wait.ts';
import type { AccountClient } from './accounts.ts';
import { whyOf } from './why.ts';
import { jobsToExplain, whyEnded } from './why-ended.ts';

/**
 * A personal Gryphus: everything that the command line can do, for programs. Every method rejects with a GryphusError,
 * whose `code`, `retry` and `suggestions` say what to do.
 */
export class Gryphus {
  readonly #paths: Paths;
  readonly #settings: Settings;
  readonly #queue: Queue;
  readonly #env: NodeJS.ProcessEnv;
  readonly #starts: boolean;
  readonly #closing = new AbortController();
  #dags: DagClient | undefined;

  private constructor(paths: Paths, settings: Settings, queue: Queue, env: NodeJS.ProcessEnv, starts: boolean) {
    this.#paths = paths;
    this.#settings = settings;
    this.#queue = queue;
    this.#env = env;
    this.#starts = starts;
  }

  /** Opens the agent of this user (or of `home`), and until `close()` starts its Scheduler when none runs, unless told not to. */
  static async open(options: OpenOptions = {}): Promise<Gryphus> {
    const env = environment(options);
    const paths = loadPaths(env);
    ensureStateDirs(paths);
    const settings = await loadSettings(paths);
    const start = options.start ?? true;
    const place = { ...queuePlace(paths, settings), onFetch: options.onFetch };
    if (start && options.install) await installRedis(place);
    const open = () => Gryphus.#open(paths, settings, env, { ...place, start: start ? 'if-needed' : 'never' });
    return open().catch(async (thrown: unknown) => {
      const away = start && thrown instanceof GryphusError && thrown.code === 'queue-unavailable';
      // An idle Scheduler may have stopped its Redis just as we connected.
      return away && (await serverState(paths)) === 'absent' ? open() : Promise.reject(asError(thrown));
    });
  }

  static async #open(paths: Paths, settings: Settings, env: NodeJS.ProcessEnv, at: QueueOptions): Promise<Gryphus> {
    const queue = await openPresentQueue(paths, at);
    const start = at.start !== 'never';
    try {
      const gryphus = new Gryphus(paths, settings, queue, env, start);
      if (start) {
        await gryphus.#ensureScheduler();
        void keepScheduler(paths, () => startScheduler(paths, settings, env), gryphus.#closing.signal);
      }
      return gryphus;
    } catch (thrown) {
      await queue.close();
      throw thrown;
    }
  }

  /** What a submit would do; needs no daemon and changes nothing. */
  static async dryRun(request: SubmitRequest, options: Pick<OpenOptions, 'home'> = {}): Promise<DryRun> {
    const { dryRun } = await import('../enqueue/enqueue.ts');
    return dryRun(request, loadPaths(environment(options)));
  }

  /** Makes sure that the Scheduler and its Redis run. */
  static async up(options: OpenOptions = {}): Promise<DaemonStatus> {
    const gryphus = await Gryphus.open({ ...options, start: true });
    try {
      return await gryphus.status();
    } finally {
      await gryphus.close();
    }
  }

  /** What can be known about the daemons when the queue's Redis is down; starts nothing. */
  static async statusWithoutQueue(options: Pick<OpenOptions, 'home'> = {}): Promise<DaemonStatus> {
    return statusWithoutQueue(loadPaths(environment(options)));
  }

  /** Stops the Scheduler, the GridManagers and the private Redis; jobs at sites keep running. */
  static async down(options: DownOptions = {}): Promise<DaemonStatus> {
    return endDaemons(loadPaths(environment(options)), options);
  }

  /** Resolves when the jobs are on disk (docs/ARCHITECTURE.md, invariant 1). */
  async submit(request: SubmitRequest): Promise<Submitted> {
    const { submitCluster } = await import('../enqueue/enqueue.ts');
    const submitted = await submitCluster(this.#queue, request, this.#paths, this.owner);
    if (this.#starts) await this.#ensureScheduler(); // It may have ended in the meantime because it was idle.
    return submitted;
  }

  /** Submit, inspect and control DAGs. */
  async dags(): Promise<DagClient> {
    const { DagClient } = await import('./dag.ts');
    return (this.#dags ??= new DagClient(this.#queue, this.#paths, this.owner));
  }

  /** Jobs in the queue, in the order of their ids. */
  async *query(request: QueueRequest = {}): AsyncGenerator<JobView> {
    for await (const jobs of this.queryChunks(request)) yield* jobs;
  }

  /** The same in chunks, for long lists. */
  async *queryChunks(request: QueueRequest = {}): AsyncGenerator<readonly JobView[]> {
    for await (const jobs of selectChunks(this.#queue, request, request)) yield viewsOf(jobs, request);
  }

  /** Jobs that have left the queue, newest first. */
  history(request: QueryRequest = {}): AsyncGenerator<JobView> {
    return historyOf(this.#queue, request);
  }

  /** Each job once, wherever it is: first those in the queue, then those that have left it, newest first. */
  jobs(request: QueryRequest = {}): AsyncGenerator<SeenJobView> {
    return lookForJobs(this.#queue, request);
  }

  /** What queue and history still know of the jobs' lives, in time order, for jobs without a user log. */
  async jobEvents(selection: Selection): Promise<readonly UserLogEvent[]> {
    const { eventsOfJobs } = await import('./remembered.ts');
    return eventsOfJobs(this.jobs(selection));
  }

  /** How many jobs of the queue are idle, running, held and so on. */
  totals(selection: Selection = {}): Promise<Totals> {
    return totalsOf(this.#queue, selection);
  }

  /** Counts for the selected owners' clusters, at a cost that does not grow with their jobs. */
  clusters(selection: ClusterSelection = {}): Promise<readonly ClusterView[]> {
    return clusterViews(this.#queue, selection);
  }

  /** Holds, releases or removes jobs; the result also has those that were named and not found. */
  act(action: Action, request: ActionRequest): Promise<readonly ActionResult[]> {
    return act(this.#queue, action, request, this.owner);
  }

  /** Sets attributes (ClassAd expression texts) of the selected jobs. */
  async edit(selection: Selection, set: Readonly<Record<string, string>>): Promise<readonly ActionResult[]> {
    const { edit } = await import('./edit.ts');
    return edit(this.#queue, () => this.#chooser(), selection, set);
  }

  /** Moves jobs that have not started to another site: its name, a value of `grid_resource`, or `pool`. */
  async move(selection: Selection, site: string): Promise<readonly ActionResult[]> {
    const { move } = await import('./move.ts');
    return move(this.#queue, selection, (await this.#chooser()).site(site));
  }

  /** Submits failed and removed jobs again, with their old descriptions; `dryRun`: only says which. */
  async retry(selection: Selection, how: { readonly dryRun?: boolean } = {}): Promise<readonly RetryResult[]> {
    const { retry } = await import('./retry.ts');
    const results = await retry(this.#queue, await this.#chooser(), this.owner, selection, how.dryRun ?? false);
    if (this.#starts) await this.#ensureScheduler();
    return results;
  }

  /** False if the time ran out, or the signal or `close()` came first. */
  wait(request: WaitRequest): Promise<boolean> {
    return wait(this.#queue, { ...request, signal: this.#until(request.signal) });
  }

  /** A job's standard output or error, also while it runs. Throws `not-found` for a job that does not exist. */
  tail(request: TailRequest): AsyncGenerator<Uint8Array> {
    return tail(this.#queue, this.#paths.spoolDir, { ...request, signal: this.#until(request.signal) });
  }

  /** Why jobs do not run; for named jobs and clusters, also how jobs that have left the queue failed. */
  async *why(selection: Selection): AsyncGenerator<Why> {
    const sites = await new SiteBook(this.#paths).allSites();
    const house = { queue: this.#queue, sites, paths: this.#paths, settings: this.#settings };
    for await (const job of jobsToExplain(this.#queue, selection))
      yield 'here' in job ? await whyOf(house, job.here) : await whyEnded(job.gone);
    yield* whyNotMade(this.#queue, selection);
  }

  /** Every change of the queue, from now on or after a cursor. Ends only with its signal or with `close()`. */
  events({ from, signal }: EventsRequest = {}): AsyncGenerator<EventWithCursor> {
    return eventsOf(this.#queue, { from, signal: this.#until(signal) });
  }

  /**
   * Calls back when a job ends (`terminated`) or needs a person (`problem`: held, or a site that wants a log-in).
   * Returns a function that stops the calls; `close()` stops them too.
   */
  on(what: 'terminated' | 'problem', call: (event: QueueEvent) => void): () => void {
    const stop = new AbortController();
    callBack(this.#queue, what, call, this.#until(stop.signal));
    return () => stop.abort();
  }

  /** Workers sent to sites as jobs. */
  async glideins(): Promise<GlideinClient> {
    const { GlideinClient } = await import('./glideins.ts');
    return new GlideinClient(this.#queue, this.#paths, this.#settings, this.owner);
  }

  /** How workers of a site reach the agent; `undefined` if it never had any. */
  async siteWays(site: string): Promise<SiteWaysView | undefined> {
    const { SITE_WAYS } = await import('../queue/tables.ts');
    return SITE_WAYS.get(this.#queue.kv, site);
  }

  /** Every configured site, with its connection as last known; asks no site. */
  async sites(): Promise<readonly SiteStatus[]> {
    const book = new SiteBook(this.#paths);
    return siteStatuses(this.#queue, await book.sites(), book.problems);
  }

  /** The sites' ClassAds, as used to match jobs without `grid_resource`; only those for which `constraint` is true. */
  async siteAds(constraint?: string): Promise<readonly AdText[]> {
    const { siteAds } = await import('./site-ads.ts');
    return siteAds(this.#queue, await new SiteBook(this.#paths).sites(), constraint);
  }

  /** The pool's slots, both workers' and claimed ones; only those for which `constraint` is true. */
  async slots(constraint?: string): Promise<readonly AdText[]> {
    const { poolSlots } = await import('./pool.ts');
    return poolSlots(this.#paths, constraint);
  }

  /** Owners of jobs: their priorities in the pool, and what their jobs used. */
  async accounts(): Promise<AccountClient> {
    const { AccountClient } = await import('./accounts.ts');
    return new AccountClient(this.#queue, this.#paths);
  }

  /** Runs tasks in the pool; results come in order of completion. Ending the iteration withdraws unfinished tasks; so do its signal and `close()`, which throw `interrupted`. */
  async *map<T>(
    tasks: AsyncIterable<MapTask<T>> | Iterable<MapTask<T>>,
    request: MapRequest<T>,
  ): AsyncGenerator<MapResult<T>> {
    const { mapOverPool } = await import('./map.ts');
    const signal = this.#until(request.signal);
    yield* mapOverPool(this.#queue, this.#paths, this.owner, { ...request, signal }, tasks);
  }

  /** Vacates, suspends, continues or checkpoints jobs that run in the pool. */
  async steer(how: Steer, selection: Selection): Promise<readonly ActionResult[]> {
    const { steerInPool } = await import('./pool.ts');
    const ids = [];
    for await (const { id } of selectJobs(this.#queue, selection)) ids.push(id);
    const results = await steerInPool(this.#paths, this.#queue.agent, how, ids);
    return withMissing(selection, results);
  }

  /** Runs a shell, or one command, next to a running job; returns the exit status. */
  async shell(request: ShellRequest): Promise<number> {
    const { shellBeside } = await import('./shell.ts');
    return shellBeside(this.#queue, this.#paths, request);
  }

  /** The resources that running jobs use now. */
  async top(selections: Selections): Promise<readonly TopRow[]> {
    const { topOf } = await import('./top.ts');
    return topOf(this.#queue, this.#paths, selections);
  }

  /** Tests a site step by step and says what to fix. A signal ends the test and takes its job back. */
  async *testSite(name: string, ask?: AskUser, signal?: AbortSignal): AsyncGenerator<CheckStep> {
    const { checkSite } = await import('./check-site.ts');
    const record = await loadSite(this.#paths, name);
    const identity = managerIdentity(this.owner, record.credential);
    yield* checkSite(record, { agent: this.#queue.agent, paths: this.#paths, identity, ask, signal });
  }

  /** Opens the connection that the GridManager keeps, passing on the site's questions. */
  async login(site: string, ask: AskUser): Promise<void> {
    const { credential } = await loadSite(this.#paths, site);
    const { logIn } = await import('./login.ts');
    await logIn(this.#queue, this.#paths, managerIdentity(this.owner, credential), site, ask);
  }

  /** Every credential that is described or used by jobs: time left, jobs, sites. */
  async credentials(): Promise<readonly CredentialStatus[]> {
    const { currentCredentialStatuses } = await import('./cred.ts');
    return currentCredentialStatuses(this.#queue, this.#paths);
  }

  /** Renews a credential in its own way and releases jobs held for it. Does not reject if renewal fails. */
  async renewCredential(name: string): Promise<Renewed> {
    const { renewCredential } = await import('./cred.ts');
    return renewCredential(this.#queue, this.#paths, name);
  }

  /** Forgets a site, whatever runs there; `clean`: also removes this agent's files there. */
  async leaveSite(site: string, how: { readonly clean?: boolean; readonly ask?: AskUser } = {}): Promise<LeftSite> {
    const { leaveSite } = await import('./leave-site.ts');
    return leaveSite(this.#paths, site, { agent: this.#queue.agent, ...how });
  }

  /** Compares what a site holds for this agent with the queue. Rejects if the site cannot be reached. */
  async audit(site: string): Promise<readonly AuditEntry[]> {
    const { auditSite } = await import('./audit.ts');
    return auditSite(this.#queue, this.#paths, await loadSite(this.#paths, site), this.owner);
  }

  /** For an attempt of `audit`: `adopt` puts its job back into the queue, `clean` deletes it there. */
  async settle(site: string, key: string, how: 'adopt' | 'clean'): Promise<void> {
    const { settleOrphan } = await import('./audit.ts');
    await settleOrphan(this.#queue, this.#paths, await loadSite(this.#paths, site), this.owner, key, how);
  }

  /** The daemons, the queue and the user logs as they are now; starts nothing. */
  status(): Promise<DaemonStatus> {
    return daemonStatus(this.#queue, this.#paths, () => this.totals());
  }

  /** Whose jobs these are. */
  get owner(): string {
    return this.#settings.owner ?? ownUser().username;
  }

  /** Configured paths, for messages. */
  get paths(): Paths {
    return this.#paths;
  }

  /** Cleanly ends whatever still waits or follows (`events`, `on`, `wait`, `tail`), and a `map` with `interrupted`. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#queue.close();
  }

  #until(signal: AbortSignal | undefined): AbortSignal {
    return signal ? AbortSignal.any([signal, this.#closing.signal]) : this.#closing.signal;
  }

  async #chooser() {
    const { siteChooser } = await import('../enqueue/enqueue.ts');
    return siteChooser(this.#paths, this.#settings);
  }

  #ensureScheduler(): Promise<void> {
    return ensureScheduler(this.#queue, this.#paths, this.#settings, this.#env);
  }
}
