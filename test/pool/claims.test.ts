import { describe, expect, it } from 'vitest';
import { OneCorePool } from './one-core-pool.ts';

/** Starts jobs as they arrive, each for some time, until nothing more is started; returns their order. */
async function order(pool: OneCorePool, seconds: number): Promise<string[]> {
  for (let seen = 0; seen < pool.of('start').length; seen++) {
    const i = Number(pool.of('start')[seen]?.split('.')[1]);
    await pool.starts(i);
    pool.now += seconds * 1000;
    pool.ends(i);
    await pool.tick();
  }
  return pool.of('start').map((key) => key.split('.')[1] ?? '');
}

describe('a claim', () => {
  it('continues with the next job of its kind while no job comes before it', async () => {
    const pool = new OneCorePool({});
    for (const i of [1, 2, 3]) pool.submit(i);
    // With the same owner, and no more urgent.
    pool.submit(4, { Requirements: '(true)' });
    await pool.tick();
    expect(await order(pool, 10)).toEqual(['1', '2', '3', '4']);
    expect(pool.told.filter(({ t }) => t === 'release')).toHaveLength(2);
  });

  it('goes back when an owner of better standing waits for what is under it', async () => {
    const pool = new OneCorePool({});
    for (const i of [1, 2, 3]) pool.submit(i, {}, { owner: 'heavy' });
    await pool.tick();
    pool.submit(4, {}, { owner: 'light' });
    await pool.tick();
    expect(await order(pool, 10)).toEqual(['1', '4', '2', '3']);
  });

  it('continues if that owner could not use it', async () => {
    const pool = new OneCorePool({});
    pool.submit(4, { Requirements: 'TARGET.Cpus > 8' }, { owner: 'light' });
    pool.submit(5, {}, { owner: 'large', size: { cpus: 2, memoryMb: 1, diskKb: 0, gpus: 0 } });
    for (const i of [1, 2, 3]) pool.submit(i, {}, { owner: 'heavy' });
    await pool.tick();
    expect(await order(pool, 10)).toEqual(['1', '2', '3']);
    expect(pool.told.filter(({ t }) => t === 'release')).toHaveLength(1);
  });

  it('goes back when its own owner has something more urgent', async () => {
    const pool = new OneCorePool({});
    for (const i of [1, 2, 3]) pool.submit(i);
    await pool.tick();
    pool.submit(4, { Requirements: '(true)' }, { prio: 5 });
    await pool.tick();
    expect(await order(pool, 10)).toEqual(['1', '4', '2', '3']);
  });

  it('is shared by turns between owners that always have something to run', async () => {
    const pool = new OneCorePool({});
    for (let i = 1; i <= 40; i++) pool.submit(i, {}, { owner: i % 2 === 0 ? 'ann' : 'bob' });
    await pool.tick();
    const owners = (await order(pool, 60)).map((i) => (Number(i) % 2 === 0 ? 'a' : 'b')).join('');
    expect(owners).toHaveLength(40);
    expect(owners).not.toMatch(/aaa|bbb/);
  });
});
