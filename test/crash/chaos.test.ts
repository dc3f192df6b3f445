import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readPid } from '../../src/util/pid-file.ts';
import { TestAgent, until } from '../agent/agent.ts';
import { kill, killMatching } from '../agent/kill.ts';
import { skipWithoutSlurm } from '../sites/slurm.ts';
import { attemptsAt, startTarget, type Target } from './sites.ts';
import { seeded } from '../seeded.ts';

const SEED = Number(process.env['GRYPHUS_SEED'] ?? 20261121);
const JOBS = Number(process.env['GRYPHUS_CHAOS_JOBS'] ?? 500);
const CHAOS_MS = Number(process.env['GRYPHUS_CHAOS_MS'] ?? 45_000);

const skip = skipWithoutSlurm();

describe.skipIf(skip)(`chaos (seed ${SEED})`, () => {
  let agent: TestAgent;
  let slurm: Target;
  const targets: Target[] = [];

  beforeAll(async () => {
    agent = new TestAgent();
    agent.config('[gridmanager]\nrestart_max = "500ms"\nretry_max = "2s"\n');
    // Slurm's ssh server is the home of both ssh sites: one client home.
    slurm = await startTarget('slurm, ssh', agent);
    agent.site('there', {
      url: slurm.sshd?.url ?? '',
      batch: 'fork',
      more: 'scratch = "~/fork"\n[limits]\nrunning = 6\n',
    });
    agent.site('local', {
      url: 'local',
      batch: 'fork',
      more: `scratch = "${agent.dir}/local"\n[limits]\nrunning = 6\n`,
    });
    targets.push(
      slurm,
      { ...slurm, siteDir: join(slurm.sshd?.home ?? '', 'fork/there') },
      { ...slurm, siteDir: join(agent.dir, 'local/local') },
    );
    await agent.ok('up');
  }, 120_000);
  afterAll(async () => {
    await agent.end();
    await slurm.stop();
  });

  it(
    `runs ${JOBS} jobs over three sites, each once, while everything is killed`,
    async () => {
      const random = seeded(SEED);
      const ledger = join(agent.work, 'ledger');
      agent.file('job.sh', '#!/bin/sh\necho "$1" >> "$2"\nsleep "0.$3"\necho "done $1"\n', 0o755);
      const shares = [
        ['batch fork local', Math.round(JOBS * 0.4)],
        ['batch fork there', Math.round(JOBS * 0.3)],
        ['batch slurm cluster', JOBS - Math.round(JOBS * 0.4) - Math.round(JOBS * 0.3)],
      ] as const;
      const clusters: number[] = [];
      for (const [resource, count] of shares) {
        clusters.push(
          await agent.submit(
            [
              'universe = grid',
              `grid_resource = ${resource}`,
              'executable = job.sh',
              `arguments = $(Cluster).$(Process) ${ledger} ${1 + Math.floor(random() * 4)}`,
              'output = out.$(Cluster).$(Process)',
              `queue ${count}`,
            ].join('\n'),
          ),
        );
      }
      const blows = await strike(random);
      await slurm.slurm?.restartCtld();
      await agent.ok('up');
      const waited = await agent.run(['wait', '--timeout', '400', ...clusters.map(String)]);
      const story = () => `blows: ${blows.join(' ')}\n${agent.log('scheduler.log').slice(-2000)}`;
      if (waited.code !== 0)
        throw new Error(`${(await agent.run(['q', '--nobatch'])).stdout.slice(-3000)}\n${story()}`);
      const started = readFileSync(ledger, 'utf8').trim().split('\n');
      const expected = clusters.flatMap((cluster, i) =>
        Array.from({ length: shares[i]?.[1] ?? 0 }, (_, proc) => `${cluster}.${proc}`),
      );
      const twice = started.filter((name, i) => started.indexOf(name) !== i);
      expect({ twice, story: twice.length > 0 ? story() : '' }).toEqual({ twice: [], story: '' });
      expect(started.sort()).toEqual(expected.sort());
      for (const name of expected) expect(agent.read(`out.${name}`)).toBe(`done ${name}\n`);
      for (const target of targets) expect(attemptsAt(target)).toEqual([]);
    },
    CHAOS_MS + 500_000,
  );

  /** Kills, cuts and restarts for a while; what was done, in order. */
  async function strike(random: () => number): Promise<string[]> {
    const done: string[] = [];
    const end = Date.now() + CHAOS_MS;
    while (Date.now() < end) {
      const names = Object.keys(BLOWS) as (keyof typeof BLOWS)[];
      const blow = names[Math.floor(random() * names.length)] ?? 'gridmanager';
      done.push(blow);
      await BLOWS[blow](agent, slurm);
      await new Promise((resume) => setTimeout(resume, 200 + random() * 1500));
    }
    return done;
  }
});

const BLOWS = {
  gridmanager: async (agent: TestAgent) => killMatching('gridmanager/main.js', agent),
  scheduler: async (agent: TestAgent) => {
    killMatching('scheduler/main.js', agent);
    await agent.run(['up']);
  },
  redis: async (agent: TestAgent) => {
    const pid = readPid(join(agent.home, 'state/redis/redis.pid'));
    if (pid !== undefined) kill(pid);
    await until('the queue to be back', async () => (await agent.run(['up'])).code === 0 || undefined, 60_000);
  },
  jobmanager: async (agent: TestAgent, target: Target) => killMatching('jobmanager.sh', agent, target.sshd?.home),
  connections: async (_agent: TestAgent, target: Target) => target.sshd?.killSessions(),
  'front machine': async (_agent: TestAgent, target: Target) => {
    target.sshd?.kill();
    await new Promise((resume) => setTimeout(resume, 1000));
    await target.sshd?.restart();
  },
  slurmctld: async (_agent: TestAgent, target: Target) => {
    target.slurm?.killCtld();
    await target.slurm?.restartCtld();
  },
  slurmd: async (_agent: TestAgent, target: Target) => {
    target.slurm?.killSlurmd(1);
    await target.slurm?.restartSlurmd(1);
  },
} satisfies Record<string, (agent: TestAgent, target: Target) => Promise<void>>;
