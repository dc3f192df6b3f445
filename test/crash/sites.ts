import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { TestAgent } from '../agent/agent.ts';
import { startCondor } from '../sites/condor.ts';
import { startFake } from '../sites/fake-batch.ts';
import { letIn, type User } from '../sites/ordinary-user.ts';
import { startSge } from '../sites/sge.ts';
import { type Slurm, startSlurm } from '../sites/slurm.ts';
import { startTorque } from '../sites/slurm-torque.ts';
import { shellQuote } from '../../src/util/shell-quote.ts';
import { type Sshd, startSshd } from '../sites/sshd.ts';

/** A kind of site for a whole agent. */
export interface Target {
  /** The grid_resource of a submit file for this site; none for the pool, where plain jobs go. */
  readonly resource: string | undefined;
  /** Our directory at the site, above the agents'. */
  readonly siteDir: string;
  readonly sshd?: Sshd;
  readonly slurm?: Slurm;
  stop(): Promise<void>;
}

export type Kind =
  | 'pool'
  | 'fork, local'
  | 'fork, ssh'
  | 'slurm, ssh'
  | 'sge, ssh'
  | 'torque, ssh'
  | 'pbs, ssh'
  | 'condor, ssh';

/** More jobs at once than this machine may have cores. */
const SLOTS = '[limits]\nrunning = 8\n';

/** Starts what this kind needs and configures it in the agent. */
export async function startTarget(kind: Kind, agent: TestAgent): Promise<Target> {
  if (kind === 'pool') {
    const siteDir = join(agent.home, 'state/pool');
    return { resource: undefined, siteDir, stop: async () => undefined };
  }
  if (kind === 'fork, local') {
    const siteDir = join(agent.dir, 'home/.gryphus/local');
    agent.site('local', { url: 'local', batch: 'fork', more: SLOTS });
    return { resource: 'batch fork local', siteDir, stop: async () => undefined };
  }
  const name = kind.split(',')[0] ?? '';
  const batch: Batch | undefined = isBatch(name) ? await START[name]() : undefined;
  const sshd = await startSshd({ as: batch?.user });
  letIn(batch?.user, agent.dir, agent.work);
  agent.env['HOME'] = sshd.clientHome;
  const siteDir = join(sshd.home, '.gryphus', kind === 'fork, ssh' ? 'there' : 'cluster');
  if (batch === undefined) {
    agent.site('there', { url: sshd.url, batch: 'fork', more: SLOTS });
    return { resource: 'batch fork there', siteDir, sshd, stop: () => sshd.stop() };
  }
  const prelude = Object.entries(batch.env)
    .map(([variable, value]) => `export ${variable}=${shellQuote(value)}`)
    .join('; ');
  agent.site('cluster', {
    url: sshd.url,
    batch: name,
    prelude,
    more: '[limits]\npoll_min = "1s"\npoll_max = "3s"\n',
  });
  return {
    resource: `batch ${name} cluster`,
    siteDir,
    sshd,
    ...(isSlurm(batch) ? { slurm: batch } : {}),
    stop: async () => {
      await batch.stop();
      await sshd.stop();
    },
  };
}

function isSlurm(batch: Batch): batch is Slurm & Batch {
  return 'killCtld' in batch;
}
function isBatch(name: string): name is keyof typeof START {
  return name in START;
}

interface Batch {
  readonly env: Readonly<Record<string, string>>;
  /** Whose jobs it runs, if root runs the test and it accepts none from root. */
  readonly user?: User | undefined;
  stop(): Promise<void>;
}
const START = {
  slurm: () => startSlurm({ nodes: 2, cpus: 4 }),
  sge: () => startSge({ slots: 8 }),
  torque: startTorque,
  pbs: () => startFake('pbs.sh', ['qsub', 'qstat', 'qdel']),
  condor: () => startCondor(),
} as const satisfies Record<string, () => Promise<Batch>>;

/** The attempts of which a site still holds anything: empty once all were forgotten. */
export function attemptsAt(target: Target): string[] {
  return agentDirs(target).flatMap((dir) => list(join(dir, 'jobs')));
}

/** The directory of the only agent there. */
export function agentDir(target: Target): string | undefined {
  return agentDirs(target)[0];
}

/** An agent's jobs are in a directory of its own, those of a further identity in one below `+NAME`. */
function agentDirs({ siteDir }: Target): string[] {
  return list(siteDir).flatMap((name) =>
    name.startsWith('+') ? list(join(siteDir, name)).map((agent) => join(siteDir, name, agent)) : [join(siteDir, name)],
  );
}

function list(dir: string): string[] {
  try {
    return readdirSync(dir);
  } catch {
    return [];
  }
}
