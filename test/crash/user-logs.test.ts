import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { htcondorPlace } from '../../scripts/htcondor.mjs';
import { parseUserLog } from '../../src/user-log/text.ts';
import { readPid } from '../../src/util/pid-file.ts';
import { TestAgent, until } from '../agent/agent.ts';
import { kill, killMatching } from '../agent/kill.ts';
import { seeded } from '../seeded.ts';
import { SLOW } from '../slow.ts';

const SEED = Number(process.env['GRYPHUS_SEED'] ?? 20261122);
const CLUSTERS = Number(process.env['GRYPHUS_CHAOS_CLUSTERS'] ?? (SLOW ? 60 : 6));
const JOBS = 40;
const BLOWS = CLUSTERS * 2;
const READER = join(htcondorPlace(), 'bin/condor_check_userlogs');

describe(`user logs, while everything is killed (seed ${SEED})`, () => {
  const agent = new TestAgent();
  const random = seeded(SEED);

  beforeAll(async () => {
    agent.config('[pool]\ncpus = 8\n[gridmanager]\nrestart_max = "500ms"\n');
    await agent.ok('up');
  });
  afterAll(() => agent.end());

  it(
    'tell of every job all that happened, once',
    async () => {
      const clusters: number[] = [];
      const submits = (async () => {
        // A separate log for each job, one for each cluster, and one that all share.
        for (let n = 0; n < CLUSTERS; n++) {
          const log = ['own.$(Cluster).$(Process)', 'cluster.$(Cluster)', 'shared'][n % 3];
          agent.file(`job.${n}`, `executable = /bin/true\nlog = ${log}.log\nqueue ${JOBS}\n`);
          clusters.push(await submitted(agent, `job.${n}`));
        }
      })();
      const blows: string[] = [];
      for (let n = 0; n < BLOWS; n++) {
        await new Promise((resume) => setTimeout(resume, 300 + random() * 1500));
        blows.push(strike(agent, random));
        // Otherwise the next submit does; or jobs end while nothing receives their events.
        if (random() < 0.7) await agent.run(['up']);
      }
      await submits;
      await until('the agent to be up', async () => (await agent.run(['up'])).code === 0 || undefined);
      await agent.ok('wait', '--no-outcome', '--timeout', String(60 + CLUSTERS * 6), ...clusters.map(String));
      const wrong: string[] = [];
      for (const [n, cluster] of clusters.entries()) {
        for (let proc = 0; proc < JOBS; proc++) {
          const name = [`own.${cluster}.${proc}`, `cluster.${cluster}`, 'shared'][n % 3];
          const types = typesOf(agent, `${name}.log`, cluster, proc);
          const count = (type: string) => types.filter((one) => one === type).length;
          const right = count('submit') === 1 && count('execute') >= 1 && count('terminated') === 1;
          if (!right || types[0] !== 'submit' || types.at(-1) !== 'terminated')
            wrong.push(`${cluster}.${proc}: ${types.join(' ')}`);
        }
      }
      expect({ wrong, blows: wrong.length > 0 ? blows.join(' ') : '' }).toEqual({ wrong: [], blows: '' });
      if (existsSync(READER)) {
        const names = clusters.flatMap((cluster, n) =>
          n % 3 === 1 ? [`cluster.${cluster}.log`] : n % 3 === 2 ? ['shared.log'] : [`own.${cluster}.0.log`],
        );
        const said = execFileSync(READER, [...new Set(names)], { cwd: agent.work, encoding: 'utf8' });
        expect(said).toMatch(/^Log\(s\) are okay$/m);
      }
    },
    120_000 + CLUSTERS * 15_000,
  );
});

/** An unacknowledged submit did not happen: it is repeated. */
function submitted(agent: TestAgent, file: string): Promise<number> {
  return until('a submit', async () => {
    const { code, stdout } = await agent.run(['submit', '--terse', file]);
    return code === 0 ? Number(/^(\d+)\./.exec(stdout)?.[1]) : undefined;
  });
}

const read = new Map<string, Map<string, string[]>>();

function typesOf(agent: TestAgent, log: string, cluster: number, proc: number): readonly string[] {
  let jobs = read.get(log);
  if (!jobs) {
    jobs = new Map();
    read.set(log, jobs);
    const events = existsSync(join(agent.work, log)) ? parseUserLog(agent.read(log)).events : [];
    for (const event of events) {
      const job = `${event.cluster}.${event.proc}`;
      jobs.set(job, [...(jobs.get(job) ?? []), event.type]);
    }
  }
  return jobs.get(`${cluster}.${proc}`) ?? [];
}

const PARTS = {
  scheduler: (agent: TestAgent) => killMatching('scheduler/main.js', agent),
  'log writer': (agent: TestAgent) => killMatching('user-logs/writer-main.js', agent),
  redis: (agent: TestAgent) => {
    const pid = readPid(join(agent.home, 'state/redis/redis.pid'));
    if (pid !== undefined) kill(pid);
  },
  gridmanager: (agent: TestAgent) => killMatching('gridmanager/main.js', agent),
  centralManager: (agent: TestAgent) => killMatching('pool/central-manager/central-manager-main.js', agent),
};

/** Kills one part, or all of them at once; returns which. */
function strike(agent: TestAgent, random: () => number): string {
  const names = Object.keys(PARTS) as (keyof typeof PARTS)[];
  const name = random() < 0.3 ? undefined : names[Math.floor(random() * names.length)];
  for (const part of name === undefined ? names : [name]) PARTS[part](agent);
  return name ?? 'all';
}
