import { rmSync } from 'node:fs';
import fc from 'fast-check';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { formatJobId, parseJobId } from '../../src/job/ids.ts';
import { isEnd, LIFE, type LifeEvent, STATES, type State } from '../../src/job/life.ts';
import type { Change, JobRecord, Lease, ProcInput, Queue } from '../../src/queue/api.ts';
import { startRedis, type TestRedis } from '../sites/redis.ts';
import { Model, replay } from './model.ts';

const EVENTS = [...new Set(STATES.flatMap((state) => Object.keys(LIFE[state].on)))] as LifeEvent[];
const MANAGERS = ['', 'frida', 'frida+/O=Grid/CN=F|r:i"d\\a'];
const SITES = ['', 'hpc', 'a:b|c'];

let redis: TestRedis;
let raw: Redis;
beforeAll(async () => {
  redis = await startRedis();
  raw = new Redis(redis.socket);
});
afterAll(async () => {
  raw.disconnect();
  await redis.stop();
});

const text = fc
  .oneof(fc.string({ unit: 'grapheme', maxLength: 8 }), fc.constantFrom('/', '\\', '"', '\n', '|'))
  .map((s) => `"${s.toWellFormed()}"`);
const place = fc.record({ manager: fc.constantFrom(...MANAGERS), site: fc.constantFrom(...SITES) });
const proc: fc.Arbitrary<ProcInput> = fc.record(
  {
    attrs: fc
      .dictionary(fc.constantFrom('Args', 'Out', 'JobPrio'), text)
      .chain((attrs) =>
        fc
          .integer({ min: -3, max: 3 })
          .map((prio) => ('JobPrio' in attrs ? { ...attrs, JobPrio: String(prio) } : attrs)),
      ),
    state: fc.constantFrom('idle' as const, 'held' as const),
    site: fc.constantFrom(...SITES),
  },
  { requiredKeys: ['attrs'] },
);
/** Which job: a number that is taken modulo how many there are. */
const pick = fc.nat({ max: 12 });
const sometimes = <T>(some: fc.Arbitrary<T>) =>
  fc.oneof({ weight: 9, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary: some });
const wish = fc.record(
  {
    pick,
    /** Most of the time, by number, an event that the state knows. */
    event: fc.oneof(
      { weight: 1, arbitrary: fc.constant(undefined) },
      { weight: 2, arbitrary: fc.constantFrom(...EVENTS) },
      { weight: 6, arbitrary: fc.nat({ max: 20 }) },
    ),
    from: sometimes(fc.constantFrom(...STATES)),
    attempt: sometimes(fc.nat({ max: 2 })),
    set: fc.dictionary(fc.constantFrom('Args', 'GridJobId'), fc.option(text)),
    prio: fc.integer({ min: -3, max: 3 }),
    route: sometimes(place),
  },
  { requiredKeys: ['pick', 'event', 'from', 'attempt', 'route'] },
);

type Wish = typeof wish extends fc.Arbitrary<infer T> ? T : never;

type Step =
  | { do: 'submit'; procs: ProcInput[]; place: { manager: string; site: string }; late: boolean; dies: boolean }
  | { do: 'materialize'; pick: number; procs: ProcInput[]; done: boolean; wrong: boolean }
  | { do: 'change'; wishes: Wish[]; as: 'user' | 'holder' | 'stale'; cut: boolean }
  | { do: 'retire'; picks: number[] }
  | { do: 'take-over' };

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('submit' as const),
      procs: fc.array(proc, { minLength: 1, maxLength: 6 }),
      place,
      late: fc.boolean(),
      dies: fc.boolean(),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('materialize' as const),
      pick,
      procs: fc.array(proc, { maxLength: 3 }),
      done: fc.boolean(),
      wrong: fc.boolean(),
    }),
  },
  {
    weight: 9,
    arbitrary: fc.record({
      do: fc.constant('change' as const),
      wishes: fc.array(wish, { minLength: 1, maxLength: 8 }),
      as: fc.constantFrom('user' as const, 'holder' as const, 'holder' as const, 'stale' as const),
      cut: fc.nat({ max: 5 }).map((n) => n === 0),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('retire' as const), picks: fc.array(pick, { minLength: 1, maxLength: 8 }) }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('take-over' as const) }) },
);

/** One run: the real queue and the model side by side. */
class Run {
  model = new Model();
  queue: Queue;
  lease: Lease | undefined;
  stale: Lease = { name: 'gm', epoch: 0 };

  constructor(queue: Queue) {
    this.queue = queue;
  }

