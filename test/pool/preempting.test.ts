import { describe, expect, it } from 'vitest';
import { until } from '../agent/agent.ts';
import { OneCorePool } from './one-core-pool.ts';

describe('a machine that prefers a job that waits', () => {
  it('vacates what it runs, and keeps the place for that job', async () => {
    const pool = new OneCorePool({ Rank: 'TARGET.Nice =?= true ? 0 : 10' });
    pool.submit(1, { Nice: 'true' });
    await pool.starts(1);
    // Both wait; the first is not ranked above the running job.
    pool.submit(2, { Nice: 'true' });
    pool.submit(3, {});
    await until('the eviction', () => pool.of('cancel').length > 0 || undefined);
    await pool.tick();
    expect(pool.of('cancel')).toEqual(['a.1.0.1']);
    pool.ends(1, { kind: 'by-site', cause: 'preempted', message: '' });
    await pool.starts(3);
    await pool.tick();
    expect([pool.of('start'), pool.of('cancel')]).toEqual([['a.1.0.1', 'a.3.0.1'], ['a.1.0.1']]);
  });

  it('leaves a job in peace for as long as it promised, or less where the job asks for less', async () => {
    for (const [asks, peace] of [
      [undefined, 600],
      ['100', 100],
      ['5000', 600],
    ] as const) {
      const pool = new OneCorePool({ Rank: 'TARGET.Liked ?: 0', MaxJobRetirementTime: '600' });
      pool.submit(1, asks === undefined ? {} : { MaxJobRetirementTime: asks });
      await pool.starts(1);
      pool.submit(2, { Liked: '5' });
      await pool.tick(peace - 1);
      expect(pool.of('cancel')).toEqual([]);
      await pool.tick(1);
      expect(pool.of('cancel')).toEqual(['a.1.0.1']);
    }
  });

  it('vacates nothing for a job that it does not take, or likes as much', async () => {
    const pool = new OneCorePool({ Rank: 'TARGET.Liked ?: 0' });
    pool.submit(1, { Liked: '5' });
    await pool.starts(1);
    pool.submit(2, { Liked: '5' });
    pool.submit(3, { Liked: '9', Requirements: 'false' });
    await pool.tick();
    expect(pool.of('cancel')).toEqual([]);
  });
});
