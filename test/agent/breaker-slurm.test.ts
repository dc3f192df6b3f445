import { chmodSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Slurm, skipWithoutSlurm, startSlurm } from '../sites/slurm.ts';
import { SLOW } from '../slow.ts';
import { TestAgent, until } from './agent.ts';

interface SiteLine {
  readonly name: string;
  readonly outOfUse?: string;
}

/** A real Slurm whose sbatch keeps failing without a message, until it is repaired. */
describe.skipIf(!SLOW || skipWithoutSlurm())('a site that breaks, and comes back', { timeout: 400_000 }, () => {
  let agent: TestAgent;
  let slurm: Slurm;
  let sbatch: string;
  const breaks = (script: string): void => {
    writeFileSync(`${sbatch}.new`, `#!/bin/sh\n${script}\n`);
    chmodSync(`${sbatch}.new`, 0o755);
    renameSync(`${sbatch}.new`, sbatch);
  };

  beforeAll(async () => {
    agent = new TestAgent();
    slurm = await startSlurm({ nodes: 1, cpus: 4 });
    const bin = join(slurm.dir, 'before');
    mkdirSync(bin);
    sbatch = join(bin, 'sbatch');
    breaks('kill -SEGV $$');
    agent.site('cluster', {
      url: 'local',
      batch: 'slurm',
      prelude: `export SLURM_CONF='${slurm.env['SLURM_CONF'] ?? ''}' PATH='${bin}':$PATH`,
      more: `scratch = "${agent.dir}/site"\n[limits]\npoll_min = "1s"\npoll_max = "3s"\n`,
    });
    agent.site('other', {
      url: 'local',
      batch: 'fork',
      more: `cost = 9\nscratch = "${agent.dir}/other"\n[limits]\nrunning = 4\n`,
    });
    await agent.ok('up');
  }, 120_000);
  afterAll(async () => {
    await agent?.end();
    await slurm?.stop();
  });

  const jobs = (count: number, ledger: string, more = 'requirements = TARGET.Name != "local"'): Promise<number> =>
    agent.submit(
      [
        'universe = grid',
        'executable = /bin/sh',
        `arguments = "-c 'echo $(Process) >> ${ledger}'"`,
        'rank = -TARGET.Cost',
        more,
        `queue ${count}`,
      ].join('\n'),
    );
  const stateOf = async (): Promise<SiteLine | undefined> =>
    (JSON.parse(await agent.ok('site', 'list', '--json')) as SiteLine[]).find(({ name }) => name === 'cluster');
  const lines = (file: string): string[] => readFileSync(file, 'utf8').trim().split('\n').sort();

  it('is taken out of use, its waiting jobs go elsewhere, and one job finds out that it is well again', async () => {
    const ledger = agent.file('ledger', '');
    const cluster = await jobs(4, ledger);
    await until('it to be out of use', async () => (await stateOf())?.outOfUse, 200_000);
    expect(await agent.ok('site', 'show', 'cluster')).toMatch(/out of use +it lost jobs before they started/);
    await agent.ok('wait', '--no-outcome', '--timeout', '200', String(cluster));
    expect(lines(ledger)).toEqual(['0', '1', '2', '3']);
    const ads = await agent.ads(cluster);
    expect(ads.map((ad) => ad['GridResource'])).toEqual(Array(4).fill('batch fork other'));
    expect(ads.map((ad) => ad['NumJobStarts'])).toEqual([1, 1, 1, 1]);

    breaks('exec /usr/bin/sbatch "$@"');
    const second = agent.file('second', '');
    const probe = await jobs(1, second, 'requirements = TARGET.Name == "cluster"');
    await agent.ok('wait', '--no-outcome', '--timeout', '300', String(probe));
    expect(lines(second)).toEqual(['0']);
    expect((await agent.ads(probe))[0]).toMatchObject({ GridResource: 'batch slurm cluster' });
    await until('it to be in use', async () => ((await stateOf())?.outOfUse === undefined ? true : undefined), 60_000);
  });
});
