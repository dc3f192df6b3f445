import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { join } from 'node:path';
import type { AttrTexts } from '../job/attrs.ts';
import { formatJobId, type JobId } from '../job/ids.ts';
import { isEnd, JOB_STATUS, LIFE } from '../job/life.ts';
import { inAd, readNumber, readString } from '../job/values.ts';
import { type CentralManagerClient, askCentralManager } from '../pool/central-manager-client.ts';
import { poolPlaces } from '../pool/host/places.ts';
import { Tokens } from '../pool/wire/tokens.ts';
import type { JobRecord } from '../queue/api.ts';
import { type GlideinBatch, Batches } from './batch.ts';
import type { Failure } from '../queue/tables.ts';
import { batchName, type OrderWorld, TOKEN_LIFE } from './order.ts';

/** One pilot as shown to users. */
export interface Pilot {
  readonly job: string;
  readonly site: string;
  readonly by: GlideinBatch['by'];
  /** `waiting` for the site, `running` but not home yet, `home`, `draining`, `ending`, `held`. */
  readonly is: 'waiting' | 'running' | 'home' | 'draining' | 'ending' | 'held';
  readonly cores: number;
  /** Busy cores, if it is home. */
  readonly busy: number;
  /** Seconds since it was requested. */
  readonly age: number;
  readonly host?: string;
  /** Seconds left of its allocation. */
  readonly left?: number;
  readonly message?: string;
  /** Its machine's ad, if it is home. */
  readonly ad?: AttrTexts;
  readonly id: JobId;
  readonly token: string;
}

/** After how many seconds without a trace of its submit a batch counts as never submitted. */
const SUBMIT_WITHIN = 300;
const TAIL_BYTES = 4096;
/** TimeToLive (HTCondor's name) of a worker whose allocation has no end. */
const NO_END = 2_147_483_647;

/**
 * Keeps track of all pilots: who they are, which are over, whose tokens to renew. All its knowledge is on disk or in
 * the queue.
 */
export class PilotTracker {
  readonly #world: OrderWorld;
  readonly #batches: Batches;
  readonly #tokens: Tokens;
  readonly #centralManager: CentralManagerClient;
  /** Whether there were any at the last `tend`. */
  hasPilots = false;

  constructor(world: OrderWorld) {
    const places = poolPlaces(world.paths);
    this.#world = world;
    this.#batches = new Batches(world.paths.stateDir);
    this.#tokens = new Tokens(places.dir);
    this.#centralManager = askCentralManager(places.clientSocket, 'pilotTracker');
  }

