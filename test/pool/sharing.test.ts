import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { SETTINGS, type Settings } from '../../src/config/settings.ts';
import { presets } from '../../src/config/table.ts';
import { accountOf, quotas } from '../../src/pool/central-manager/accounting.ts';
import { LimitsInUse, maximumOf, parseLimits } from '../../src/pool/central-manager/concurrency-limits.ts';
import { sharingRules } from '../../src/pool/central-manager/sharing-rules.ts';
import { whyWaits } from '../../src/pool/central-manager/why.ts';
import { OneCorePool } from './one-core-pool.ts';

const rules = (settings: Partial<Settings>) => sharingRules({ ...presets(SETTINGS), ...settings });
const DB = { ConcurrencyLimits: '"db"' };

describe('concurrency limits', () => {
  it('are read as HTCondor reads them', () => {
    expect(parseLimits('DB, lic:2 large.sw:0.5,db')).toEqual([
      { name: 'db', weight: 2 },
      { name: 'lic', weight: 2 },
      { name: 'large.sw', weight: 0.5 },
    ]);
    expect(parseLimits('a:0,b:-1,c:x')).toEqual(['a', 'b', 'c'].map((name) => ({ name, weight: 1 })));
    const { limits } = rules({
      'pool.concurrency_limits': { DB: 2, 'large.sw': 3 },
      'pool.concurrency_limit_defaults': { large: 9 },
      'pool.concurrency_limit_default': 5,
    });
    expect(['db', 'large.sw', 'large.x', 'x'].map((name) => maximumOf(name, limits))).toEqual([2, 3, 9, 5]);
    expect(maximumOf('x', rules({}).limits)).toBe(Number.POSITIVE_INFINITY);
  });

  it('are never exceeded, and all is given back', () => {
    const { limits } = rules({ 'pool.concurrency_limits': { a: 3, b: 2.5 } });
    const step = fc.record({
      key: fc.nat(9),
      text: fc.constantFrom('a', 'b', 'a:2,b', 'b:0.5', ''),
      end: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const inUse = new LimitsInUse();
        for (const { key, text, end } of steps) {
          const wanted = parseLimits(text);
          if (end) inUse.give(`k.${key}.0.1`);
          else if (!inUse.usedUp(wanted, limits, new Map())) inUse.take(`k.${key}.0.1`, wanted);
          expect(inUse.used('a')).toBeLessThanOrEqual(3);
          expect(inUse.used('b')).toBeLessThanOrEqual(2.5);
        }
        for (let key = 0; key < 10; key++) inUse.give(`k.${key}.0.1`);
        expect([inUse.used('a'), inUse.used('b')]).toEqual([0, 0]);
      }),
    );
  });

  it('let no more jobs run at once, and why names them', async () => {
    const pool = new OneCorePool({}, rules({ 'pool.concurrency_limits': { db: 2 } }), 4);
    for (const i of [1, 2, 3]) pool.submit(i, DB);
    pool.submit(4);
    await pool.starts(4);
    await pool.starts(1);
    await pool.starts(2);
    await pool.tick();
    expect(pool.of('start')).not.toContain('a.3.0.1');
    expect(whyWaits(pool.centralManager, 'a.3.0').lines[0]).toBe('It waits: concurrency limit db is used up (2 of 2).');
    pool.ends(1);
    await pool.starts(3);
    pool.centralManager.rules = rules({ 'pool.concurrency_limits': { db: 1 } });
    pool.submit(5, DB);
    pool.ends(2);
    await pool.tick();
    expect(pool.of('start')).not.toContain('a.5.0.1');
    pool.ends(3);
    await pool.starts(5);
  });
});

