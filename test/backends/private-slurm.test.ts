import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { slurm as slurmBackend } from '../../src/backends/slurm.ts';
import { look, shellHalf } from './recorded.ts';
import { type Slurm, skipWithoutSlurm, startSlurm } from '../sites/slurm.ts';

describe.skipIf(skipWithoutSlurm())('the private Slurm', () => {
  let slurm: Slurm;
  beforeAll(async () => {
    slurm = await startSlurm({ nodes: 1 });
  });
  afterAll(async () => await slurm.stop());

  it('runs a job to its end', () => {
    expect(slurm.run('sbatch', '--parsable', '--wait', '-o', '/dev/null', '--wrap', 'exit 0')).toMatch(/^\d+\n$/);
  });

  it('is found, says its cores, its queues and its accounting', () => {
    expect(look(slurm.env)?.[0]).toMatchObject({
      batch: 'slurm',
      answers: true,
      message: expect.stringMatching(/^slurm\S* \d/),
    });
    const half = (call: string) => shellHalf('slurm', {}, call, slurm.env);
    const cores = slurmBackend.capacityOf?.(half('backend_capacity')[0] ?? '');
    expect(cores?.cpus).toBeGreaterThan(0);
    expect(half('backend_has nosuch')).toEqual(['']);
    const [partition = ''] = slurm.run('sinfo', '-h', '-o', '%R').split('\n');
    expect(half(`backend_has ${partition}`)[0]).toContain('is up');
  });

  it('answers again after its controller was killed', async () => {
    slurm.killCtld();
    await slurm.restartCtld();
    expect(slurm.scontrol('ping')).toContain('is UP');
  });
});
