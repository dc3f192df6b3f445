import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Slurm, skipWithoutSlurm, startSlurm } from '../sites/slurm.ts';
import { SLOW } from '../slow.ts';
import { TestAgent, until } from './agent.ts';

describe.skipIf(!SLOW || skipWithoutSlurm())(
  '500 jobs of an array, whose agent is killed and lost',
  { timeout: 600_000 },
  () => {
    let slurm: Slurm;
    const agents: TestAgent[] = [];
    const agent = () => {
      const made = new TestAgent();
      agents.push(made);
      // Both know the site's directory.
      const first = agents[0] ?? made;
      made.site('slurm', {
        url: 'local',
        batch: 'slurm',
        prelude: `export SLURM_CONF='${slurm.env['SLURM_CONF'] ?? ''}'`,
        more: `scratch = "${first.dir}/slurm"\n[limits]\npoll_min = "1s"\n`,
      });
      return made;
    };
    beforeAll(async () => {
      slurm = await startSlurm({ nodes: 1, cpus: 8 });
    }, 120_000);
    afterAll(async () => {
      for (const one of agents) await one.end();
      await slurm?.stop();
    });

    it('each runs once, and each result comes home', async () => {
      const lost = agent();
      const ledger = join(lost.dir, 'ledger');
      lost.file('../ledger', '');
      const cluster = await lost.submit(
        [
          'universe = grid',
          'grid_resource = batch slurm slurm',
          'executable = /bin/sh',
          'transfer_executable = false',
          `arguments = "-c 'echo $(Process) >>${ledger}; echo result $(Process)'"`,
          'output = out.$(Process)',
          'queue 500',
        ].join('\n'),
      );
      const lines = () => readFileSync(ledger, 'utf8').trim().split('\n');
      await until('some to have run', () => (lines().length > 60 ? true : undefined));
      await lost.ok('down');
      const home = new Set(Array.from({ length: 500 }, (_, n) => n).filter((n) => exists(join(lost.work, `out.${n}`))));
      rmSync(join(lost.home, 'state'), { recursive: true });

      const fresh = agent();
      const said = JSON.parse(await fresh.ok('recover', '--json')) as { steps: { outcome: string; job: string }[] };
      const back = said.steps.filter(({ outcome }) => outcome === 'followed' || outcome === 'held').length;
      expect(new Set(said.steps.map(({ job }) => job)).size).toBe(said.steps.length);
      // Every job that the lost one had not finished was at the site.
      expect(back).toBeGreaterThanOrEqual(500 - home.size - 1);
      await fresh.run(['release', String(cluster)]);
      await fresh.ok('wait', '--no-outcome', String(cluster), '--timeout', '400');
      const ran = lines().map(Number);
      expect(ran.length).toBe(new Set(ran).size);
      expect(ran.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 500 }, (_, n) => n));
      for (let n = 0; n < 500; n++) expect(readFileSync(join(lost.work, `out.${n}`), 'utf8')).toBe(`result ${n}\n`);
      // A second one finds nothing more.
      const again = JSON.parse(await fresh.ok('recover', '--json')) as { steps: unknown[] };
      expect(again.steps).toEqual([]);
      expect(await fresh.ok('site', 'audit', 'slurm')).toBe('slurm and the queue agree.\n');
    });
  },
);

function exists(path: string): boolean {
  try {
    return readFileSync(path, 'utf8') !== '';
  } catch {
    return false;
  }
}
