import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { GlideinAgent } from '../glidein/ground.ts';
import { type Slurm, skipWithoutSlurm, startSlurm } from '../sites/slurm.ts';
import { type Sshd, startSshd } from '../sites/sshd.ts';
import { SLOW } from '../slow.ts';
import { until } from './agent.ts';
import { kill, processesOf } from './kill.ts';

interface Step {
  readonly job: string;
  readonly outcome: string;
  readonly message: string;
}

describe.skipIf(!SLOW || skipWithoutSlurm())(
  'an agent with pilots in Slurm and jobs on them, whose machine is lost',
  { timeout: 600_000 },
  () => {
    let slurm: Slurm;
    let sshd: Sshd | undefined;
    let agents: GlideinAgent[] = [];
    beforeEach(async () => {
      slurm = await startSlurm({ nodes: 2, cpus: 4 });
    }, 120_000);
    afterEach(async () => {
      for (const one of agents) await one.end();
      agents = [];
      await slurm?.stop();
      await sshd?.stop();
      sshd = undefined;
    });

    /** All know the site's directory, and write in the first one's. */
    function agent(): GlideinAgent {
      const made = new GlideinAgent(sshd ? { HOME: sshd.clientHome } : {});
      agents.push(made);
      made.configure();
      const [first = made] = agents;
      made.site('slurm', {
        url: sshd?.url ?? 'local',
        batch: 'slurm',
        prelude: `export SLURM_CONF='${slurm.env['SLURM_CONF'] ?? ''}'`,
        more: `scratch = "${first.dir}/slurm"\n[limits]\npoll_min = "1s"\n`,
      });
      return made;
    }

    /** Two pilots with a job each that waits for `go`, and one job that Slurm runs itself. */
    async function busy(lost: GlideinAgent): Promise<{ readonly pool: number; readonly site: number }> {
      const job = (name: string, more: string) =>
        `${more}\nexecutable = /bin/sh\ntransfer_executable = false\nshould_transfer_files = YES\noutput = ${name}.$(Process).out\n` +
        `arguments = "-c 'echo ${name} >>${lost.work}/ledger; while [ ! -e ${lost.work}/go ]; do sleep 0.2; done; echo ${name}'"\n`;
      lost.file('ledger', '');
      await lost.ok('glidein', 'start', '--site', 'slurm', '-n', '2', '--walltime', '20m', '--cores', '1');
      await lost.untilHome(2);
      const pool = await lost.submit(`${job('pool', 'universe = vanilla\nrequest_memory = 20M')}queue 2\n`);
      const site = await lost.submit(`${job('site', 'universe = grid\ngrid_resource = batch slurm slurm')}queue\n`);
      await until('all to run', () => lost.ledger('ledger').length === 3 || undefined);
      return { pool, site };
    }

    const running = () => slurm.run('squeue', '-h', '-t', 'R,PD', '-o', '%i').trim().split('\n').filter(Boolean).length;

    /** Its processes at the site are on other machines, and go on. */
    function die(lost: GlideinAgent): void {
      for (const name of ['scheduler/main.js', 'gridmanager/main.js', 'central-manager-main.js', 'redis-server'])
        for (const pid of processesOf(name, lost)) kill(pid);
    }

    it('without a backup: its pilots are withdrawn, with the jobs on them; what Slurm runs itself is followed', async () => {
      const lost = agent();
      const { site } = await busy(lost);
      expect(running()).toBe(3);
      die(lost);
      rmSync(join(lost.home, 'state'), { recursive: true });

      const fresh = agent();
      const { steps } = JSON.parse(await fresh.ok('recover', '--json')) as { steps: readonly Step[] };
      const pilots = steps.filter(({ message }) => message === 'it is a pilot of the lost pool, and was withdrawn');
      expect(pilots.map(({ outcome }) => outcome)).toEqual(['left', 'left']);
      expect(steps.filter(({ outcome }) => outcome === 'followed').map(({ job }) => job)).toEqual([`${site}.0`]);
      await until('the pilots to end', () => running() === 1 || undefined);
      await until('what ran on them to end', () => processesOf('echo pool', lost).length === 0 || undefined);
      lost.file('go', '');
      await fresh.ok('wait', '--no-outcome', '--timeout', '90', String(site));
      expect(lost.read('site.0.out')).toBe('site\n');
      expect(lost.ledger('ledger')).toEqual(['pool', 'pool', 'site']);
      expect(existsSync(join(lost.work, 'pool.0.out'))).toBe(false);
      // Its pool begins anew.
      await fresh.ok('glidein', 'start', '--site', 'slurm', '-n', '1', '--walltime', '20m', '--cores', '1');
      await fresh.untilHome(1);
      const next = await fresh.submit(fresh.jobs('next', 1, 0));
      await fresh.ok('wait', '--no-outcome', '--timeout', '90', String(next));
      expect(fresh.read('next.0.out')).toBe('job 0\n');
    });

    it('with a backup: its pilots come home to the restored pool, whose jobs are held, and run on them when released', async () => {
      sshd = await startSshd();
      const lost = agent();
      const { pool, site } = await busy(lost);
      const file = join(lost.dir, 'backup');
      await lost.ok('backup', file);
      die(lost);
      rmSync(join(lost.home, 'state'), { recursive: true });

      const fresh = agent();
      // Nothing remembers what the pool did since the backup.
      expect(await fresh.ok('restore', file)).toContain('2 jobs may have run since');
      await fresh.untilHome(2);
      expect(running()).toBe(3);
      lost.file('go', '');
      await fresh.ok('wait', '--no-outcome', '--timeout', '120', String(site));
      expect(lost.read('site.0.out')).toBe('site\n');
      await fresh.ok('release', String(pool));
      await fresh.ok('wait', '--no-outcome', '--timeout', '120', String(pool));
      for (const proc of [0, 1]) expect(lost.read(`pool.${proc}.out`)).toBe('pool\n');
      expect(lost.ledger('ledger').filter((line) => line === 'site')).toEqual(['site']);
      expect(running()).toBe(2);
    });
  },
);
