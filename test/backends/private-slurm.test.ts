import { afterAll, beforeAll, describe, expect, it } from 'vitest';
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

  it('answers again after its controller was killed', async () => {
    slurm.killCtld();
    await slurm.restartCtld();
    expect(slurm.scontrol('ping')).toContain('is UP');
  });
});
