import { deepEqual, equal, ok, rejects } from 'node:assert/strict';
import type { Redis } from 'ioredis';
import { formatJobId, parseJobId } from '../../src/job/ids.ts';
import { LIFE, type LifeEvent, type State } from '../../src/job/life.ts';
import type { Change, JobRecord, Lease, Queue } from '../../src/queue/api.ts';
import { all } from './all.ts';
import { Model, replay } from './model.ts';
import type { Step } from './steps.ts';

/** One run: the real queue and the model side by side. */
export class Run {
  model = new Model();
  readonly queue: Queue;
  /** A second connection to the queue's Redis, to inspect what is stored. */
  readonly #raw: Redis;
  lease: Lease | undefined;
  stale: Lease = { name: 'gm', epoch: 0 };

  constructor(queue: Queue, raw: Redis) {
    this.queue = queue;
    this.#raw = raw;
  }

  async step(step: Step): Promise<void> {
    if (step.do === 'submit') await this.#submit(step);
    else if (step.do === 'materialize') await this.#materialize(step);
    else if (step.do === 'change') await this.#change(step);
    else if (step.do === 'retire') {
      const ids = step.picks.flatMap((n) => this.#id(n) ?? []);
      equal(await this.queue.retire(ids), this.model.retire([...new Set(ids.map(formatJobId))]));
    } else {
      if (this.lease) this.stale = this.lease;
      this.lease = await this.queue.acquireLease('gm', 60_000, { force: true });
      ok((this.lease?.epoch ?? 0) > this.stale.epoch);
    }
  }

  #id(n: number) {
    const ids = [...this.model.jobs.keys()];
    const name = ids[n % Math.max(ids.length, 1)];
    return name === undefined ? undefined : parseJobId(name);
  }

