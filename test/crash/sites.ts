import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { TestAgent } from '../agent/agent.ts';
import { startSlurm } from '../sites/slurm.ts';
import { type Sshd, startSshd } from '../sites/sshd.ts';

/** A kind of site under a whole agent. */
export interface Target {
  /** The line of a submit file that leads there. */
  readonly resource: string;
  /** The site's directory of ours, above the agents'. */
  readonly siteDir: string;
  readonly sshd?: Sshd;
  readonly slurm?: Awaited<ReturnType<typeof startSlurm>>;
  stop(): Promise<void>;
}

export type Kind = 'fork, local' | 'fork, ssh' | 'slurm, ssh';

/** More jobs at once than this machine may have cores. */
const SLOTS = '[limits]\nrunning = 8\n';

/** Starts what the kind needs and tells the agent of it. */
export async function startTarget(kind: Kind, agent: TestAgent): Promise<Target> {
  if (kind === 'fork, local') {
    const siteDir = join(agent.dir, 'home/.gryphus/local');
    agent.site('local', { url: 'local', batch: 'fork', more: SLOTS });
    return { resource: 'batch fork local', siteDir, stop: async () => undefined };
  }
  const sshd = await startSshd();
  agent.env['HOME'] = sshd.clientHome;
  const siteDir = join(sshd.home, '.gryphus', kind === 'fork, ssh' ? 'there' : 'cluster');
  if (kind === 'fork, ssh') {
    agent.site('there', { url: sshd.url, batch: 'fork', more: SLOTS });
    return { resource: 'batch fork there', siteDir, sshd, stop: () => sshd.stop() };
  }
  const slurm = await startSlurm({ nodes: 2, cpus: 4 });
  const prelude = Object.entries(slurm.env)
    .map(([name, value]) => `export ${name}='${value}'`)
    .join('; ');
  agent.site('cluster', {
    url: sshd.url,
    batch: 'slurm',
    prelude,
    more: '[limits]\npoll_min = "1s"\npoll_max = "3s"\n',
  });
  return {
    resource: 'batch slurm cluster',
    siteDir,
    sshd,
    slurm,
    stop: async () => {
      await slurm.stop();
      await sshd.stop();
    },
  };
}

/** The attempts that a site holds anything of: empty once all was forgotten. */
export function attemptsAt(target: Target): string[] {
  const agents = list(target.siteDir);
  return agents.flatMap((agent) => list(join(target.siteDir, agent, 'jobs')));
}

/** The directory of the one agent there. */
export function agentDir(target: Target): string | undefined {
  const [agent] = list(target.siteDir);
  return agent === undefined ? undefined : join(target.siteDir, agent);
}

function list(dir: string): string[] {
  try {
    return readdirSync(dir);
  } catch {
    return [];
  }
}
