import { POOL_SITE } from '../config/sites.ts';
import type { QueueEvent } from '../job/events.ts';
import { isEnd, type State, STATES } from '../job/life.ts';
import { laneOf } from '../gridmanager/lanes.ts';
import { staying } from '../gridmanager/stay.ts';
import { GryphusError } from '../errors.ts';
import type { Cursor, EventEntry, Lease, Queue } from '../queue/api.ts';
import type { Broker } from './broker.ts';
import type { Children } from './children.ts';
import { Ended } from './ended.ts';
import type { GlideinKeeper } from './glideins.ts';
import type { Listener } from './listener.ts';
import type { SiteChooser } from '../enqueue/site-choice.ts';
import { materializeAll } from './materialize.ts';
import type { PoolKeeper } from './pool-keeper.ts';
import { periodicChange } from './periodic.ts';
import { Policies } from './policies.ts';
import { type Beat, Pulses } from './pulse.ts';
import type { TheOne } from './the-one.ts';

export interface SchedulerOptions {
  readonly queue: Queue;
  readonly children: Children;
  readonly pool: Pick<PoolKeeper, 'want' | 'look'>;
  /** This machine's worker is there before the first job is. */
  readonly poolFirst: () => boolean;
  readonly broker: Pick<Broker, 'round'>;
  /** Where a job goes, by the sites as they are configured now. */
  readonly chooser: () => Promise<SiteChooser>;
  readonly glideins: Pick<GlideinKeeper, 'round'>;
  /** Who is told of every event, in this order, before it is passed over for good. */
  readonly listeners: readonly Listener[];
  /** Milliseconds, as it is set now. */
  readonly periodicMs: () => number;
  /** It ends when there has been no job for so long; infinite: never. */
  /** A GridManager without a sign of life for so long hangs. */
  readonly hungAfterMs: () => number;
  readonly idleExitMs: () => number;
  /** What the history keeps. */
  readonly keep: () => { readonly jobs: number; readonly seconds: number };
  readonly one: TheOne;
  readonly log: (message: string, facts?: object) => void;
}

const LEASE_MS = 15_000;
const EVENTS_AT_ONCE = 1000;
/** How often the history is looked at for what it need not keep, milliseconds. */
/** Between two looks whether the GridManagers live, milliseconds; they renew their leases every 5 s. */
const PULSE_MS = 2000;
const PRUNE_MS = 600_000;
const GLIDEINS_MS = 3000;

/**
 * The daemon that watches the queue: starts GridManagers for whoever has work, makes procs of late-materialized
 * clusters, applies periodic policy, tells every event to its listeners (logs, mail), and moves ended jobs into the
 * history once all listeners have heard of them.
 */
export class Scheduler {
  readonly #options: SchedulerOptions;
  readonly #stop = new AbortController();
  readonly #ended: Ended;
  #lease: Lease | undefined;
  readonly #policies: Policies;
  #busyAt = performance.now();
  #staffing: NodeJS.Timeout | undefined;
  #placing: Promise<void> | undefined;
  #endedIdle = false;
  readonly #pulses = new Pulses();

  constructor(options: SchedulerOptions) {
    this.#options = options;
    this.#ended = new Ended(options.queue);
    this.#policies = new Policies(options.queue);
  }