  async step(step: Step): Promise<void> {
    if (step.do === 'submit') await this.submit(step);
    else if (step.do === 'materialize') await this.materialize(step);
    else if (step.do === 'change') await this.change(step);
    else if (step.do === 'retire') {
      const ids = step.picks.flatMap((n) => this.id(n) ?? []);
      expect(await this.queue.retire(ids)).toBe(this.model.retire([...new Set(ids.map(formatJobId))]));
    } else {
      if (this.lease) this.stale = this.lease;
      this.lease = await this.queue.acquireLease('gm', 60_000, { force: true });
      expect(this.lease?.epoch).toBeGreaterThan(this.stale.epoch);
    }
  }

  id(n: number) {
    const ids = [...this.model.jobs.keys()];
    const name = ids[n % Math.max(ids.length, 1)];
    return name === undefined ? undefined : parseJobId(name);
  }

  async submit({ procs, place, late, dies }: Extract<Step, { do: 'submit' }>): Promise<void> {
    const clusterAd = { Owner: '"f"', JobPrio: '1' };
    function* some() {
      yield* procs;
      if (dies) throw new Error('died');
    }
    const submitted = this.queue.submit({
      clusterAd,
      procs: some(),
      ...place,
      ...(late && { digest: 'queue 99', total: 99 }),
    });
    if (dies) {
      await expect(submitted).rejects.toThrow('died');
      return;
    }
    const { cluster } = await submitted;
    this.model.clusters.set(cluster, { ad: clusterAd, next: 0, late });
    this.model.add(cluster, procs, place);
  }

  async materialize({ pick, procs, done, wrong }: Extract<Step, { do: 'materialize' }>): Promise<void> {
    const lates = [...this.model.clusters].filter(([, { late }]) => late);
    const [cluster, known] = lates[pick % Math.max(lates.length, 1)] ?? [];
    if (cluster === undefined || !known) return;
    const nextProc = known.next + (wrong ? 1 : 0);
    const result = await this.queue.materialize(cluster, { nextProc, procs, done });
    if (wrong) {
      expect(result).toEqual({ ok: false, why: 'conflict', nextProc: known.next });
      return;
    }
    this.model.add(cluster, procs, { manager: '', site: '' });
    expect(result).toEqual({ ok: true, nextProc: known.next });
    known.late = !done;
    this.model.sweep(cluster);
  }

  async change({ wishes, as, cut }: Extract<Step, { do: 'change' }>): Promise<void> {
    const changes: Change[] = [];
    for (const { pick: n, event, prio, set, from, attempt, route } of wishes) {
      const id = this.id(n) ?? { cluster: 999_999, proc: 0 };
      const state = this.model.jobs.get(formatJobId(id))?.state ?? 'idle';
      const known = Object.keys(LIFE[state].on) as LifeEvent[];
      const chosen = typeof event === 'number' ? known[event % Math.max(known.length, 1)] : event;
      const wished = { ...set, ...(prio !== undefined && { JobPrio: String(prio) }) };
      changes.push({
        id,
        ...(chosen && { event: chosen }),
        ...(from && { from }),
        ...(attempt !== undefined && { attempt }),
        ...(route && { route }),
        ...(Object.keys(wished).length > 0 && { set: wished }),
      });
    }
    const lease = as === 'holder' ? this.lease : as === 'stale' ? this.stale : undefined;
    const after = this.model.copy();
    const expected = changes.map((change) => after.change(change, as === 'stale'));
    if (!cut) {
      expect(await this.queue.transitionMany(changes, lease)).toMatchObject(expected);
      this.model = after;
      return;
    }
    // All connections are cut while the script is under way: all of it happened, or nothing.
    const before = await this.stored();
    const under = this.queue.transitionMany(changes, lease).catch(() => undefined);
    await raw.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    await under;
    if ((await this.stored()) !== before) this.model = after;
  }

  async stored(): Promise<string> {
    const jobs: unknown[] = [];
    for await (const { attrs, ...job } of this.queue.query()) jobs.push([job, attrs.own]);
    return JSON.stringify([jobs, await raw.xlen('gryphus:events')]);
  }

  async live() {
    const jobs: JobRecord[] = [];
    for await (const job of this.queue.query()) jobs.push(job);
    return jobs.map(({ id, state, manager, site, attempt, priority }) => ({
      id: formatJobId(id),
      state,
      manager,
      site,
      attempt,
      priority,
    }));
  }

