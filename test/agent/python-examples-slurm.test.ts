import { spawnSync } from 'node:child_process';
import { mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Slurm, skipWithoutSlurm, startSlurm } from '../sites/slurm.ts';
import { SLOW } from '../slow.ts';
import { CLI, TestAgent } from './agent.ts';

const PYTHON = '/usr/bin/python3';
const ROOT = join(import.meta.dirname, '../..');

/** Whether this machine's Python lacks what the examples import: Debian's python3-joblib and python3-distributed. */
function withoutModules(): boolean {
  if (spawnSync(PYTHON, ['-c', 'import joblib, distributed']).status === 0) return false;
  if (process.env['CI'] === 'true') throw new Error('python3-joblib and python3-distributed are not installed');
  process.stderr.write(
    'The examples for joblib and Dask are left out: python3-joblib, python3-distributed are missing.\n',
  );
  return true;
}

describe.skipIf(!SLOW || skipWithoutSlurm() || withoutModules())("the examples of Python's module", () => {
  let agent: TestAgent;
  let slurm: Slurm;
  beforeAll(async () => {
    slurm = await startSlurm({ nodes: 1, cpus: 4 });
    agent = new TestAgent();
    agent.slurmSite('cluster1', slurm);
    const bin = join(agent.dir, 'bin');
    mkdirSync(bin);
    symlinkSync(CLI, join(bin, 'gryphus'));
    agent.env['PATH'] = `${bin}:${process.env['PATH'] ?? ''}`;
    agent.env['PYTHONPATH'] = join(ROOT, 'python');
    agent.env['PYTHONDONTWRITEBYTECODE'] = '1';
  }, 120_000);
  afterAll(async () => {
    await agent.end();
    await slurm.stop();
  });

  function example(...words: string[]): string {
    const [file = '', ...args] = words;
    const { status, stdout, stderr } = spawnSync(PYTHON, [join(ROOT, 'examples/python', file), ...args], {
      cwd: agent.work,
      env: agent.env,
      encoding: 'utf8',
      timeout: 200_000,
    });
    expect(status, `${stdout}${stderr}`).toBe(0);
    return stdout;
  }

  it('joblib runs its calls in the pool', () => {
    expect(example('joblib_pool.py')).toBe('19900.0\n');
  }, 240_000);

  it("Dask's workers are jobs of a site", async () => {
    expect(example('dask_site.py', 'cluster1', '2')).toBe('328350\n328350\nexit statuses: [0, 0]\n');
    const ran = JSON.parse(await agent.ok('history', '--json')) as { readonly GridResource?: string }[];
    expect(ran.filter((job) => job.GridResource === 'batch slurm cluster1')).toHaveLength(2);
  }, 240_000);
});
