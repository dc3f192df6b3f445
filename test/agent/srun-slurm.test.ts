import { chmodSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { skipWithoutSlurm } from '../sites/slurm.ts';
import type { TestAgent } from './agent.ts';
import { type LoginAndCluster, startLoginAndCluster } from './login-and-cluster.ts';
import { call } from './said.ts';

describe.skipIf(skipWithoutSlurm())('srun outside a job, at sites behind ssh', { timeout: 180_000 }, () => {
  let ground: LoginAndCluster;
  let agent: TestAgent;
  let bin: string;
  beforeAll(async () => {
    ground = await startLoginAndCluster(2, 4);
    ({ agent, bin } = ground);
  }, 120_000);
  afterAll(() => ground?.stop());

  const srun = (words: readonly string[], stdin = '') => call(agent, {}, join(bin, 'srun'), words, stdin);
  const lines = (text: string) => text.trimEnd().split('\n').sort();

  it('is a step of Slurm on several nodes', async () => {
    const command = ['sh', '-c', 'echo "$SLURM_NODEID $SLURM_CPUS_PER_TASK"; exit $((SLURM_PROCID * 2))'];
    const ran = await srun(['-M', 'cluster', '-N', '2', '-n', '4', '-c', '2', '-l', '-p', 'main', ...command]);
    expect(ran.code).toBe(6);
    expect(lines(ran.stdout)).toEqual(['0: 0 2', '1: 0 2', '2: 1 2', '3: 1 2']);
    expect(ran.stderr).toMatch(/^srun: error: n2: task 3: Exited with exit code 6$/m);
  });

  it.each(['cluster', 'login'])('at %s: sends its program, and gives each task standard input', async (site) => {
    chmodSync(agent.file('prog.sh', '#!/bin/sh\ncat\necho "task $SLURM_PROCID of $SLURM_NTASKS: $1"\n'), 0o755);
    const ran = await srun(['-M', site, '-n', '2', './prog.sh', 'an argument'], 'typed\n');
    expect(ran).toMatchObject({ code: 0, stderr: '' });
    const task = (rank: number) => `task ${rank} of 2: an argument`;
    expect(lines(ran.stdout)).toEqual([task(0), task(1), 'typed', 'typed']);
  });

  it('says what only Slurm has', async () => {
    const ran = await srun(['-M', 'login', '-n', '2', '--mpi=pmi2', 'true']);
    expect(ran).toMatchObject({ code: 1, stderr: 'srun: error: --mpi=pmi2: this job does not run in Slurm\n' });
  });
});