  async check(): Promise<void> {
    const { model, queue } = this;
    expect(await this.live()).toEqual(modelLive(model));
    for await (const job of queue.query()) {
      const mine = model.jobs.get(formatJobId(job.id));
      for (const [name, said] of Object.entries(mine?.own ?? {})) expect(job.attrs.get(name)).toBe(said ?? undefined);
    }
    await this.checkIndexes();
    const events = (await queue.readEvents('0', { limit: 100_000 })).map(({ event }) => event);
    const { live, gone } = replay(events);
    expect([...live.keys()].sort()).toEqual([...model.jobs.keys()].sort());
    for (const [id, said] of live) {
      const job = model.jobs.get(id);
      if (said !== '0') expect(said).toBe(`${job?.attempt} ${job?.state}`);
    }
    expect([...gone].sort()).toEqual([...model.retired.keys()].sort());
    const history: string[] = [];
    for await (const { id, state } of queue.history.read()) history.push(`${formatJobId(id)} ${state}`);
    expect(history.sort()).toEqual([...model.retired].map(([id, state]) => `${id} ${state}`).sort());
  }

  async checkIndexes(): Promise<void> {
    const { model, queue } = this;
    const totals = await queue.totals();
    expect(totals.jobs).toBe(model.jobs.size);
    const places = new Map<string, number>();
    for (const { manager, site, state } of model.jobs.values()) {
      const key = JSON.stringify([manager, site, state]);
      places.set(key, (places.get(key) ?? 0) + 1);
    }
    expect(new Map(totals.places.map((p) => [JSON.stringify([p.manager, p.site, p.state]), p.jobs]))).toEqual(places);
    for (const key of places.keys()) {
      const [manager, site, state] = JSON.parse(key) as [string, string, State];
      const found = await queue.nextJobs({ manager, site, state, limit: 1000 });
      expect(found.map(({ id }) => formatJobId(id))).toEqual(model.order(manager, site, state));
      const two = await queue.nextJobs({ manager, site, state, limit: 2 });
      expect(two.map(({ id }) => formatJobId(id))).toEqual(model.order(manager, site, state).slice(0, 2));
      const asked: string[] = [];
      for await (const { id } of queue.query({ manager, site, states: [state] })) asked.push(formatJobId(id));
      expect(asked.sort()).toEqual(model.order(manager, site, state).sort());
    }
    const clusters = await queue.clusters();
    expect(clusters.map(({ cluster }) => cluster)).toEqual([...model.clusters.keys()].sort((a, b) => a - b));
    for (const { cluster, counts, nextProc } of clusters) {
      const mine: Partial<Record<State, number>> = {};
      for (const [id, { state }] of model.jobs) if (id.startsWith(`${cluster}.`)) mine[state] = (mine[state] ?? 0) + 1;
      expect(counts).toEqual(mine);
      expect(nextProc).toBe(model.clusters.get(cluster)?.next);
    }
    expect((await queue.unmaterialized()).map(({ cluster }) => cluster)).toEqual(
      [...model.clusters]
        .filter(([, { late }]) => late)
        .map(([n]) => n)
        .sort((a, b) => a - b),
    );
    // No key is left of what is no more.
    const kept = new Set(clusters.map(({ cluster }) => String(cluster)));
    const orphans = (await raw.keys('gryphus:*')).filter((key) => {
      const found = /^gryphus:(?:j|g|c|ad|sg):(\d+)/.exec(key);
      return found?.[1] !== undefined && !kept.has(found[1]);
    });
    expect(orphans).toEqual([]);
    const indexed = (await raw.keys('gryphus:q:*')).length;
    expect(indexed).toBe(places.size);
  }
}

function modelLive(model: Model) {
  return [...model.jobs]
    .map(([id, { state, manager, site, attempt, priority }]) => ({ id, state, manager, site, attempt, priority }))
    .sort((a, b) => {
      const [x, y] = [parseJobId(a.id), parseJobId(b.id)];
      return (x?.cluster ?? 0) - (y?.cluster ?? 0) || (x?.proc ?? 0) - (y?.proc ?? 0);
    });
}

it('keeps states, indexes, counters, events and history in agreement, whatever is done and cut off', async () => {
  let ends = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 60, size: 'max' }), async (steps) => {
      await raw.flushall();
      rmSync(`${redis.stateDir}/history`, { recursive: true, force: true });
      const queue = await redis.open();
      const run = new Run(queue);
      try {
        await run.step({ do: 'take-over' });
        for (const one of steps) await run.step(one);
        await run.check();
        ends += [...run.model.jobs.values()].filter((job) => isEnd(job.state)).length + run.model.retired.size;
      } finally {
        await queue.close();
      }
    }),
    { numRuns: 40 },
  );
  // The walk is no good if it never gets anywhere.
  expect(ends).toBeGreaterThan(40);
}, 120_000);
