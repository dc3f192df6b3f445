import { expect, it } from 'vitest';
import type { EventWithCursor, Gryphus, JobView } from '../../src/index.ts';
import type { Hub, Listener } from '../../src/web/hub.ts';
import { JobTable } from '../../src/web/job-table.ts';
import { deferred } from '../../src/util/deferred.ts';
import { Recent } from '../../src/web/recent.ts';

const WISH = { box: '', sort: 'submitted', descending: false, offset: 0, limit: 10 } as const;

it('goes on when the queue could not be read once, and knows what changed meanwhile', async () => {
  let tell: Listener = () => undefined;
  let away = false;
  let jobs = ['1.0', '1.1'];
  const gryphus = {
    async *queryChunks({ ids }: { ids?: readonly { cluster: number; proc: number }[] }) {
      await Promise.resolve();
      if (away) throw new Error('Redis is away');
      const wanted = ids?.map(({ cluster, proc }) => `${cluster}.${proc}`);
      yield jobs
        .filter((job) => wanted?.includes(job) ?? true)
        .map((job) => {
          const [cluster = 0, proc = 0] = job.split('.').map(Number);
          return { id: { cluster, proc }, state: 'idle', ad: {} } as unknown as JobView;
        });
    },
  } as unknown as Gryphus;
  const hub = { listen: (listener: Listener) => ((tell = listener), () => undefined) } as unknown as Hub;
  const table = new JobTable(gryphus, hub);
  expect((await table.page(WISH)).all).toBe(2);
  away = true;
  jobs = ['1.1'];
  tell([{ type: 'retired', jobs: ['1.0'] } as unknown as EventWithCursor]);
  await expect(table.page(WISH)).rejects.toThrow('Redis is away');
  away = false;
  expect((await table.page(WISH)).all).toBe(1);
});

it('keeps a new answer when an old question fails at last', async () => {
  const recent = new Recent();
  const late = deferred<number>();
  const first = recent.get('one', 10, () => late.promise, 1000);
  expect(await recent.get('one', 10, () => Promise.resolve(2), 1011)).toBe(2);
  late.reject(new Error('late'));
  await expect(first).rejects.toThrow('late');
  expect(await recent.get('one', 10, () => Promise.resolve(3), 1012)).toBe(2);
});
