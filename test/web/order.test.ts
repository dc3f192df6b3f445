import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import type { EventWithCursor, Gryphus, JobId, JobView } from '../../src/index.ts';
import type { Hub, Listener } from '../../src/web/hub.ts';
import { JobTable, nameOf } from '../../src/web/job-table.ts';
import { Plans } from '../../src/web/plan.ts';

interface Job {
  readonly prio: number;
  readonly owner: string;
}

/** A queue of these jobs, by their names; `looked` has what was asked of it: how many were named, or undefined for all. */
class Jobs {
  readonly all = new Map<string, Job>();
  readonly looked: { readonly named: number | undefined; readonly constraint: string | undefined }[] = [];
  #tell: Listener = () => undefined;
  readonly table: JobTable;
  readonly gryphus: Gryphus;

  constructor() {
    const { all, looked } = this;
    this.gryphus = {
      clusters: () => Promise.resolve([]),
      async *queryChunks({ ids, constraint }: { ids?: readonly JobId[]; constraint?: string }) {
        await Promise.resolve();
        looked.push({ named: ids?.length, constraint });
        const above = Number(/^JobPrio > (\d+)$/.exec(constraint ?? '')?.[1] ?? -1);
        const views = (ids?.map(nameOf) ?? [...all.keys()]).flatMap((name) => {
          const job = all.get(name);
          return job && job.prio > above ? [viewOf(name, job)] : [];
        });
        yield views.sort((a, b) => a.id.cluster - b.id.cluster || a.id.proc - b.id.proc);
      },
    } as unknown as Gryphus;
    const hub = { listen: (listener: Listener) => ((this.#tell = listener), () => undefined) } as unknown as Hub;
    this.table = new JobTable(this.gryphus, hub);
  }

  change(name: string, job: Job | undefined): void {
    if (job) this.all.set(name, job);
    else this.all.delete(name);
    this.#tell([{ type: 'transition', job: name } as unknown as EventWithCursor]);
  }
}

function viewOf(name: string, { prio, owner }: Job): JobView {
  const [cluster = 0, proc = 0] = name.split('.').map(Number);
  const ad = { JobPrio: String(prio), Owner: `"${owner}"` };
  return { id: { cluster, proc }, state: 'idle', ad } as unknown as JobView;
}

const NAME = fc.tuple(fc.nat(3), fc.nat(8)).map(([cluster, proc]) => `${cluster}.${proc}`);
const JOB = fc.record({ prio: fc.nat(6), owner: fc.constantFrom('ann', 'bob', 'cy') });
const CHANGES = fc.array(fc.tuple(NAME, fc.option(JOB, { nil: undefined })), { maxLength: 12 });
const WISH = fc.record({
  box: fc.constantFrom('', 'bob', 'owner:cy', 'JobPrio > 2'),
  sort: fc.constantFrom('id', 'owner', 'prio', 'runtime'),
  descending: fc.boolean(),
});

it('keeps its lists as a new sort of all jobs would have them, whatever changes', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(WISH, { minLength: 1, maxLength: 3 }), fc.array(CHANGES), async (wishes, steps) => {
      const jobs = new Jobs();
      for (const changes of [[], ...steps]) {
        for (const [name, job] of changes) jobs.change(name, job);
        for (const wish of wishes) {
          const { rows, found, all } = await jobs.table.page({ ...wish, offset: 0, limit: 1000 });
          // Nothing is left to read here: by id without a box is answered by the clusters, of which this queue has none.
          if (wish.sort === 'id' && wish.box === '') continue;
          const expected = [...jobs.all]
            .map(([name, job]) => ({ name, job, id: viewOf(name, job).id }))
            .filter(({ job }) => wish.box === '' || fitsBox(wish.box, job))
            .sort(
              (a, b) =>
                (wish.sort === 'prio' ? a.job.prio - b.job.prio : 0) ||
                (wish.sort === 'owner' ? a.job.owner.localeCompare(b.job.owner) : 0) ||
                a.id.cluster - b.id.cluster ||
                a.id.proc - b.id.proc,
            )
            .map(({ name }) => name);
          if (wish.descending) expected.reverse();
          expect(rows.map(({ id }) => nameOf(id))).toEqual(expected);
          expect([found, all]).toEqual([expected.length, jobs.all.size]);
        }
      }
      jobs.table.close();
    }),
  );
});

function fitsBox(box: string, { prio, owner }: Job): boolean {
  return box === 'JobPrio > 2' ? prio > 2 : owner === box.replace('owner:', '');
}

it('asks for a constraint over all jobs once, and then only for those that change', async () => {
  const jobs = new Jobs();
  for (let proc = 0; proc < 5000; proc++) jobs.all.set(`1.${proc}`, { prio: 3, owner: 'ann' });
  const wish = { box: 'JobPrio > 2', sort: 'id', descending: false, offset: 0, limit: 10 } as const;
  expect((await jobs.table.page(wish)).found).toBe(5000);
  jobs.looked.length = 0;
  for (let proc = 0; proc < 20; proc++) {
    jobs.change(`1.${proc}`, { prio: 1, owner: 'ann' });
    expect((await jobs.table.page(wish)).found).toBe(4999 - proc);
  }
  expect(jobs.looked.map(({ named }) => named)).toEqual(Array.from({ length: 40 }, () => 1));
  jobs.looked.length = 0;
  expect((await jobs.table.page({ ...wish, sort: 'owner' })).found).toBe(4980);
  expect(await jobs.table.matching(wish.box)).toHaveLength(4980);
  expect(jobs.looked).toEqual([]);
  jobs.table.close();
});

it('plans what is done with some jobs without reading all others', async () => {
  const jobs = new Jobs();
  for (let proc = 0; proc < 50; proc++) jobs.all.set(`1.${proc}`, { prio: 3, owner: 'ann' });
  const plans = new Plans(jobs.gryphus, jobs.table);
  const plan = await plans.plan({ action: 'hold', choice: { jobs: ['1.7', '1.8', '1.99'], clusters: [] } });
  expect([plan.will, plan.examples]).toEqual([2, ['1.7', '1.8']]);
  expect(jobs.looked.map(({ named }) => named)).toEqual([3]);
});
