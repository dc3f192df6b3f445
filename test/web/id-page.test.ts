import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import type { ClusterView, JobId, JobView } from '../../src/index.ts';
import { pageById } from '../../src/web/id-page.ts';

/** A queue of these procs by cluster, the first cluster 1. */
function queueOf(clusters: readonly (readonly number[])[]) {
  let looked = 0;
  const sets = clusters.map((procs) => new Set(procs));
  const gryphus = {
    clusters: () =>
      Promise.resolve(
        clusters.map((procs, at) => {
          const ends = procs.length === 0 ? {} : { first: procs[0], last: procs.at(-1) };
          return { cluster: at + 1, totals: { jobs: procs.length }, ...ends } as unknown as ClusterView;
        }),
      ),
    async *queryChunks({ ids = [] }: { ids?: readonly JobId[] }) {
      await Promise.resolve();
      looked += ids.length;
      const there = ids.filter(({ cluster, proc }) => sets[cluster - 1]?.has(proc));
      const sorted = there.toSorted((a, b) => a.cluster - b.cluster || a.proc - b.proc);
      yield sorted.map((id) => ({ id, state: 'idle', ad: {} }) as unknown as JobView);
    },
  };
  return { gryphus, looked: () => looked };
}

it('gives the part of all jobs, sorted by id, that was asked for', async () => {
  const procs = fc.uniqueArray(fc.nat(40), { maxLength: 30 }).map((all) => all.sort((a, b) => a - b));
  const page = fc.record({ offset: fc.nat(120), limit: fc.integer({ min: 1, max: 60 }), descending: fc.boolean() });
  await fc.assert(
    fc.asyncProperty(fc.array(procs, { maxLength: 5 }), page, async (clusters, wish) => {
      const all = clusters.flatMap((some, at) => some.map((proc) => `${at + 1}.${proc}`));
      if (wish.descending) all.reverse();
      const found = await pageById(queueOf(clusters).gryphus, wish);
      expect(found?.all).toBe(all.length);
      expect(found?.rows.map(({ id }) => `${id.cluster}.${id.proc}`)).toEqual(
        all.slice(wish.offset, wish.offset + wish.limit),
      );
    }),
  );
});

it('looks at no more jobs than it shows while none has left, and gives up in the middle of many with gaps', async () => {
  const many = Array.from({ length: 100_000 }, (_, proc) => proc);
  const whole = queueOf([many]);
  const page = await pageById(whole.gryphus, { offset: 50_000, limit: 100, descending: true });
  expect(page?.rows[0]?.id.proc).toBe(49_999);
  expect(whole.looked()).toBe(100);
  const gaps = queueOf([many.filter((proc) => proc !== 5)]);
  expect(await pageById(gaps.gryphus, { offset: 50_000, limit: 100, descending: true })).toBeUndefined();
  expect((await pageById(gaps.gryphus, { offset: 0, limit: 100, descending: true }))?.rows).toHaveLength(100);
});