  async #submit({ procs, place, late, dies }: Extract<Step, { do: 'submit' }>): Promise<void> {
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
      await rejects(submitted, /died/);
      return;
    }
    const { cluster } = await submitted;
    this.model.clusters.set(cluster, { ad: clusterAd, next: 0, late, place });
    this.model.add(cluster, procs);
  }

  async #materialize({ pick, procs, done, wrong }: Extract<Step, { do: 'materialize' }>): Promise<void> {
    const lates = [...this.model.clusters].filter(([, { late }]) => late);
    const [cluster, known] = lates[pick % Math.max(lates.length, 1)] ?? [];
    if (cluster === undefined || !known) return;
    const nextProc = known.next + (wrong ? 1 : 0);
    const result = await this.queue.materialize(cluster, { nextProc, procs, done });
    if (wrong) {
      deepEqual(result, { ok: false, why: 'conflict', nextProc: known.next });
      return;
    }
    this.model.add(cluster, procs);
    deepEqual(result, { ok: true, nextProc: known.next });
    known.late = !done;
    this.model.sweep(cluster);
  }

  async #change({ wishes, as, cut }: Extract<Step, { do: 'change' }>): Promise<void> {
    const changes: Change[] = [];
    for (const { pick: n, event, prio, set, from, attempt, route, at } of wishes) {
      const id = this.#id(n) ?? { cluster: 999_999, proc: 0 };
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
        ...(at && { at }),
        ...(Object.keys(wished).length > 0 && { set: wished }),
      });
    }
    const lease = as === 'holder' ? this.lease : as === 'stale' ? this.stale : undefined;
    const after = this.model.copy();
    const expected = changes.map((change) => after.change(change, as === 'stale'));
    if (!cut) {
      const answers = await this.queue.transitionMany(changes, lease);
      deepEqual(
        answers.map((answer) => ({ ...answer, message: undefined })),
        expected.map((answer) => ({ ...answer, message: undefined })),
      );
      this.model = after;
      return;
    }
    // All connections are cut while the script runs: either all of it happened, or nothing.
    const before = await this.#stored();
    const under = this.queue.transitionMany(changes, lease).catch(() => undefined);
    await this.#raw.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    await under;
    if ((await this.#stored()) !== before) this.model = after;
  }

  async #stored(): Promise<string> {
    const jobs: unknown[] = [];
    for await (const { attrs, ...job } of this.queue.query()) jobs.push([job, attrs.own]);
    return JSON.stringify([jobs, await this.#raw.xlen('gryphus:events')]);
  }

  async #live() {
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
    deepEqual(await this.#live(), modelLive(model));
    for await (const job of queue.query()) {
      const mine = model.jobs.get(formatJobId(job.id));
      for (const [name, said] of Object.entries(mine?.own ?? {})) equal(job.attrs.get(name), said ?? undefined);
    }
    for (const { cluster } of await queue.clusters()) {
      const read = (await all(queue.queryChunks({ clusters: [cluster] }))).flat();
      const heads = (await all(queue.heads(cluster))).flat();
      deepEqual(
        heads.map(({ id, state }) => [id, state]),
        read.map(({ id, state }) => [id, state]),
      );
    }
    await this.#checkIndexes();
    const events = (await queue.readEvents('0', { limit: 100_000 })).map(({ event }) => event);
    const { live, gone } = replay(events);
    deepEqual([...live.keys()].sort(), [...model.jobs.keys()].sort());
    for (const [id, said] of live) {
      const job = model.jobs.get(id);
      equal(said, job?.stepped ? `${job.attempt} ${job.state}` : '0');
    }
    deepEqual([...gone].sort(), [...model.retired.keys()].sort());
    const history: string[] = [];
    for await (const { id, state } of queue.history.read()) history.push(`${formatJobId(id)} ${state}`);
    deepEqual(history.sort(), [...model.retired].map(([id, state]) => `${id} ${state}`).sort());
  }

  async #checkIndexes(): Promise<void> {
    const { model, queue } = this;
    const totals = await queue.totals();
    equal(totals.jobs, model.jobs.size);
    const places = new Map<string, number>();
    for (const { manager, site, state } of model.jobs.values()) {
      const key = JSON.stringify([manager, site, state]);
      places.set(key, (places.get(key) ?? 0) + 1);
    }
    deepEqual(new Map(totals.places.map((p) => [JSON.stringify([p.manager, p.site, p.state]), p.jobs])), places);
    for (const key of places.keys()) {
      const [manager, site, state] = JSON.parse(key) as [string, string, State];
      const found = await queue.nextJobs({ manager, site, state, limit: 1000 });
      deepEqual(
        found.map(({ id }) => formatJobId(id)),
        model.order(manager, site, state),
      );
      const two = await queue.nextJobs({ manager, site, state, limit: 2 });
      deepEqual(
        two.map(({ id }) => formatJobId(id)),
        model.order(manager, site, state).slice(0, 2),
      );
      const asked: string[] = [];
      for await (const { id } of queue.query({ manager, site, states: [state] })) asked.push(formatJobId(id));
      deepEqual(asked.sort(), model.order(manager, site, state).sort());
    }
    const clusters = await queue.clusters();
    deepEqual(
      clusters.map(({ cluster }) => cluster),
      [...model.clusters.keys()].sort((a, b) => a - b),
    );
    for (const { cluster, counts, nextProc } of clusters) {
      const mine: Partial<Record<State, number>> = {};
      for (const [id, { state }] of model.jobs) if (id.startsWith(`${cluster}.`)) mine[state] = (mine[state] ?? 0) + 1;
      deepEqual(counts, mine);
      equal(nextProc, model.clusters.get(cluster)?.next);
    }
    for (const { cluster, counts, procs } of await queue.summaries()) {
      const mine = [...model.jobs.keys()].flatMap((id) => {
        const at = parseJobId(id);
        return at?.cluster === cluster ? [at.proc] : [];
      });
      deepEqual(procs, mine.length === 0 ? undefined : { first: Math.min(...mine), last: Math.max(...mine) });
      deepEqual(counts, clusters.find((one) => one.cluster === cluster)?.counts);
    }
    deepEqual(
      (await queue.unmaterialized()).map(({ cluster }) => cluster),
      [...model.clusters]
        .filter(([, { late }]) => late)
        .map(([n]) => n)
        .sort((a, b) => a - b),
    );
    // No key remains of what was removed.
    const kept = new Set(clusters.map(({ cluster }) => String(cluster)));
    const orphans = (await this.#raw.keys('gryphus:*')).filter((key) => {
      const found = /^gryphus:(?:j|g|c|ad|sg):(\d+)/.exec(key);
      return found?.[1] !== undefined && !kept.has(found[1]);
    });
    deepEqual(orphans, []);
    const indexed = (await this.#raw.keys('gryphus:q:*')).length;
    equal(indexed, places.size);
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
