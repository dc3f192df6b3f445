import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { AttemptKey } from '../../src/job/ids.ts';
import type { AttemptSpec } from '../../src/site/contract.ts';
import { LocalTransport } from '../../src/transport/local.ts';
import { type Slurm, skipWithoutSlurm, startSlurm } from '../sites/slurm.ts';
import { skipWithoutSlurmdbd } from '../sites/slurmdbd.ts';
import { SLOW } from '../slow.ts';
import { ground } from './grounds.ts';
import { freshKey, freshKeys, type Ground, ledgerJob, remove, run, scratchDir, starts, Watch } from './kit.ts';

/** Here, Slurm forgets an ended job after a few seconds: only its accounting still knows it. */
describe.skipIf(skipWithoutSlurm() || skipWithoutSlurmdbd())('what left the queue is asked of sacct', () => {
  let slurm: Slurm;
  let place: Ground;
  const home = scratchDir();

  beforeAll(async () => {
    const config = [
      'PreemptType=preempt/partition_prio',
      'PreemptMode=CANCEL',
      // A job on a failing node ends: sacct is asked who ended it.
      'JobRequeue=0',
      'PartitionName=high Nodes=ALL PriorityTier=10 State=UP',
    ];
    slurm = await startSlurm({ nodes: 2, cpus: 4, minJobAge: 2, accounting: true, config });
    const way = { transport: async () => new LocalTransport(home), stop: () => slurm.stop() };
    const prelude = `export SLURM_CONF='${slurm.env['SLURM_CONF'] ?? ''}'`;
    place = await ground('slurm', 'slurm', home, way, 30_000, { scratch: join(home, '.gryphus'), prelude });
  }, 180_000);
  afterAll(async () => {
    await place?.close();
    remove(home);
  }, 60_000);

  /** Runs unwatched until the queue has forgotten all that `end` ended. */
  async function unwatched(
    jobs: readonly AttemptSpec[],
    end: (id: (key: AttemptKey) => string) => void,
  ): Promise<Watch> {
    const site = await place.open();
    await run(site, jobs);
    const watch = new Watch(site);
    for (const { key } of jobs) await watch.until(key, (r) => r.is === 'running' && starts(place, key) === 1, 60_000);
    const ids = new Map([...watch.reports].map(([key, r]) => [key, 'batchId' in r ? (r.batchId ?? '') : '']));
    await place.closeSites();
    end((key) => ids.get(key) ?? '');
    await expect.poll(() => slurm.run('squeue', '-h', '-t', 'all', '-r'), { timeout: 120_000, interval: 500 }).toBe('');
    return new Watch(await place.open());
  }
  const job = (key: AttemptKey, node: string): AttemptSpec =>
    ledgerJob(place, key, 'sleep 600', { batch: { extraArgs: [`--nodelist=${node}`] } });

  it('who ended a job, between two polls', async () => {
    const [cancelled, preempted, failed] = [freshKey(), freshKey(), freshKey()];
    const watch = await unwatched([job(cancelled, 'n2'), job(preempted, 'n1'), job(failed, 'n2')], (id) => {
      slurm.run('scancel', id(cancelled));
      const first = ['--partition=high', '--nodelist=n1', '--exclusive', '--output=/dev/null', '--wrap', 'true'];
      slurm.run('sbatch', '--wait', ...first);
      slurm.scontrol('update', 'nodename=n2', 'state=down', 'reason=test');
    });
    expect((await watch.ended(cancelled, 90_000)).how).toMatchObject({ kind: 'by-site', cause: 'cancelled' });
    expect((await watch.ended(preempted, 90_000)).how).toMatchObject({ kind: 'by-site', cause: 'preempted' });
    expect((await watch.ended(failed, 90_000)).how).toMatchObject({ kind: 'by-site', cause: 'node-fail' });
    await watch.site.forget([cancelled, preempted, failed]);
  }, 300_000);

  // Slurm checks its limits every half minute.
  it.skipIf(!SLOW)(
    'that it was the time limit',
    async () => {
      const late = freshKey();
      const watch = await unwatched([job(late, 'n1')], (id) => {
        slurm.scontrol('update', `JobId=${id(late)}`, 'EndTime=now+1');
      });
      expect((await watch.ended(late, 90_000)).how).toMatchObject({ kind: 'by-site', cause: 'timeout' });
      await watch.site.forget([late]);
    },
    300_000,
  );

  it("an array's elements, each by itself", async () => {
    const keys = freshKeys(3);
    const watch = await unwatched(
      keys.map((key) => ledgerJob(place, key, 'sleep 600')),
      (id) => {
        expect(id(keys[0] ?? freshKey())).toMatch(/^\d+_1$/);
        for (const key of keys) slurm.run('scancel', id(key));
      },
    );
    for (const key of keys) {
      const { how } = await watch.ended(key, 90_000);
      expect(how).toMatchObject({
        kind: 'by-site',
        cause: 'cancelled',
        message: expect.stringContaining('CANCELLED by'),
      });
    }
    await watch.site.forget(keys);
  }, 300_000);
});