  /** Runs until `end()`; rejects with 'already-running' when another has the state directory. */
  async run(ready: () => void): Promise<void> {
    const { queue } = this.#options;
    this.#lease = await queue.acquireLease('scheduler', LEASE_MS, { holder: String(process.pid) });
    if (!this.#lease) {
      throw new GryphusError('already-running', 'A Scheduler runs already on this state directory.', {
        suggestions: ['See `gryphus status`; end it with `gryphus down`.'],
      });
    }
    const cursor = await queue.cursor('scheduler', '0');
    await this.#ended.recover();
    ready();
    try {
      await Promise.all([
        this.#loop(
          () => this.#renew(),
          () => LEASE_MS / 3,
        ),
        this.#loop(
          () => this.#staff(),
          () => 2000,
        ),
        this.#loop(
          () => this.#pulse(),
          () => PULSE_MS,
        ),
        this.#loop(
          () => this.#place(),
          () => 2000,
        ),
        this.#loop(
          () => this.#options.glideins.round(),
          () => GLIDEINS_MS,
        ),
        this.#loop(() => this.#periodic(), this.#options.periodicMs),
        this.#loop(
          () => queue.history.prune(this.#options.keep()),
          () => PRUNE_MS,
        ),
        this.#loop(
          () => queue.trimEvents(),
          () => 60_000,
        ),
        this.#listen(cursor),
      ]);
    } finally {
      clearTimeout(this.#staffing);
      await queue.releaseLease(this.#lease).catch(() => undefined);
    }
  }

  end(): void {
    this.#stop.abort();
  }

  /** It ended for want of jobs. */
  get endedIdle(): boolean {
    return this.#endedIdle;
  }

  /** A GridManager ended: who has work gets another. */
  staffSoon(ms = 0): void {
    if (this.#stop.signal.aborted || this.#staffing) return;
    this.#staffing = setTimeout(() => {
      this.#staffing = undefined;
      void this.#patiently(() => this.#staff()).catch(() => undefined);
    }, ms);
  }

  /** Starts the GridManagers that are wanted, and makes the procs that there is room for. */
  async #staff(): Promise<void> {
    const { queue, children, pool, poolFirst, chooser } = this.#options;
    const { jobs, places } = await queue.totals();
    const wanted = places.filter(
      (p) => p.jobs > 0 && p.manager !== '' && (p.site === '' ? p.state === 'idle' : laneOf(p.state) !== undefined),
    );
    const asked = await this.#poolAsked();
    if (poolFirst() || asked || wanted.some((place) => place.site === POOL_SITE.name)) pool.want();
    const stay = await staying(queue, Date.now());
    const again = children.ensure(new Set([...wanted.map((place) => place.manager), ...stay]));
    if (again !== undefined) this.staffSoon(again);
    if (this.#lease) await materializeAll(queue, this.#lease, chooser);
    if (jobs > 0 || stay.size > 0 || asked) this.#busyAt = performance.now();
    else if (performance.now() - this.#busyAt >= this.#options.idleExitMs()) await this.#endIdle();
  }

  /** A GridManager that hangs would hold up its jobs for ever: it is replaced. */
  async #pulse(): Promise<void> {
    const { queue, children, pool, hungAfterMs, log } = this.#options;
    pool.look();
    const beats: Beat[] = [];
    for (const { identity, pid } of children.running)
      beats.push({ identity, pid, beat: (await queue.leaseMark(`gm:${identity}`)) ?? '' });
    for (const hung of this.#pulses.look(beats, hungAfterMs())) {
      log('a GridManager hangs', { identity: hung.identity, manager: hung.pid });
      children.replace(hung, 'it gave no sign of life any more, and was killed');
    }
  }

  /** Whoever submits looks for a Scheduler afterwards: either we see the job now, or that command starts another one. */
  async #endIdle(): Promise<void> {
    const { one, queue, log } = this.#options;
    await one.giveBack();
    if ((await queue.totals()).jobs > 0) return one.claim();
    log('there was no job for so long that the Scheduler ends (scheduler.idle_exit)');
    this.#endedIdle = true;
    this.end();
  }

  /** Somebody uses the pool without a job in the queue: a map, a glidein. */
  async #poolAsked(): Promise<boolean> {
    return (await this.#options.queue.kv.get('pool', 'wanted')) !== undefined;
  }

  /** Gives jobs without a site to one; one round at a time. */
  async #place(): Promise<void> {
    if (!this.#lease) return;
    this.#placing ??= this.#options.broker.round(this.#lease).finally(() => {
      this.#placing = undefined;
    });
    await this.#placing;
  }

  async #listen(cursor: Cursor): Promise<void> {
    const { listeners } = this.#options;
    while (!this.#stop.signal.aborted) {
      const entries = await this.#patiently(() => cursor.read({ limit: EVENTS_AT_ONCE, blockMs: 1000 }));
      const last = entries?.at(-1);
      if (!entries || !last) continue;
      for (const listener of listeners) await this.#patiently(() => listener.hear(entries));
      await this.#patiently(() => cursor.save(last.id));
      // Only now: a batch that is told again after a crash must still find its jobs in the queue.
      await this.#patiently(() => this.#afterwards(entries));
    }
  }

  async #afterwards(entries: readonly EventEntry[]): Promise<void> {
    await this.#policies.hear(entries);
    await this.#ended.note(entries);
    if (entries.some(({ event }) => changesStaff(event))) {
      await this.#staff();
      await this.#place();
    } else if (entries.some(({ event }) => event.type === 'notice' && event.about === 'site-up')) {
      await this.#place();
      if (await this.#poolAsked()) this.#options.pool.want();
    }
  }

  async #periodic(): Promise<void> {
    const { queue } = this.#options;
    for (const cluster of await this.#policies.clusters()) {
      const changes = [];
      for await (const job of queue.query({ clusters: [cluster], states: LIVE })) {
        const change = periodicChange(job);
        if (change) changes.push(change);
      }
      if (changes.length > 0) await queue.transitionMany(changes);
    }
    await this.#ended.retry();
  }

  async #renew(): Promise<void> {
    if (this.#lease && !(await this.#options.queue.renewLease(this.#lease, LEASE_MS))) {
      throw new GryphusError('stale-epoch', 'Another Scheduler has this state directory now; this one ends.');
    }
  }

  async #loop(work: () => Promise<unknown>, everyMs: () => number): Promise<void> {
    while (!this.#stop.signal.aborted) {
      await this.#patiently(work);
      await pause(everyMs(), this.#stop.signal);
    }
  }

  /** A queue that is away is waited for; everything else ends the Scheduler. */
  async #patiently<T>(work: () => Promise<T>): Promise<T | undefined> {
    for (;;) {
      try {
        return await work();
      } catch (thrown) {
        if (this.#stop.signal.aborted) return undefined;
        if (!(thrown instanceof GryphusError) || thrown.retry !== 'later') {
          this.#stop.abort();
          throw thrown;
        }
        this.#options.log('trying again', { error: thrown.message });
        await pause(1000, this.#stop.signal);
      }
    }
  }
}

const CHANGES_STAFF = new Set(['submitted', 'materialized', 'routed']);
const LIVE: readonly State[] = STATES.filter((state) => !isEnd(state));

function changesStaff(event: QueueEvent): boolean {
  if (event.type === 'transition') return isNews(event.to);
  // A bid that goes makes room; a new one, or one that is not wanted any more, is its manager's work.
  if (event.type === 'bid') return event.event === 'opened' || event.to === 'withdrawing' || event.to === 'gone';
  return CHANGES_STAFF.has(event.type);
}

/** The job came to a state in which somebody must care for it, or it made room for another. */
function isNews(state: State): boolean {
  return state === 'idle' || isEnd(state) || laneOf(state) === 'cancel' || laneOf(state) === 'results';
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await new Promise<void>((resolve) => {
    const timer = setTimeout(done, ms);
    function done() {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    }
    signal.addEventListener('abort', done);
  });
}
