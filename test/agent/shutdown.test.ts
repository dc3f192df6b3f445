import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { seeded } from '../seeded.ts';
import { SLOW } from '../slow.ts';
import { TestAgent, until } from './agent.ts';
import { daemons, startEverything } from './everything.ts';

/** What a user's session is given at its end, and how long after it nothing may come back, in milliseconds. */
const LIMIT_MS = 5000;
const AFTER_MS = 3000;
const ROUNDS = Number(process.env['GRYPHUS_SHUTDOWNS'] ?? 6);
const SEED = Number(process.env['GRYPHUS_SEED'] ?? 1);

describe.skipIf(!SLOW)('SIGTERM to every daemon and to Redis, in any order, as at a shutdown', () => {
  let agent: TestAgent;
  beforeEach(() => {
    agent = new TestAgent();
  });
  afterEach(() => agent.end());

  const pids = (of: ReturnType<typeof daemons>) => of.map(({ pid }) => pid);

  /** To all that run now, in a random order, with pauses that add up to at most `spreadMs`. */
  async function terminate(random: () => number, spreadMs: number): Promise<void> {
    const all = daemons(agent)
      .map((one) => ({ ...one, at: random() }))
      .toSorted((a, b) => a.at - b.at);
    for (const { pid } of all) {
      try {
        process.kill(pid, 'SIGTERM');
      } catch {
        // It ended because another did.
      }
      await sleep((random() * spreadMs) / all.length);
    }
  }

  /** The lines of the agent's logs since the last round, for a round that fails. */
  const said = () =>
    ['scheduler.log', 'pool.log', 'pool-worker.log', 'redis.log']
      .map((name) => `${name}:\n${agent.log(name).slice(-1500)}`)
      .join('\n');

  it(
    `ends all within 5 s, none comes back, and the next command goes on where they were; ${ROUNDS} times`,
    async () => {
      agent.file('ledger', '');
      const wait = `echo $1 >>${agent.work}/ledger; while [ ! -e ${agent.work}/go ]; do sleep 0.1; done`;
      agent.file('job.sh', `#!/bin/sh\n${wait}\n`, 0o755);
      const [pool, site] = await startEverything(
        agent,
        `executable = ${agent.work}/job.sh\narguments = $(Cluster)\nlog = job.$(Cluster).log`,
      );
      const random = seeded(SEED);
      for (let round = 0; round < ROUNDS; round++) {
        await terminate(random, [0, 300, 1000][round % 3] ?? 0);
        const since = performance.now();
        await until('the daemons to end', () => daemons(agent).length === 0 || undefined, 60_000).catch(
          () => undefined,
        );
        const took = performance.now() - since;
        expect(daemons(agent), said()).toEqual([]);
        expect(took, said()).toBeLessThan(LIMIT_MS);
        for (const end = Date.now() + AFTER_MS; Date.now() < end; await sleep(500))
          expect(pids(daemons(agent)), said()).toEqual([]);
        await agent.ok('web', '--port', '0');
        await agent.ok('wait', '--until', 'start', '--timeout', '60', String(pool), String(site));
      }
      agent.file('go', '');
      await agent.ok('wait', '--no-outcome', '--timeout', '90', String(pool), String(site));
      const nodes = join(agent.work, 'my.dag.dagman.out');
      await until(
        'the DAG',
        () => (existsSync(nodes) && readFileSync(nodes, 'utf8').includes('EXITING WITH STATUS 0')) || undefined,
        60_000,
      );
      const started = (cluster: number) =>
        agent
          .read('ledger')
          .split('\n')
          .filter((one) => one === String(cluster)).length;
      // What runs at a site goes on.
      expect((await agent.ads(site))[0]).toMatchObject({ JobStatus: 4, ExitCode: 0, NumJobStarts: 1 });
      expect([started(site), started(site + 2)]).toEqual([1, 1]);
      // A worker that is told to end vacates its jobs.
      const [ad = {}] = await agent.ads(pool);
      expect(ad).toMatchObject({ JobStatus: 4, ExitCode: 0 });
      // One may have ended before its first line.
      expect(started(pool)).toBeLessThanOrEqual(Number(ad['NumJobStarts']));
      expect(agent.read(`job.${pool}.log`).match(/^005 /gm)).toHaveLength(1);
    },
    180_000 + ROUNDS * 120_000,
  );
});
