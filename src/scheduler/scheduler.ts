import { POOL_SITE } from '../config/sites.ts';
import type { QueueEvent } from '../job/events.ts';
import { formatJobId, type JobId } from '../job/ids.ts';
import { isEnd, type State, STATES } from '../job/life.ts';
import { workLoopOf } from '../job/work-loops.ts';
import { staying } from '../queue/stay.ts';
import { GryphusError } from '../errors.ts';
import type { Cursor, EventEntry, HistoryKeep, Lease, Queue } from '../queue/api.ts';
import { POOL_WANTED, WHOLE } from '../queue/tables.ts';
import type { Broker } from './broker.ts';
import type { Children } from './children.ts';
import { Ended } from './ended.ts';
import type { GlideinKeeper } from './glideins.ts';
import type { Listener } from './listener.ts';
import type { SiteChooser } from '../enqueue/site-choice.ts';
import { materializeAll } from './materialize.ts';
import type { PoolKeeper } from './pool-keeper.ts';
import { Patience, pause } from './patience.ts';
import { Deadlines } from './deadlines.ts';
import { periodicChange, vacates } from './periodic.ts';
import { Policies } from './policies.ts';
import { Lull } from './lull.ts';
import { type Beat, Heartbeats } from './heartbeat.ts';
import type { InstanceLock } from './instance-lock.ts';
import { USAGE_MS, type UsageKeeper } from './usage-keeper.ts';

export interface SchedulerOptions {
  readonly queue: Queue;
  readonly children: Children;
  readonly pool: Pick<PoolKeeper, 'want' | 'look' | 'vacate'>;
  /** Whether this machine's worker is started before there is a job. */
  readonly poolFirst: () => boolean;
  readonly broker: Pick<Broker, 'round' | 'hasWork'>;
  /** Chooses the site of a job, by the sites as configured now. */
  readonly chooser: () => Promise<SiteChooser>;
  readonly glideins: Pick<GlideinKeeper, 'round' | 'hasWork'>;
  readonly usage: Pick<UsageKeeper, 'round'>;
  /** Receive every event, in this order, before the cursor advances. */
  readonly listeners: readonly Listener[];
  /** Milliseconds, by the current settings. */
  readonly periodicMs: () => number;
  /** A GridManager without a heartbeat for this long is considered hung, milliseconds. */
  readonly hungAfterMs: () => number;
  /** The Scheduler ends when there has been no job for this long, milliseconds; infinite: never. */
  readonly idleExitMs: () => number;
  /** What the history keeps. */
  readonly keep: () => HistoryKeep;
  readonly one: InstanceLock;
  readonly log: (message: string, facts?: object) => void;
  /** Reports an unexpected error that was contained. */
  readonly onFault: (message: string, error: Error) => void;
}

const STAFFING = 'starting GridManagers and materializing procs';
const PLACING = 'giving jobs to sites';
const RETIRING = 'moving jobs into the history';

const LEASE_MS = 15_000;
const EVENTS_AT_ONCE = 1000;
/** How long one read of the events waits for some, milliseconds. */
const BLOCK_MS = 60_000;
/** How often the GridManagers' heartbeats are checked, at most and at least, milliseconds; they renew their leases every 10 s. */
const HEARTBEAT_MS = { shortest: 2000, longest: 10_000 } as const;
/** How often it looks for something to start or to place, milliseconds. Both are done at once for events that matter. */
const STAFF_MS = 2000;
/** How often the history is pruned, milliseconds. */
const PRUNE_MS = 600_000;
const GLIDEINS_MS = 3000;
/** How often check sums of the queue's files are written, milliseconds. */
const COVER_MS = 2000;

/**
 * The daemon that watches the queue: starts GridManagers for managers with work, creates the procs of late-materialized
 * clusters, applies periodic policies, delivers every event to its listeners (logs, mail), and moves ended jobs into
 * the history once all listeners have handled their events.
 */
