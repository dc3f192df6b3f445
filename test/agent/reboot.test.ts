import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { SLOW } from '../slow.ts';
import { TestAgent, until } from './agent.ts';
import { kill, processes } from './kill.ts';
import { MAY_BE_ANOTHER, type Machine, runOn } from './machine.ts';

/** Of the fork site and of the pool. */
const AT_ONCE = 3;
const JOBS = 8;

describe.skipIf(!SLOW || !MAY_BE_ANOTHER)('a reboot while everything runs', () => {
  let agent: TestAgent;
  beforeEach(() => {
    agent = new TestAgent();
    agent.config(`[pool]\ncpus = ${AT_ONCE}\n`);
    agent.site('near', {
      url: 'local',
      batch: 'fork',
      more: `scratch = "${agent.dir}/near"\n[limits]\nrunning = ${AT_ONCE}\n`,
    });
  });
  afterEach(() => agent.end());

  const machines: readonly (readonly [string, Machine])[] = [
    ['of a machine that keeps its name', { host: hostname(), boot: '11111111-2222-3333-4444-555555555555' }],
    ['of a machine that gets another name', { host: 'renamed', boot: '11111111-2222-3333-4444-555555555555' }],
  ];
  it.each(machines)(
    '%s: no job is lost, what ran is held, and runs again once it is released',
    async (_, after) => {
      const ledger = agent.file('ledger', '');
      const lines = () => readFileSync(ledger, 'utf8').split('\n').filter(Boolean).toSorted();
      const submit = (site: string, grid: readonly string[]) =>
        agent.submit(
          [
            ...grid,
            'executable = /bin/sh',
            'transfer_executable = false',
            `arguments = "-c 'echo ${site} $(Process) >>${ledger}; sleep 3'"`,
            `queue ${JOBS}`,
          ].join('\n'),
        );
      const near = await submit('near', ['universe = grid', 'grid_resource = batch fork near']);
      const pool = await submit('pool', []);
      await until('jobs to run at both', () => {
        const text = lines().join();
        return (text.includes('near') && text.includes('pool')) || undefined;
      });
      for (let left = processes(agent); left.length > 0; left = processes(agent)) for (const { pid } of left) kill(pid);

      const there = async (...words: string[]) => {
        const { code, stdout, stderr } = await runOn(agent, after, ...words);
        if (code !== 0) throw new Error(`gryphus ${words.join(' ')} ended with ${code}:\n${stderr}`);
        return stdout;
      };
      await there('up');
      const ads = async (cluster: number) => {
        const parse = (text: string) => JSON.parse(text || '[]') as Record<string, unknown>[];
        return [
          ...parse(await there('q', '--json', String(cluster))),
          ...parse(await there('history', '--json', String(cluster))),
        ];
      };
      const said = { [near]: 'the machine was rebooted while it ran', [pool]: 'vanished without an exit status' };
      const again: string[] = [];
      for (const [site, cluster] of [['near', near] as const, ['pool', pool] as const]) {
        const settled = await until(`${site} to be done`, async () => {
          const all = await ads(cluster);
          return all.every(({ JobStatus }) => JobStatus === 4 || JobStatus === 5) ? all : undefined;
        });
        expect(settled).toHaveLength(JOBS);
        const held = settled.filter(({ JobStatus }) => JobStatus === 5);
        expect(held.length).toBeGreaterThan(0);
        expect(held.length).toBeLessThanOrEqual(AT_ONCE);
        for (const ad of held) expect(ad['HoldReason']).toContain(said[cluster]);
        again.push(...held.map(({ ProcId }) => `${site} ${String(ProcId)}`));
      }
      const once = ['near', 'pool'].flatMap((site) => Array.from({ length: JOBS }, (__, i) => `${site} ${i}`));
      expect(lines()).toEqual(once);

      await there('release', String(near), String(pool));
      await there('wait', '--no-outcome', '--timeout', '90', String(near), String(pool));
      expect(lines()).toEqual([...once, ...again].toSorted());
      for (const ad of [...(await ads(near)), ...(await ads(pool))])
        expect(ad).toMatchObject({ JobStatus: 4, ExitCode: 0 });
      await there('down');
    },
    240_000,
  );
});
