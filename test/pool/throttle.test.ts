import { describe, expect, it } from 'vitest';
import { SETTINGS, type Settings } from '../../src/config/settings.ts';
import { presets } from '../../src/config/table.ts';
import { sharingRules } from '../../src/pool/central-manager/sharing-rules.ts';
import { deferred } from '../../src/util/deferred.ts';
import { Turns } from '../../src/util/turns.ts';
import { JUST_TRUE } from './just-true.ts';
import { OneCorePool } from './one-core-pool.ts';

const rules = (settings: Partial<Settings>) => sharingRules({ ...presets(SETTINGS), ...settings });
const INPUT = { kind: 'directory', name: 'in' } as const;

describe('the start of jobs', () => {
  it('is limited by JOB_START_COUNT in each JOB_START_DELAY', async () => {
    const pool = new OneCorePool({}, rules({ 'pool.job_start_count': 2, 'pool.job_start_delay': 10 }), 8);
    for (let i = 1; i <= 5; i++) pool.submit(i);
    await pool.tick();
    expect(pool.of('start')).toHaveLength(2);
    await pool.tick(9);
    expect(pool.of('start')).toHaveLength(2);
    await pool.tick(1);
    expect(pool.of('start')).toHaveLength(4);
    pool.centralManager.rules = rules({});
    await pool.tick();
    expect(pool.of('start')).toHaveLength(5);
  });

  it('goes on by itself when the delay is over', async () => {
    const pool = new OneCorePool({}, rules({ 'pool.job_start_delay': 0.05 }), 8);
    for (let i = 1; i <= 3; i++) pool.submit(i);
    await pool.tick();
    expect(pool.of('start')).toHaveLength(1);
    pool.now += 50;
    await pool.starts(2);
    pool.now += 50;
    await pool.starts(3);
  });

  it('waits for the inputs of others, up to MAX_CONCURRENT_UPLOADS', async () => {
    const pool = new OneCorePool({}, rules({ 'pool.max_concurrent_uploads': 2 }), 8);
    const spec = { ...JUST_TRUE, inputs: [INPUT] };
    for (let i = 1; i <= 4; i++) pool.submit(i, {}, { spec });
    await pool.tick(60);
    expect(pool.of('start')).toEqual(['a.1.0.1', 'a.2.0.1']);
    // A job without inputs does not wait.
    pool.submit(5, { Rank: '1' });
    await pool.starts(5);
    await pool.starts(1);
    await pool.starts(3);
    pool.ends(2, { kind: 'by-site', cause: 'cannot-start', message: '' });
    await pool.starts(4);
  });
});

it('only so many take their turn at once, in the order in which they came', async () => {
  const turns = new Turns(() => 2);
  const done: number[] = [];
  const works = [0, 1, 2, 3].map(() => deferred<void>());
  const all = works.map((work, i) =>
    turns.run(async () => {
      done.push(i);
      await work.promise;
    }),
  );
  await Promise.resolve();
  expect(done).toEqual([0, 1]);
  works[1]?.resolve();
  await all[1];
  await Promise.resolve();
  expect(done).toEqual([0, 1, 2]);
  for (const work of works) work.resolve();
  await Promise.all(all);
  expect(done).toEqual([0, 1, 2, 3]);
});