export class Scheduler {
  readonly #options: SchedulerOptions;
  readonly #stop = new AbortController();
  readonly #ended: Ended;
  readonly #patience: Patience;
  #lease: Lease | undefined;
  readonly #policies: Policies;
  readonly #deadlines: Deadlines;
  #busyAt = performance.now();
  /** There are no jobs, and it ends for that. */
  #mayEnd = true;
  readonly #lull = new Lull(this.#stop.signal);
  #staffing: NodeJS.Timeout | undefined;
  #placing: Promise<void> | undefined;
  #endedIdle = false;
  #failure: Error | undefined;
  readonly #heartbeats = new Heartbeats();

  constructor(options: SchedulerOptions) {
    this.#options = options;
    this.#ended = new Ended(options.queue);
    this.#policies = new Policies(options.queue);
    const { log, onFault } = options;
    this.#patience = new Patience({ stop: this.#stop, log, onFault });
    this.#deadlines = new Deadlines(
      options.queue,
      (cluster) => this.#policies.has(cluster),
      () => {
        const what = 'holding jobs that ran too long';
        void this.#patience.with(what, () => this.#deadlines.round()).catch(() => undefined);
      },
    );
  }

  /** Runs until `end()`. Rejects with 'already-running' if another Scheduler has the state directory. */
  async run(ready: () => void): Promise<void> {
    const { queue } = this.#options;
    this.#lease = await queue.acquireLease('scheduler', LEASE_MS, { holder: String(process.pid) });
    if (!this.#lease) {
      throw new GryphusError('already-running', 'A Scheduler is already running on this state directory.', {
        suggestions: ['See `gryphus status`; stop it with `gryphus down`.'],
      });
    }
    const cursor = await queue.cursor('scheduler', '0');
    await this.#ended.recover();
    ready();
    try {
      await Promise.all([
        this.#loop(
          'renewing the lease',
          () => this.#renew(),
          () => LEASE_MS / 3,
        ),
        this.#loop(
          STAFFING,
          () => this.#staff(),
          () => (this.#mayEnd ? STAFF_MS : this.#lull.unlessQuiet(STAFF_MS)),
        ),
        this.#loop(
          'checking whether the GridManagers are alive',
          () => this.#heartbeat(),
          () => Math.min(HEARTBEAT_MS.longest, Math.max(HEARTBEAT_MS.shortest, this.#options.hungAfterMs() / 10)),
        ),
        this.#loop(
          PLACING,
          () => this.#place(),
          () => (this.#options.broker.hasWork ? STAFF_MS : this.#lull.unlessQuiet(STAFF_MS)),
        ),
        this.#loop(
          'looking after glideins',
          () => this.#options.glideins.round(),
          () => (this.#options.glideins.hasWork ? GLIDEINS_MS : this.#lull.unlessQuiet(GLIDEINS_MS)),
        ),
        this.#loop("evaluating jobs' periodic policies", () => this.#periodic(), this.#options.periodicMs),
        this.#loop(
          'cleaning up the history',
          () => queue.history.prune(this.#options.keep()),
          () => PRUNE_MS,
        ),
        this.#loop(
          'recording what jobs used',
          () => this.#options.usage.round(),
          () => USAGE_MS,
        ),
        this.#loop(
          'cleaning up the events',
          () => queue.trimEvents(),
          () => 60_000,
        ),
        this.#loop(
          "summing the queue's files",
          () => this.#cover(),
          () => this.#lull.unlessQuiet(COVER_MS),
        ),
        this.#listen(cursor),
      ]);
      if (this.#failure) throw this.#failure;
    } finally {
      clearTimeout(this.#staffing);
      this.#deadlines.close();
      await queue.releaseLease(this.#lease).catch(() => undefined);
    }
  }

  /** `error`: why it cannot continue. */
  end(error?: Error): void {
    this.#failure ??= error;
    this.#stop.abort();
  }

  /** Whether it ended because there were no jobs. */
  get endedIdle(): boolean {
    return this.#endedIdle;
  }

  /**
   * After a GridManager has ended, starts another if there is work. Does nothing before `run`, which starts with this.
   */
  staffSoon(ms = 0): void {
    if (!this.#lease || this.#stop.signal.aborted || this.#staffing) return;
    this.#staffing = setTimeout(() => {
      this.#staffing = undefined;
      void this.#patience.with(STAFFING, () => this.#staff()).catch(() => undefined);
    }, ms);
  }

  /** Starts the GridManagers that are needed, and creates the procs that the limits allow. */
  async #staff(): Promise<void> {
    const { queue, children, pool, poolFirst, chooser } = this.#options;
    const [{ jobs, places }, asked, stay] = await Promise.all([
      queue.totals(),
      this.#poolAsked(),
      staying(queue, Date.now()),
    ]);
    const wanted = places.filter(
      (p) => p.jobs > 0 && p.manager !== '' && (p.site === '' ? p.state === 'idle' : workLoopOf(p.state) !== undefined),
    );
    if (poolFirst() || asked || wanted.some((place) => place.site === POOL_SITE.name)) pool.want();
    const again = children.ensure(new Set([...wanted.map((place) => place.manager), ...stay]));
    if (again !== undefined) this.staffSoon(again);
    if (this.#lease) await materializeAll(queue, this.#lease, chooser, this.#patience);
    const isNeeded = jobs > 0 || stay.size > 0 || asked;
    this.#mayEnd = !isNeeded && this.#options.idleExitMs() !== Number.POSITIVE_INFINITY;
    if (isNeeded) this.#busyAt = performance.now();
    else if (performance.now() - this.#busyAt >= this.#options.idleExitMs()) await this.#endIdle();
  }

  /** Replaces GridManagers that hang, which would otherwise delay their jobs forever. */
  async #heartbeat(): Promise<void> {
    const { queue, children, pool, hungAfterMs, log } = this.#options;
    pool.look();
    const { running } = children;
    const marks = await queue.leaseMarks(running.map(({ identity }) => `gm:${identity}`));
    const beats = running.map(({ identity, pid }, i): Beat => ({ identity, pid, beat: marks[i] ?? '' }));
    for (const hung of this.#heartbeats.look(beats, hungAfterMs())) {
      log('a GridManager hangs', { identity: hung.identity, manager: hung.pid });
      children.replace(hung, 'it sent no heartbeat any more, and was killed');
    }
  }

  /**
   * A submit command checks for a Scheduler after it has written the job: either we see the job now, or that command
   * starts another Scheduler.
   */
  async #endIdle(): Promise<void> {
    const { one, queue, log } = this.#options;
    await one.giveBack();
    if ((await queue.totals()).jobs > 0) return one.claim();
    log('the Scheduler ends: no jobs for scheduler.idle_exit');
    this.#endedIdle = true;
    this.end();
  }

  /** Whether the pool is used without a job in the queue: by `gryphus map`, or a glidein. */
  async #poolAsked(): Promise<boolean> {
    return (await POOL_WANTED.get(this.#options.queue.kv, WHOLE)) !== undefined;
  }

  /** Routes jobs without a site; one round at a time. */
  async #place(): Promise<void> {
    if (!this.#lease) return;
    this.#placing ??= this.#options.broker.round(this.#lease).finally(() => {
      this.#placing = undefined;
    });
    await this.#placing;
  }

  async #listen(cursor: Cursor): Promise<void> {
    const { listeners } = this.#options;
    const { signal } = this.#stop;
    const reading = 'reading events';
    let caughtUp = false;
    while (!signal.aborted) {
      const blockMs = !caughtUp || this.#ended.late ? 0 : BLOCK_MS;
      const wish = { limit: EVENTS_AT_ONCE, blockMs, signal };
      const entries = await this.#patience.with(reading, () => cursor.read(wish));
      if (!entries) {
        await pause(this.#patience.waitMs(reading), signal);
        continue;
      }
      const last = entries.at(-1);
      if (last) {
        this.#lull.stir();
        // The Scheduler is ending; the next one delivers the batch again.
        for (const listener of listeners) if (!(await this.#patience.tell(listener, entries))) return;
        await this.#patience.with('skipping events', () => cursor.save(last.id));
        // Only now: a batch delivered again after a crash must still find its jobs in the queue.
        await this.#afterwards(entries);
      }
      if (entries.length >= EVENTS_AT_ONCE) continue;
      this.#ended.caughtUp();
      caughtUp = true;
      if (!this.#ended.late) continue;
      await this.#patience.with(RETIRING, () => this.#ended.catchUp());
      await pause(this.#patience.waitMs(RETIRING), signal);
    }
  }

  async #afterwards(entries: readonly EventEntry[]): Promise<void> {
    await this.#patience.with('noting policies', () => this.#policies.hear(entries));
    await this.#patience.with('noting how long jobs may run', () => this.#deadlines.hear(entries));
    const behind = entries.length >= EVENTS_AT_ONCE;
    await this.#patience.with(RETIRING, () => this.#ended.note(entries, behind));
    const changes = entries.some(({ event }) => changesStaff(event));
    const siteUp = entries.some(({ event }) => event.type === 'notice' && event.about === 'site-up');
    if (changes) await this.#patience.with(STAFFING, () => this.#staff());
    if (changes || siteUp) await this.#patience.with(PLACING, () => this.#place());
    if (siteUp && !changes) {
      await this.#patience.with(STAFFING, async () => {
        if (await this.#poolAsked()) this.#options.pool.want();
      });
    }
  }

  async #periodic(): Promise<void> {
    const { queue, pool } = this.#options;
    for (const cluster of await this.#policies.clusters()) {
      const changes = [];
      const vacated: JobId[] = [];
      for await (const job of queue.query({ clusters: [cluster], states: LIVE })) {
        this.#deadlines.note(job);
        const what = `evaluating the periodic policy of job ${formatJobId(job.id)}`;
        const change = this.#patience.attempt(what, () => periodicChange(job));
        if (change) changes.push(change);
        else if (this.#patience.attempt(what, () => vacates(job))) vacated.push(job.id);
      }
      if (vacated.length > 0) await pool.vacate(vacated);
      if (changes.length > 0) await queue.transitionMany(changes);
    }
    await this.#ended.retry();
  }

  async #cover(): Promise<void> {
    const { queue, log } = this.#options;
    for (const message of await queue.coverFiles()) {
      log(message);
      await queue.notice({ about: 'fault', message });
    }
  }

  async #renew(): Promise<void> {
    if (this.#lease && !(await this.#options.queue.renewLease(this.#lease, LEASE_MS))) {
      throw new GryphusError('stale-epoch', 'Another Scheduler has this state directory now; this one ends.');
    }
  }

  async #loop(what: string, work: () => Promise<unknown>, everyMs: () => number): Promise<void> {
    while (!this.#stop.signal.aborted) {
      await this.#patience.with(what, work);
      await this.#lull.wait(() => Math.max(everyMs(), this.#patience.waitMs(what)));
    }
  }
}

const CHANGES_STAFF = new Set(['submitted', 'materialized', 'routed']);
const LIVE: readonly State[] = STATES.filter((state) => !isEnd(state));

function changesStaff(event: QueueEvent): boolean {
  if (event.type === 'transition') return isNews(event.to);
  // A candidate that leaves frees capacity; a new one, or one no longer needed, is work for its manager.
  if (event.type === 'candidate') return event.event === 'opened' || event.to === 'withdrawing' || event.to === 'gone';
  return CHANGES_STAFF.has(event.type);
}

/** Whether a job in this state needs a GridManager's work, or has freed capacity for another. */
function isNews(state: State): boolean {
  return state === 'idle' || isEnd(state) || workLoopOf(state) === 'cancel' || workLoopOf(state) === 'results';
}
