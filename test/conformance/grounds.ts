import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { type JobManagerOptions, openJobManagerSite } from '../../src/jobmanager/client.ts';
import type { Transport } from '../../src/transport/contract.ts';
import { LocalTransport } from '../../src/transport/local.ts';
import { openTransport } from '../../src/transport/open-transport.ts';
import { type Slurm, startSlurm } from '../sites/slurm.ts';
import { type Sshd, startSshd } from '../sites/sshd.ts';
import { AGENT, type Ground, remove, scratchDir } from './kit.ts';

export interface Way {
  readonly transport: () => Promise<Transport>;
  readonly stop: () => Promise<void>;
}

export async function ground(
  name: string,
  backend: string,
  home: string,
  way: Way,
  patience: number,
  base: JobManagerOptions,
  openSite = openJobManagerSite,
): Promise<Ground> {
  const transport = await way.transport();
  const scratch = scratchDir();
  const open: { close(): Promise<void> }[] = [];
  const closeSites = async (): Promise<void> => {
    for (const site of open.splice(0)) await site.close();
  };
  return {
    name,
    scratch,
    root: join(home, '.gryphus', AGENT),
    patience,
    async open(options = {}) {
      const site = openSite({ name, agentId: AGENT, transport, backend, options: { ...base, ...options } });
      open.push(site);
      return site;
    },
    closeSites,
    async close() {
      await closeSites();
      await transport.close();
      await way.stop();
      remove(scratch);
    },
  };
}

/** Plain processes on this machine. */
export async function localFork(base: JobManagerOptions = {}): Promise<Ground> {
  const home = scratchDir();
  const way = { transport: async () => new LocalTransport(home), stop: async () => remove(home) };
  return await ground('fork(local)', 'fork', home, way, 10_000, { scratch: join(home, '.gryphus'), slots: 4, ...base });
}

/** Plain processes behind a private sshd. */
export async function sshFork(base: JobManagerOptions = {}): Promise<Ground & { readonly sshd: Sshd }> {
  const sshd = await startSshd();
  const way = { transport: () => reach(sshd), stop: () => sshd.stop() };
  return { ...(await ground('fork(ssh)', 'fork', sshd.home, way, 15_000, { slots: 4, ...base })), sshd };
}

/** A private Slurm behind a private sshd. `bin`: a directory of commands placed before Slurm's own. */
export async function sshSlurm(
  base: JobManagerOptions = {},
  machines: { readonly nodes: number; readonly cpus: number } = { nodes: 2, cpus: 4 },
): Promise<Ground & { readonly slurm: Slurm; readonly sshd: Sshd; readonly bin: string }> {
  const slurm = await startSlurm(machines);
  const sshd = await startSshd();
  const bin = join(sshd.home, 'bin');
  mkdirSync(bin);
  const way = {
    transport: () => reach(sshd),
    async stop() {
      await sshd.stop();
      await slurm.stop();
    },
  };
  const prelude = `export SLURM_CONF=${slurm.env['SLURM_CONF'] ?? ''} PATH=${bin}:$PATH`;
  const made = await ground('slurm(ssh)', 'slurm', sshd.home, way, 30_000, { prelude, ...base });
  return { ...made, slurm, sshd, bin };
}

export async function reach(sshd: Sshd): Promise<Transport> {
  return await openTransport(sshd.url, { identityFiles: [sshd.keyFile], sshConfigFile: sshd.sshConfigFile });
}