  /** Every pilot that is not over. */
  async pilots(): Promise<Pilot[]> {
    const slots = await this.#slotsAtCentralManager().catch(() => new Map<string, AttrTexts[]>());
    const pilots: Pilot[] = [];
    for (const batch of this.#batches.all()) {
      if (batch.cluster === undefined) continue;
      for (const [proc, job] of await this.#jobs(batch.cluster)) {
        const token = batch.tokens[proc];
        if (token !== undefined && !isEnd(job.state)) pilots.push(this.#pilot(batch, job, token, slots.get(token)));
      }
    }
    return pilots;
  }

  /**
   * Looks at all of them once: renews the tokens of live pilots, revokes those of pilots that are over and tells the
   * central manager. Returns the new failures.
   */
  async tend(): Promise<ReadonlyMap<string, readonly Failure[]>> {
    const failures = new Map<string, Failure[]>();
    const now = this.#world.now();
    const batches = this.#batches.all();
    this.hasPilots = batches.length > 0;
    for (const batch of batches) {
      const cluster = batch.cluster ?? (await this.#found(batch));
      if (cluster === undefined) {
        if (now - batch.made > SUBMIT_WITHIN) this.#drop(batch);
        else this.#extend(batch, now);
        continue;
      }
      const jobs = await this.#jobs(cluster);
      const over = new Set(batch.over);
      for (const [proc, token] of batch.tokens.entries()) {
        if (over.has(proc)) continue;
        const job = jobs.get(proc);
        const failure = this.#failure(batch, cluster, proc, job);
        if (failure) failures.set(batch.site, [...(failures.get(batch.site) ?? []), failure]);
        if (job !== undefined && LIFE[job.state].shows === 'held') {
          await this.#world.queue.transition({ id: job.id, event: 'remove' });
        } else if (job === undefined || isEnd(job.state)) {
          if (await this.#reportDead(token)) over.add(proc);
        }
      }
      const next: GlideinBatch = { ...batch, cluster, over: [...over] };
      if (over.size === batch.tokens.length) this.#batches.remove(batch.id);
      else if (over.size !== batch.over.length || batch.cluster === undefined) this.#batches.save(next);
      this.#extend(next, now);
    }
    return failures;
  }

  /**
   * Pilots that are home take no more jobs and end; those that never came home are removed.
   *
   * @throws if the central manager is away and one of them runs at its site: it may be home with a job.
   */
  async drain(pilots: readonly Pilot[]): Promise<void> {
    const begun = pilots.filter((pilot) => pilot.is !== 'waiting' && pilot.is !== 'held');
    const known = begun.length > 0 ? await this.#slotsAtCentralManager() : new Map<string, unknown>();
    const home = begun.filter((pilot) => known.has(pilot.token));
    if (home.length > 0) {
      await this.#centralManager.ask({ t: 'drain', tokens: home.map((pilot) => pilot.token), now: false }, 'done');
    }
    await this.remove(pilots.filter((pilot) => !home.includes(pilot)));
  }

  /** Removes their jobs; work that was running in them is rerun elsewhere, as its own policy says. */
  async remove(pilots: readonly Pilot[]): Promise<void> {
    const changes = pilots.map(({ id }) => ({ id, event: 'remove' as const }));
    if (changes.length > 0) await this.#world.queue.transitionMany(changes);
  }

  async close(): Promise<void> {
    await this.#centralManager.close();
  }

  #pilot(batch: GlideinBatch, job: JobRecord, token: string, slots: readonly AttrTexts[] | undefined): Pilot {
    const now = this.#world.now();
    const machine = slots?.find((ad) => ad['PartitionableSlot'] === 'true');
    const busy = (slots ?? []).filter((ad) => ad['DynamicSlot'] === 'true');
    const host = machine && readString(inAd(machine), 'Machine');
    const left = machine && readNumber(inAd(machine), 'TimeToLive');
    const message = LIFE[job.state].shows === 'held' ? readString(job.attrs, 'HoldReason') : undefined;
    return {
      job: formatJobId(job.id),
      site: batch.site,
      by: batch.by,
      is: statusOf(job, machine),
      cores: batch.cores,
      busy: busy.reduce((sum, ad) => sum + Number(ad['Cpus'] ?? 0), 0),
      age: Math.max(0, now - batch.made),
      ...(host === undefined ? {} : { host }),
      ...(left === undefined || left >= NO_END ? {} : { left }),
      ...(message === undefined ? {} : { message }),
      ...(machine === undefined ? {} : { ad: machine }),
      id: job.id,
      token,
    };
  }

  /** Slots, by the token that admitted their worker. */
  async #slotsAtCentralManager(): Promise<ReadonlyMap<string, readonly AttrTexts[]>> {
    const byToken = new Map<string, AttrTexts[]>();
    for (const ad of (await this.#centralManager.ask({ t: 'slots' }, 'slots')).ads) {
      const token = readString(inAd(ad), 'GryphusPilot');
      if (token !== undefined) byToken.set(token, [...(byToken.get(token) ?? []), ad]);
    }
    return byToken;
  }

  async #jobs(cluster: number): Promise<ReadonlyMap<number, JobRecord>> {
    const jobs = new Map<number, JobRecord>();
    for await (const job of this.#world.queue.query({ clusters: [cluster] })) jobs.set(job.id.proc, job);
    return jobs;
  }

  /** Finds the cluster of a submit whose result was lost. */
  async #found(batch: GlideinBatch): Promise<number | undefined> {
    const all = await this.#world.queue.summaries();
    return all.find((one) => one.batchName === batchName(batch.id))?.cluster;
  }

  /** Reports a pilot whose node could not run it, whose worker failed there, or whose job was held. */
  #failure(batch: GlideinBatch, cluster: number, proc: number, job: JobRecord | undefined): Failure | undefined {
    const about = { at: this.#world.now(), job: `${cluster}.${proc}` };
    if (job !== undefined && LIFE[job.state].shows === 'held') {
      return { ...about, message: readString(job.attrs, 'HoldReason') ?? 'it was held' };
    }
    if (job !== undefined && !isEnd(job.state)) return undefined;
    const said = tail(join(this.#batches.dir(batch.id), `err-${proc}`));
    const message = /^pilot: (?:cannot run|the worker failed) on (.*)$/m.exec(said)?.[1];
    return message === undefined ? undefined : { ...about, message };
  }

  #extend(batch: GlideinBatch, now: number): void {
    for (const [proc, token] of batch.tokens.entries()) {
      if (batch.over.includes(proc)) continue;
      const known = this.#tokens.find(token, 0);
      // A token that expired while the agent was away is renewed too: the pilot is still ours.
      if (known && (known.expires ?? now) - now < TOKEN_LIFE / 2) this.#tokens.extend(token, now + TOKEN_LIFE, 0);
    }
  }

  #drop(batch: GlideinBatch): void {
    for (const token of batch.tokens) this.#tokens.revoke(token);
    this.#batches.remove(batch.id);
  }

  /** False while the central manager is away. It must be told, or it would wait for the lease of what ran there. */
  async #reportDead(token: string): Promise<boolean> {
    this.#tokens.revoke(token);
    const message = "its pilot's job has ended";
    return this.#centralManager.ask({ t: 'worker-died', token, message }, 'done').then(
      () => true,
      () => false,
    );
  }
}

function statusOf(job: JobRecord, machine: AttrTexts | undefined): Pilot['is'] {
  const shows = LIFE[job.state].shows;
  if (shows === 'held') return 'held';
  if (shows === 'removed' || shows === 'completed' || shows === 'transferring') return 'ending';
  if (machine !== undefined) return machine['State'] === '"Drained"' ? 'draining' : 'home';
  return JOB_STATUS[shows] === JOB_STATUS.running ? 'running' : 'waiting';
}

function tail(path: string): string {
  try {
    const fd = openSync(path, 'r');
    try {
      const bytes = Buffer.alloc(TAIL_BYTES);
      const from = Math.max(0, fstatSync(fd).size - TAIL_BYTES);
      return bytes.toString('utf8', 0, readSync(fd, bytes, 0, TAIL_BYTES, from));
    } finally {
      closeSync(fd);
    }
  } catch {
    return '';
  }
}
