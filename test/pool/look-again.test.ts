import { describe, expect, it, vi } from 'vitest';
import { OneCorePool } from './one-core-pool.ts';

describe('a negotiation for which there is no reason but time', () => {
  /** A pool with a job that fits no machine; each look at the clock takes `ms`. */
  async function waiting(ms: number) {
    const pool = new OneCorePool({ TimeToLive: '9000' });
    let at = pool.now;
    Object.defineProperty(pool, 'now', {
      get: () => {
        at += ms;
        return at;
      },
      set: (to: number) => {
        at = to;
      },
    });
    const looks = vi.spyOn(pool.centralManager.collector, 'offers');
    pool.submit(1, { Requirements: 'false' });
    await pool.tick();
    const before = looks.mock.calls.length;
    return { pool, looks: () => looks.mock.calls.length - before };
  }

  it('is made at every look of the clock if it costs nothing', async () => {
    const { pool, looks } = await waiting(0);
    for (let i = 0; i < 5; i++) await pool.tick(5);
    expect(looks()).toBe(5);
  });

  it('waits in proportion to what the last one took, a minute at most', async () => {
    const { pool, looks } = await waiting(20);
    for (let i = 0; i < 5; i++) await pool.tick(1);
    expect(looks()).toBe(0);
    await pool.tick(60);
    expect(looks()).toBe(1);
  });

  it('does not wait for a new job, nor for an allocation that was extended', async () => {
    const { pool, looks } = await waiting(20);
    pool.submit(2);
    await pool.starts(2);
    const before = looks();
    const ad = (TimeToLive: string) => pool.centralManager.hear('w', { t: 'ad', ad: { TimeToLive } }, Buffer.alloc(0));
    ad('8999');
    await pool.tick();
    expect(looks()).toBe(before);
    ad('20000');
    await pool.tick();
    expect(looks()).toBe(before + 1);
  });

  it('does not wait when a worker may be offered again what it refused', async () => {
    const { pool } = await waiting(2);
    pool.submit(2);
    await vi.waitFor(() => expect(pool.of('start')).toEqual(['a.2.0.1']));
    pool.centralManager.hear('w', { t: 'gone', key: 'a.2.0.1', why: 'claim', message: 'no' }, Buffer.alloc(0));
    await pool.tick();
    expect(pool.of('start')).toHaveLength(1);
    await pool.tick(5);
    expect(pool.of('start')).toHaveLength(2);
  });
});
