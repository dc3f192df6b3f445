import { join } from 'node:path';
import { startSlurm } from '../sites/slurm.ts';
import { startSshd } from '../sites/sshd.ts';
import { TestAgent } from './agent.ts';

/** An agent with two sites behind one sshd: `login` runs plain processes, `cluster` is a private Slurm. */
export interface LoginAndCluster {
  readonly agent: TestAgent;
  /** Where the commands of other systems are. */
  readonly bin: string;
  stop(): Promise<void>;
}

export async function startLoginAndCluster(nodes: number, cpus: number): Promise<LoginAndCluster> {
  const sshd = await startSshd();
  const slurm = await startSlurm({ nodes, cpus });
  const agent = new TestAgent({ HOME: sshd.clientHome, SSH_AUTH_SOCK: undefined });
  const more = `scratch = "${agent.dir}/there"\n[limits]\npoll_min = "1s"\n`;
  agent.site('login', { url: sshd.url, batch: 'fork', more });
  const prelude = `export SLURM_CONF='${slurm.env['SLURM_CONF'] ?? ''}'`;
  agent.site('cluster', { url: sshd.url, batch: 'slurm', prelude, more });
  const bin = join(agent.dir, 'bin');
  await agent.ok('compat', 'install', bin);
  return {
    agent,
    bin,
    stop: async () => {
      await agent.end();
      await slurm.stop();
      await sshd.stop();
    },
  };
}
