import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { move } from '../../src/client/move.ts';
import type { ActionResult } from '../../src/client/types.ts';
import { LOCAL_SITE } from '../../src/config/sites.ts';
import { Secrets } from '../../src/gridmanager/chirp/secrets.ts';
import { CredentialGate } from '../../src/gridmanager/credential-gate.ts';
import { ProxyPrograms } from '../../src/gridmanager/io-proxy-programs.ts';
import { GridManager } from '../../src/gridmanager/manager.ts';
import { urlAccess } from '../../src/gridmanager/url-access.ts';
import { formatJobId, type JobId, parseAttemptKey } from '../../src/job/ids.ts';
import { isEnd } from '../../src/job/life.ts';
import type { JobRecord, Queue } from '../../src/queue/api.ts';
import { armCrash, type CrashPoint, SimulatedCrash } from '../../src/util/crash-point.ts';
import { SimulatedSite, type Weather } from './simulated-site.ts';

let worlds = 0;

/** A GridManager with a real queue and simulated sites, and what a user does to its jobs. Jobs go to the first site, or are flooded. */
export class World {
  readonly site: SimulatedSite;
  readonly sites: ReadonlyMap<string, SimulatedSite>;
  readonly #queue: Queue;
  readonly identity: string;
  /** The jobs' directory. */
  readonly dir: string;
  readonly #jobs: JobId[] = [];
  /** Releases that the queue accepted, by job: each requests one more start. */
  readonly #asked = new Map<string, number>();
  #manager: GridManager | undefined;
  #running: Promise<void> | undefined;
  #crashes: CrashPoint[] = [];
  /** Crash points passed so far. */
  crashed = 0;
  #failure: unknown;
  #steps = 0;
  /** GridManagers that were started, and the faults that they reported and contained. */
  managers = 0;
  readonly faults: string[] = [];
  /** Whether faults are expected; otherwise they break the promises. */
  faulty = false;
  /** How far the GridManager's clock was moved forward, in milliseconds. */
  ahead = 0;

  constructor(
    queue: Queue,
    random: () => number,
    weather: Weather,
    others: readonly string[] = [],
    dir = mkdtempSync('/tmp/gpw-'),
  ) {
    this.#queue = queue;
    this.identity = `user${++worlds}`;
    this.dir = dir;
    this.site = new SimulatedSite('there', random);
    this.sites = new Map([this.site, ...others.map((name) => new SimulatedSite(name, random))].map((s) => [s.name, s]));
    for (const site of this.sites.values()) site.weather = weather;
  }

  get jobs(): readonly JobId[] {
    return this.#jobs;
  }

