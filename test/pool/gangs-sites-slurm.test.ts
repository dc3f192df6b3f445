import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { until } from '../agent/agent.ts';
import { GlideinAgent } from '../glidein/ground.ts';
import { type Slurm, skipWithoutSlurm, startSlurm } from '../sites/slurm.ts';
import { SLOW } from '../slow.ts';

const PAGE = readFileSync(join(import.meta.dirname, '../../docs/parallel.md'), 'utf8');
const RING = /^\*\*ring\.c\*\*[^\n]*:\n\n```\w*\n([\s\S]*?)^```$/m.exec(PAGE)?.[1] ?? '';
const SITES = ['one', 'two'] as const;
/** After the death of one node's pilot, the others must be gone. */
const GONE_MS = 10_000;

describe.skipIf(!SLOW || skipWithoutSlurm())(
  'a parallel job over the pilots of two Slurms',
  { timeout: 240_000 },
  () => {
    let agent: GlideinAgent;
    const slurms = new Map<string, Slurm>();
    beforeAll(async () => {
      agent = new GlideinAgent();
      agent.configure('idle = "10m"');
      for (const name of SITES) {
        const slurm = await startSlurm({ nodes: 1, cpus: 2 });
        slurms.set(name, slurm);
        agent.site(name, {
          url: 'local',
          batch: 'slurm',
          prelude: `export SLURM_CONF='${slurm.env['SLURM_CONF'] ?? ''}'`,
          more: `scratch = "${agent.dir}/${name}"\n[limits]\npoll_min = "1s"\n`,
        });
      }
      await agent.ok('up');
      for (const name of SITES) await pilot(name);
      const home = async () => (await agent.pilots()).filter(({ is }) => is === 'home').length === 2 || undefined;
      await until('both pilots at home', home, 150_000);
    }, 180_000);
    afterAll(async () => {
      await agent?.end();
      for (const slurm of slurms.values()) await slurm.stop();
    });

    const pilot = (site: string) =>
      agent.ok('glidein', 'start', '--site', site, '-n', '1', '--walltime', '30m', '--cores', '2');
    const PARALLEL = 'universe = parallel\nrequest_memory = 50\nshould_transfer_files = yes\nmachine_count = 4\n';
    /** Each node tells its site, and then becomes the program. */
    const ON = `#!/bin/sh\nsed -n 's/^GryphusSite = //p' "$_CONDOR_MACHINE_AD" >site.$_CONDOR_PROCNO\n`;

    it.each(['mpich', 'openmpi'])('runs %s over both, without ssh', async (mpi) => {
      agent.file('ring.c', RING);
      execFileSync(`mpicc.${mpi}`, ['-o', join(agent.work, 'ring'), join(agent.work, 'ring.c')]);
      agent.file('ring.sh', `${ON}exec "$GRYPHUS_LAUNCHERS/${mpi}script" ./ring\n`, 0o755);
      const cluster = await agent.submit(
        `${PARALLEL}executable = ring.sh\ntransfer_input_files = ring\noutput = ring.out.$(Node)\nerror = ring.err.$(Node)\nqueue`,
      );
      await agent.run(['wait', String(cluster), '--timeout', '120']);
      expect((await agent.ads(cluster))[0], agent.read('ring.err.0')).toMatchObject({ JobStatus: 4, ExitCode: 0 });
      expect(agent.read('ring.out.0')).toBe('4 ranks, sum 6\n');
      const sites = [0, 1, 2, 3].map((node) => agent.read(`site.${node}`).trim());
      expect(sites.sort()).toEqual(['"one"', '"one"', '"two"', '"two"']);
    });

    it('that is small enough stays within one site', async () => {
      agent.file('small.sh', ON, 0o755);
      const cluster = await agent.submit(
        `${PARALLEL}machine_count = 2\n+ParallelShutdownPolicy = "WAIT_FOR_ALL"\nexecutable = small.sh\nqueue`,
      );
      await agent.run(['wait', String(cluster), '--timeout', '120']);
      expect(agent.read('site.0')).toBe(agent.read('site.1'));
    });

    it('loses all its nodes in 10 s when one pilot is cancelled at its site, and runs again on the next', async () => {
      const ledger = join(agent.work, 'ledger');
      const finish = join(agent.work, 'finish');
      agent.file(
        'long.sh',
        `${ON}echo "$$ $(cat site.$_CONDOR_PROCNO)" >>${ledger}\nwhile [ ! -e ${finish} ]; do sleep 0.2; done\n`,
        0o755,
      );
      const cluster = await agent.submit(`${PARALLEL}executable = long.sh\nqueue`);
      const started = () => (existsSync(ledger) ? readFileSync(ledger, 'utf8').trim().split('\n') : []);
      await until('the start', () => started().length === 4 || undefined, 60_000);
      await until('it to run', async () => (await agent.ads(cluster))[0]?.['JobStatus'] === 2 || undefined);
      const others = started().filter((line) => line.endsWith('"one"'));
      expect(others).toHaveLength(2);
      const alive = () => others.filter((line) => existsSync(`/proc/${line.split(' ')[0]}`));
      const user = execFileSync('id', ['-un'], { encoding: 'utf8' }).trim();
      const cancelled = Date.now();
      slurms.get('two')?.run('scancel', '-u', user);
      await until('the end of the nodes at the other site', () => alive().length === 0 || undefined, 60_000);
      expect(Date.now() - cancelled).toBeLessThan(GONE_MS);
      expect(started()).toHaveLength(4);
      await pilot('two');
      await until('the second start', () => started().length === 8 || undefined, 120_000);
      writeFileSync(finish, '');
      await agent.run(['wait', String(cluster), '--timeout', '60']);
      expect((await agent.ads(cluster))[0]).toMatchObject({ JobStatus: 4, ExitCode: 0 });
    });
  },
);