describe('accounting groups', () => {
  const two = { 'pool.group_names': ['physics', 'physics.atlas', 'bio'], 'pool.accounting_users': ['carol'] };

  it('are those of the pool; nobody becomes somebody else', () => {
    const { groups } = rules(two);
    const account = (group: string | undefined, user?: string) =>
      accountOf(
        {
          ...(group === undefined ? {} : { AcctGroup: `"${group}"`, AccountingGroup: '"boss"' }),
          ...(user === undefined ? {} : { AcctGroupUser: `"${user}"` }),
        },
        'me',
        groups,
      );
    expect(account(undefined)).toBe('me');
    expect(account('Physics')).toBe('physics.me');
    expect(account('physics.atlas')).toBe('physics.atlas.me');
    expect(account('chemistry')).toBe('me');
    expect(account('bio', 'you')).toBe('bio.me');
    expect(account('bio', 'carol')).toBe('bio.carol');
    expect(account(undefined, 'you')).toBe('me');
    expect(account('nice-user')).toBe('nice-user.me');
  });

  it('have quotas in cores, or as parts of what encloses them', () => {
    const { groups } = rules({
      ...two,
      'pool.group_quota': { physics: 20 },
      'pool.group_quota_dynamic': { 'physics.atlas': 0.5, bio: 0.25 },
    });
    expect(Object.fromEntries(quotas(groups, 100))).toEqual({ physics: 20, 'physics.atlas': 10, bio: 25 });
  });

  it('use no more than their quotas, unless they accept what nobody else wants', async () => {
    for (const surplus of [false, ['bio']]) {
      const pool = new OneCorePool(
        {},
        rules({
          'pool.group_names': ['bio', 'physics'],
          'pool.group_quota': { bio: 1, physics: 2 },
          'pool.group_accept_surplus': surplus,
        }),
        4,
      );
      for (const i of [1, 2, 3, 4]) pool.submit(i, { AcctGroup: '"bio"' });
      pool.submit(5, { AcctGroup: '"physics"' });
      await pool.starts(1);
      await pool.starts(5);
      await pool.tick();
      expect(pool.of('start')).toHaveLength(surplus === false ? 2 : 4);
      if (surplus !== false) continue;
      expect(whyWaits(pool.centralManager, 'a.2.0').lines[0]).toBe(
        'It waits: accounting group bio uses its quota (1 of 1 cores).',
      );
      // Under a claim as well, and after a restart of the quota.
      pool.ends(1);
      await pool.starts(2);
      await pool.tick();
      expect(pool.of('start')).toHaveLength(3);
    }
  });

  it('within their quotas come before those who only take what is left', async () => {
    const pool = new OneCorePool(
      {},
      rules({ 'pool.group_names': ['bio'], 'pool.group_quota': { bio: 1 }, 'pool.group_accept_surplus': true }),
    );
    pool.submit(1, {});
    await pool.starts(1);
    pool.submit(2, {}, { owner: 'unused' });
    pool.submit(3, { AcctGroup: '"bio"' });
    await pool.tick(600);
    pool.ends(1);
    await pool.starts(3);
  });
});

it('NEGOTIATOR_PRE_JOB_RANK comes before the Rank of the job, NEGOTIATOR_POST_JOB_RANK after it', async () => {
  for (const [settings, rank, expected] of [
    [{}, 'TARGET.Cost', 'dear'],
    [{ 'pool.negotiator_pre_job_rank': '-MY.Cost' }, 'TARGET.Cost', 'cheap'],
    [{ 'pool.negotiator_post_job_rank': '-MY.Cost' }, 'TARGET.Cost', 'dear'],
    [{ 'pool.negotiator_post_job_rank': 'MY.Cost' }, '0', 'dear'],
    [{ 'pool.negotiator_post_job_rank': '-MY.Cost' }, '0', 'cheap'],
  ] as const) {
    const pool = new OneCorePool({ Requirements: 'false' }, rules(settings));
    const { collector } = pool.centralManager;
    for (const [name, cost] of [
      ['cheap', '1'],
      ['dear', '9'],
    ] as const) {
      const size = { cpus: 1, memoryMb: 1000, diskKb: 1e6, gpus: 0 };
      const about = { instance: name, token: name, site: 's', boot: 'b', size };
      pool.centralManager.join(collector.make(about, { Requirements: 'true', Cost: cost }, name, name), []);
    }
    pool.submit(1, { Rank: rank });
    await pool.tick();
    expect(pool.centralManager.get('a.1.0.1')?.worker).toBe(expected);
  }
});
