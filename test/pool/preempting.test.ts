import { describe, expect, it } from 'vitest';
import { SETTINGS } from '../../src/config/settings.ts';
import { presets } from '../../src/config/table.ts';
import { PRIORITY_RULES } from '../../src/pool/central-manager/priorities.ts';
import { SHARING_RULES, sharingRules, type SharingRules } from '../../src/pool/central-manager/sharing-rules.ts';
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

const UPDOWN: SharingRules = {
  ...SHARING_RULES,
  priorities: { ...PRIORITY_RULES, priority: 'updown' },
  preemption: { requirements: true, rank: undefined },
};
const preempted = { kind: 'by-site', cause: 'preempted', message: '' } as const;

function requirements(text: string): SharingRules {
  const settings = { ...presets(SETTINGS), 'pool.priority': 'updown', 'pool.preemption_requirements': text } as const;
  return sharingRules(settings);
}

describe('an owner of better priority', () => {
  it('takes one of two cores from who holds both, the one whose job started last, and keeps it for its job', async () => {
    const pool = new OneCorePool({}, UPDOWN, 2);
    pool.submit(1, {}, { owner: 'heavy' });
    await pool.starts(1);
    await pool.tick(1);
    for (const i of [2, 3, 4]) pool.submit(i, {}, { owner: 'heavy' });
    await pool.starts(2);
    await pool.tick(1);
    pool.submit(5, {}, { owner: 'light' });
    await pool.tick(1);
    expect(pool.of('cancel')).toEqual(['a.2.0.1']);
    await pool.tick(600);
    expect(pool.of('cancel')).toEqual(['a.2.0.1']);
    pool.ends(2, preempted);
    await pool.starts(5);
    // The heavy owner has the worse priority: it takes nothing back.
    await pool.tick(1);
    expect(pool.of('cancel')).toEqual(['a.2.0.1']);
    pool.ends(5);
    await pool.starts(3);
  });

  it('tries again some seconds after the machine refused its job, and gave its place to another', async () => {
    const pool = new OneCorePool({}, UPDOWN);
    pool.submit(1, {}, { owner: 'heavy' });
    await pool.starts(1);
    pool.submit(2, {}, { owner: 'heavy' });
    await pool.tick(3600);
    pool.submit(3, {}, { owner: 'light' });
    await pool.tick(1);
    pool.ends(1, preempted);
    await until('the start', () => pool.of('start').includes('a.3.0.1') || undefined);
    const gone = { t: 'gone', key: 'a.3.0.1', why: 'claim', message: 'it requests 1 core (0 free)' } as const;
    pool.centralManager.hear('w', gone, Buffer.alloc(0));
    await pool.starts(2);
    await pool.tick(4);
    expect(pool.of('cancel')).toEqual(['a.1.0.1']);
    await pool.tick(2);
    expect(pool.of('cancel')).toEqual(['a.1.0.1', 'a.2.0.1']);
  });

  it('does so by default only with Up-Down', async () => {
    const pool = new OneCorePool({}, sharingRules(presets(SETTINGS)), 2);
    for (const i of [1, 2]) pool.submit(i, {}, { owner: 'heavy' });
    await pool.starts(2);
    pool.submit(3, {}, { owner: 'light' });
    await pool.tick(100_000);
    expect(pool.of('cancel')).toEqual([]);
    pool.centralManager.rules = sharingRules({ ...presets(SETTINGS), 'pool.preemption_requirements': 'true' });
    await pool.tick();
    expect(pool.of('cancel')).toHaveLength(1);
  });

  it('waits for the time that was promised to the job, and for PREEMPTION_REQUIREMENTS', async () => {
    const pool = new OneCorePool(
      { MaxJobRetirementTime: '600' },
      requirements(
        'CurrentTime - MY.EnteredCurrentActivity > 900 && RemoteUserPrio > TARGET.SubmitterUserPrio && TARGET.Urgent =?= true',
      ),
      2,
    );
    for (const i of [1, 2]) pool.submit(i, {}, { owner: 'heavy' });
    await pool.starts(1);
    await pool.starts(2);
    pool.submit(3, {}, { owner: 'light' });
    pool.submit(4, { Urgent: 'true' }, { owner: 'light' });
    await pool.tick(599);
    expect(pool.of('cancel')).toEqual([]);
    await pool.tick(300);
    expect(pool.of('cancel')).toEqual([]);
    await pool.tick(2);
    expect(pool.of('cancel')).toHaveLength(1);
    const which = pool.of('cancel')[0] === 'a.1.0.1' ? 1 : 2;
    pool.ends(which, preempted);
    await pool.starts(4);
    expect(pool.of('start')).not.toContain('a.3.0.1');
  });

  it('takes the job of the highest PREEMPTION_RANK', async () => {
    const rank = sharingRules({
      ...presets(SETTINGS),
      'pool.priority': 'updown',
      'pool.preemption_rank': '-MY.EnteredCurrentActivity',
    });
    const pool = new OneCorePool({}, rank, 2);
    pool.submit(1, {}, { owner: 'heavy' });
    await pool.starts(1);
    await pool.tick(10);
    pool.submit(2, {}, { owner: 'heavy' });
    await pool.starts(2);
    await pool.tick(10);
    pool.submit(3, {}, { owner: 'light' });
    await pool.tick();
    expect(pool.of('cancel')).toEqual(['a.1.0.1']);
  });
});