  async submit(count: number, how: 'flooded' | 'at the site' = 'at the site'): Promise<readonly JobId[]> {
    const { cluster } = await this.#queue.submit({
      clusterAd: {
        Owner: JSON.stringify(this.identity),
        Cmd: '"/bin/true"',
        Iwd: JSON.stringify(this.dir),
        JobUniverse: '5',
      },
      procs: Array.from({ length: count }, (_, proc) => ({ attrs: { Out: `"out.${this.#jobs.length + proc}"` } })),
      manager: this.identity,
      site: how === 'flooded' ? '' : 'there',
    });
    const ids = Array.from({ length: count }, (_, proc) => ({ cluster, proc }));
    this.#jobs.push(...ids);
    return ids;
  }

  async act(id: JobId, event: 'hold' | 'release' | 'remove'): Promise<void> {
    const result = await this.#queue.transition({ id, event });
    if (result.ok && event === 'release') {
      this.#asked.set(formatJobId(id), (this.#asked.get(formatJobId(id)) ?? 0) + 1);
    }
  }

  /** A user moves it to that site. */
  async move(id: JobId, site: string): Promise<readonly ActionResult[]> {
    return move(this.#queue, { ids: [id] }, { ...LOCAL_SITE, name: site });
  }

  /** The GridManager dies at each of these in turn; after each death another is started. */
  crashAt(points: readonly CrashPoint[]): void {
    this.#crashes = [...points];
    armCrash(this.#crashes.shift());
  }

  /**
   * One step of everything: the site moves, and a dead GridManager is replaced. Its back-off from the site is
   * shortened.
   */
  async step(): Promise<void> {
    if (this.#failure !== undefined) throw this.#failure;
    for (const site of this.sites.values()) site.tick();
    if (!this.#running) this.#start();
    if (++this.#steps % 10 === 0) {
      for (const name of this.sites.keys()) await this.#manager?.encourage(name).catch(() => undefined);
    }
    if (this.#steps % 4 === 0) await this.#flood();
    await new Promise((done) => setTimeout(done, 5));
  }

  /** Like the broker: adds a candidate at every site for each job that has none there. */
  async #flood(): Promise<void> {
    const waiting = (await this.records()).filter(({ site, state }) => site === '' && state === 'idle');
    const candidates = waiting.flatMap(({ id }) =>
      [...this.sites.keys()].map((site) => ({ id, event: 'opened', manager: this.identity, site }) as const),
    );
    if (candidates.length > 0) await this.#queue.candidates.step(candidates);
  }

  async records(): Promise<readonly JobRecord[]> {
    return this.#queue.get(this.#jobs);
  }

  /** Steps until `holds`; after the deadline, throws with the state of everything. */
  async until(holds: (jobs: readonly JobRecord[]) => boolean | Promise<boolean>, ms = 30_000): Promise<void> {
    const deadline = Date.now() + ms;
    for (;;) {
      const jobs = await this.records();
      if (await holds(jobs)) return;
      if (Date.now() > deadline) {
        const open = jobs.filter((job) => !isEnd(job.state)).map((job) => `${formatJobId(job.id)} ${job.state}`);
        throw new Error(`still open: ${open.join(', ')}; at the sites: ${this.holds.join(', ')}`);
      }
      await this.step();
    }
  }

  /** No more faults, and every held job is released, until all jobs have ended. */
  async finish(): Promise<void> {
    armCrash(undefined);
    this.#crashes = [];
    for (const site of this.sites.values()) {
      site.weather = { lost: 0, unanswered: 0, twice: 0, late: 0 };
      site.cut = false;
      site.full = false;
    }
    await this.until(async (jobs) => {
      for (const job of jobs) if (job.state === 'held' || job.state === 'kept') await this.act(job.id, 'release');
      return jobs.every((job) => isEnd(job.state)) && (await this.candidates()) === 0;
    });
  }

  /** The existing candidates, including those being withdrawn. */
  async candidates(): Promise<number> {
    const places = await this.#queue.candidates.places();
    return places
      .filter(({ manager }) => manager === this.identity)
      .reduce((sum, { candidates }) => sum + candidates, 0);
  }

  get holds(): readonly string[] {
    return [...this.sites.values()].flatMap((site) => site.holds.map((key) => `${key} at ${site.name}`));
  }

  /** Violations of the invariants of docs/ARCHITECTURE.md; empty if all hold. */
  async broken(): Promise<string[]> {
    const wrong: string[] = [];
    const ends = await this.#ends();
    const startsOf = new Map<string, number>();
    for (const [key, starts] of [...this.sites.values()].flatMap((site) => [...site.starts])) {
      if (starts > 1) wrong.push(`attempt ${key} started ${starts} times`);
      const attempt = parseAttemptKey(key);
      const name = attempt ? formatJobId(attempt) : '';
      startsOf.set(name, (startsOf.get(name) ?? 0) + starts);
    }
    const jobs = await this.records();
    for (const [i, job] of jobs.entries()) {
      const name = formatJobId(job.id);
      const starts = startsOf.get(name) ?? 0;
      const asked = 1 + (this.#asked.get(name) ?? 0);
      if (starts > asked) wrong.push(`job ${name} started ${starts} times where ${asked} were asked for`);
      if ((ends.get(name) ?? 0) !== 1) wrong.push(`job ${name} ended ${ends.get(name) ?? 0} times`);
      if (job.state === 'completed') {
        if (starts === 0) wrong.push(`job ${name} completed and never started`);
        const key = `${this.#queue.agent}.${name}.${job.attempt}\n`;
        const output = readOr(join(this.dir, `out.${i}`));
        if (output !== key) wrong.push(`job ${name} has the output ${JSON.stringify(output)}, not its own`);
      }
    }
    if (!this.faulty) wrong.push(...this.faults);
    if (this.holds.length > 0) wrong.push(`left at the sites: ${this.holds.join(', ')}`);
    return wrong;
  }

  async end(): Promise<void> {
    armCrash(undefined);
    this.#manager?.end();
    await this.#running;
    rmSync(this.dir, { recursive: true, force: true });
  }

  #start(): void {
    this.managers += 1;
    const manager = new GridManager({
      identity: this.identity,
      queue: this.#queue,
      spoolDir: join(this.dir, 'spool'),
      hungAfterMs: () => 90_000,
      loadSite: async (name) => (this.sites.has(name) ? { ...LOCAL_SITE, name } : undefined),
      loadSites: async () => new Map([...this.sites.keys()].map((name) => [name, { ...LOCAL_SITE, name }])),
      problem: () => undefined,
      retry: () => ({ min: 1000, max: 300_000 }),
      openSite: async ({ name }) => this.sites.get(name) ?? this.site,
      gate: new CredentialGate({
        load: () => Promise.reject(new Error('no job here needs a credential')),
        limits: { holdBefore: 60, skew: 0 },
        now: Date.now,
      }),
      secrets: new Secrets([]),
      remoteIo: () => [],
      ioProxy: new ProxyPrograms(() => ({ repository: this.dir, from: 'own', log: () => undefined })),
      urls: urlAccess({ configDir: this.dir }, { 'urls.netrc': undefined, 'urls.ca': undefined }),
      streamEveryMs: () => 10_000,
      lingerMs: 60_000,
      log: () => undefined,
      onFault: (message) => void this.faults.push(message),
      now: () => Date.now() + this.ahead,
    });
    this.#manager = manager;
    this.#running = manager.run().then(
      () => this.#ended(undefined),
      (thrown: unknown) => this.#ended(thrown),
    );
  }

  #ended(thrown: unknown): void {
    this.#running = undefined;
    this.#manager = undefined;
    if (thrown instanceof SimulatedCrash) {
      this.crashed += 1;
      armCrash(this.#crashes.shift());
    } else if (thrown !== undefined) this.#failure = thrown;
  }

  /** How often the queue's events report the end of each job. */
  async #ends(): Promise<ReadonlyMap<string, number>> {
    const ends = new Map<string, number>();
    for (let from = '0'; ; ) {
      const entries = await this.#queue.readEvents(from, { limit: 1000 });
      const last = entries.at(-1);
      if (!last) return ends;
      from = last.id;
      for (const { event } of entries) {
        if (event.type !== 'transition' || !isEnd(event.to) || isEnd(event.from)) continue;
        ends.set(event.job, (ends.get(event.job) ?? 0) + 1);
      }
    }
  }
}

function readOr(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}
