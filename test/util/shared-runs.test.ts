import { expect, it } from 'vitest';
import { deferred } from '../../src/util/deferred.ts';
import { SharedRuns } from '../../src/util/shared-runs.ts';

it('work of one name runs once at a time, and is new after its end', async () => {
  const runs = new SharedRuns<number>();
  const gate = deferred<undefined>();
  let began = 0;
  const work = async (): Promise<number> => {
    began += 1;
    const mine = began;
    await gate.promise;
    if (mine === 1) throw new Error('first');
    return mine;
  };
  const first = [runs.run('a', work), runs.run('a', work)];
  const other = runs.run('b', work);
  gate.resolve(undefined);
  await expect(Promise.allSettled(first)).resolves.toMatchObject([{ status: 'rejected' }, { status: 'rejected' }]);
  expect(await other).toBe(2);
  expect(await runs.run('a', work)).toBe(3);
});
