import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { AttemptKey } from '../../src/job/ids.ts';
import { type Condor, skipWithoutCondor } from '../sites/condor.ts';
import { SLOW } from '../slow.ts';
import { type BatchGround, sshHtcondor } from './batch-grounds.ts';
import { freshKey, freshKeys, ledgerJob, run, shellJob, starts, texts, Watch } from './kit.ts';
import { nodesTests } from './nodes.ts';

/** Four slots of two cores, which belong to the dedicated scheduler of the only schedd. */
const DEDICATED = [
  'SCHEDD_NAME = pool@localdomain',
  'DedicatedScheduler = "DedicatedScheduler@pool@localdomain"',
  'STARTD_ATTRS = $(STARTD_ATTRS), DedicatedScheduler',
  'SLOT_TYPE_1 = 25%',
  'SLOT_TYPE_1_PARTITIONABLE = False',
  'NUM_SLOTS_TYPE_1 = 4',
];
const PAGE = readFileSync(join(import.meta.dirname, '../../docs/parallel.md'), 'utf8');
const RING = /^\*\*ring\.c\*\*[^\n]*:\n\n```\w*\n([\s\S]*?)^```$/m.exec(PAGE)?.[1] ?? '';
const resources = {
  cpus: 1,
  memoryMb: undefined,
  diskKb: undefined,
  gpus: undefined,
  walltimeSeconds: undefined,
  nodes: { count: 3, ranks: 1 },
};

describe.skipIf(skipWithoutCondor())("HTCondor's parallel universe, on one machine", () => {
  let ground: BatchGround<Condor>;
  beforeAll(async () => {
    ground = await sshHtcondor({ slots: 8, config: DEDICATED });
  }, 90_000);
  afterAll(async () => await ground?.close());

  nodesTests({
    listing: 'cat "$GRYPHUS_NODEFILE"',
    lines: Array.from({ length: 4 }, () => hostname()),
    tooMany: /waits for 1000 machines at once/,
    ground: () => ground,
  });

  const queue = (): string => ground.batch.run('condor_q', '-af', 'GryphusKey', 'JobStatus');
  /** Processes of all nodes, by the directory of the attempt on their command lines. */
  const nodesAlive = (): string =>
    ground.batch.daemons('starter').length === 0 ? '' : `${ground.batch.daemons('starter').length} starters`;
  async function started(key: AttemptKey, watch: Watch): Promise<string> {
    const report = await watch.until(
      key,
      (r) => r.is === 'running' && starts(ground, key) === 1 && 'batchId' in r && r.batchId !== undefined,
      60_000,
    );
    return ('batchId' in report && report.batchId) || '';
  }

  it.skipIf(!existsSync('/usr/bin/mpicc.mpich'))(
    'has the launcher find its machines in a file',
    async () => {
      const site = await ground.open();
      const key = freshKey();
      const ring = join(ground.scratch, 'ring');
      writeFileSync(`${ring}.c`, RING);
      execFileSync('mpicc.mpich', ['-o', ring, `${ring}.c`]);
      const program = `mpiexec.mpich -f "$GRYPHUS_NODEFILE" -n 3 '${ring}'`;
      await run(site, [shellJob(key, program, { resources })]);
      const watch = new Watch(site);
      const ended = await watch.ended(key, 90_000);
      const into = `${ground.scratch}/home/${key}`;
      const came = texts((await site.fetch([{ key, outputs: [], stdout: true, stderr: true, into }])).get(key));
      expect([ended.how, came]).toMatchObject([{ kind: 'exited', code: 0 }, { stdout: '3 ranks, sum 3\n' }]);
      await site.forget([key]);
    },
    90_000,
  );

  it('runs several jobs of a cluster apart from each other', async () => {
    const site = await ground.open();
    const watch = new Watch(site);
    const keys = freshKeys(2);
    await run(
      site,
      keys.map((key, n) =>
        shellJob(key, `exit ${n + 3}`, { resources: { ...resources, nodes: { count: 2, ranks: 1 } } }),
      ),
    );
    for (const [n, key] of keys.entries())
      expect((await watch.ended(key, 90_000)).how).toMatchObject({ kind: 'exited', code: n + 3 });
    await site.forget(keys);
  }, 120_000);

  it('ends on all machines when it is removed, or at its time limit', async () => {
    const site = await ground.open();
    const watch = new Watch(site);
    const [removed, late] = [freshKey(), freshKey()];
    await run(site, [ledgerJob(ground, removed, 'sleep 600', { resources })]);
    await started(removed, watch);
    expect(nodesAlive()).toBe('3 starters');
    expect([...(await site.cancel([removed]))]).toEqual([[removed, { ok: true }]]);
    await expect.poll(() => nodesAlive() + queue(), { timeout: 60_000 }).toBe('');
    await run(site, [ledgerJob(ground, late, 'sleep 600', { resources: { ...resources, walltimeSeconds: 3 } })]);
    expect((await watch.ended(late, 90_000)).how).toMatchObject({ kind: 'by-site', cause: 'timeout' });
    await expect.poll(() => nodesAlive() + queue(), { timeout: 60_000 }).toBe('');
    expect([removed, late].map((key) => starts(ground, key))).toEqual([1, 1]);
    await site.forget([late]);
  }, 300_000);

  // Not condor_vacate_job -fast: with a parallel job, the shadow of 23.9 then hangs, and only -forcex removes the job.
  it.skipIf(!SLOW).each([
    ['is held', (id: string) => void ground.batch.admin('condor_hold', id)],
    ['loses its shadow', () => ground.batch.daemons('shadow').forEach((pid) => process.kill(pid, 'SIGKILL'))],
    [
      'loses a machine',
      () =>
        ground.batch
          .daemons('starter')
          .slice(-1)
          .forEach((pid) => process.kill(pid, 'SIGKILL')),
    ],
  ])(
    '%s: it has ended, and is not started again',
    async (_, does) => {
      const site = await ground.open();
      const watch = new Watch(site);
      const key = freshKey();
      await run(site, [ledgerJob(ground, key, 'sleep 600', { resources })]);
      does(await started(key, watch));
      expect((await watch.ended(key, 90_000)).how).toMatchObject({ kind: 'by-site' });
      await expect.poll(queue, { timeout: 60_000 }).toBe('');
      expect(starts(ground, key)).toBe(1);
      await site.forget([key]);
    },
    180_000,
  );

  it('is refused where no machine belongs to a dedicated scheduler', async () => {
    ground.batch.configure('DedicatedScheduler = undefined');
    const machines = () => new Set(ground.batch.run('condor_status', '-af', 'DedicatedScheduler').trim().split('\n'));
    await expect.poll(machines, { timeout: 30_000 }).toEqual(new Set(['undefined']));
    const site = await ground.open();
    const key = freshKey();
    await site.prepare([shellJob(key, 'exit 0', { resources })]);
    expect((await site.commit([key])).get(key)).toMatchObject({
      ok: false,
      refusal: { kind: 'never', message: expect.stringContaining('No machine of this pool has a DedicatedScheduler') },
    });
    await site.forget([key]);
    ground.batch.configure();
  }, 90_000);
});
