import { chmodSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseGramContact } from '../../src/config/gram-resource.ts';
import { freshKey, shellJob, texts, Watch } from '../conformance/kit.ts';
import { adapterFiles } from '../sites/event-generator.ts';
import { GRAM_PROGRAMS, mayMount, missingPrograms } from '../sites/gatekeeper.ts';
import { skipWithoutSlurm, type Slurm, startSlurm } from '../sites/slurm.ts';
import { type Grid, startGrid } from './kit.ts';

const ADAPTER = '/usr/share/perl5/Globus/GRAM/JobManager/slurm.pm';
const SKIP = missingPrograms([...GRAM_PROGRAMS, ADAPTER]).length > 0 || skipWithoutSlurm() || !mayMount();
let slurm: Slurm;
let grid: Grid;

beforeAll(async () => {
  if (SKIP) return;
  slurm = await startSlurm({ nodes: 1, cpus: 4 });
  grid = await startGrid({
    services: { 'jobmanager-slurm': '-type slurm' },
    mounts: { '/etc/globus': adapterConfig(slurm) },
  });
}, 120_000);
afterAll(async () => {
  await grid?.stop();
  await slurm?.stop();
}, 60_000);

/**
 * Job managers empty their scripts' environment: the adapter's configuration names programs that set Slurm's location.
 */
function adapterConfig({ dir, env }: Slurm): string {
  const etc = join(dir, 'globus');
  mkdirSync(etc);
  const programs = ['sbatch', 'scontrol', 'scancel', 'srun', 'salloc'];
  const conf = programs.map((name) => `${name}="${etc}/${name}"\n`).join('');
  const wrappers = programs.map((name) => [name, `#!/bin/sh\nSLURM_CONF='${env['SLURM_CONF']}' exec ${name} "$@"\n`]);
  adapterFiles(etc, { ...Object.fromEntries(wrappers), 'globus-slurm.conf': conf });
  for (const name of programs) chmodSync(join(etc, name), 0o755);
  return etc;
}

/** What Slurm reports about the limits of a job. */
const OF_SLURM =
  '$SLURM_JOB_PARTITION: nodes $SLURM_JOB_NUM_NODES, cores $SLURM_CPUS_ON_NODE, memory $SLURM_MEM_PER_NODE';

describe.skipIf(SKIP)('Slurm behind GRAM', () => {
  it('runs a job with its exit code, and says what Slurm refuses and ends', async () => {
    const target = parseGramContact(`${grid.gate.address}/jobmanager-slurm`);
    const site = await grid.open({ target, askEveryMs: 3000, resultsMs: 5000 });
    const [runs, refused, dies] = [freshKey(), freshKey(), freshKey()];
    const resources = { cpus: 2, memoryMb: 10, diskKb: undefined, gpus: undefined, walltimeSeconds: 120 };
    const jobs = [
      shellJob(runs, `echo "in Slurm job $SLURM_JOB_ID, ${OF_SLURM}"; cat; exit 3`, {
        resources,
        batch: { extraArgs: [], queue: 'main', project: 'physics' },
      }),
      shellJob(refused, 'sleep 600', { resources, batch: { extraArgs: [], queue: 'no-such-partition' } }),
      shellJob(dies, 'sleep 600', { resources }),
    ];
    expect([...(await site.prepare(jobs)).values()]).toEqual(jobs.map(() => ({ ok: true })));
    await site.commit([runs, refused, dies]);
    const watch = new Watch(site);
    await watch.until(dies, ({ is }) => is === 'running', 90_000);
    expect(await watch.ended(runs, 90_000)).toMatchObject({ how: { kind: 'exited', code: 3 } });
    const into = join(grid.dir, 'home', runs);
    const came = texts((await site.fetch([{ key: runs, outputs: 'new', stdout: true, stderr: true, into }])).get(runs));
    expect(came['stdout']).toMatch(/^in Slurm job \d+, main: nodes 1, cores 2, memory 10\n$/);
    // sbatch reports a partition that does not exist.
    const said = await watch.ended(refused, 90_000);
    expect(said).toMatchObject({ how: { kind: 'by-site', cause: 'cannot-start' } });
    expect(said.how.kind === 'by-site' ? said.how.message : '').toContain('invalid partition');
    slurm.run('scancel', '--name=scheduler_slurm_job_script');
    const ended = await watch.ended(dies, 90_000);
    expect(ended).toMatchObject({ how: { kind: 'by-site', cause: 'vanished' } });
    expect([...(await site.forget([runs, refused, dies])).values()]).toEqual(jobs.map(() => ({ ok: true })));
  }, 240_000);
});
