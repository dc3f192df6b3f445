import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { JobManagerOptions } from '../../src/jobmanager/client.ts';
import { shellQuote } from '../../src/util/shell-quote.ts';
import { type FakeBatch, startFake } from '../sites/fake-batch.ts';
import { type Sge, startSge } from '../sites/sge.ts';
import type { Slurm } from '../sites/slurm.ts';
import { startTorque } from '../sites/slurm-torque.ts';
import { startSshd } from '../sites/sshd.ts';
import { ground, reach } from './grounds.ts';
import type { Ground } from './kit.ts';

export interface BatchGround<B> extends Ground {
  readonly batch: B;
  /** Stands before all other commands in PATH at the site. */
  readonly bin: string;
}

/** A batch system, with what its commands need in their environment. */
interface Batch {
  readonly env: Readonly<Record<string, string>>;
  stop(): Promise<void>;
}

/** A batch system of the test's own behind a private sshd. */
export async function sshBatch<B extends Batch>(
  backend: string,
  start: () => Promise<B>,
  base: JobManagerOptions = {},
): Promise<BatchGround<B>> {
  const batch = await start();
  const sshd = await startSshd();
  const bin = join(sshd.home, 'bin');
  mkdirSync(bin);
  const way = {
    transport: () => reach(sshd),
    async stop() {
      await batch.stop();
      await sshd.stop();
    },
  };
  const { PATH = '', ...env } = batch.env;
  const words = Object.entries(env).map(([name, value]) => `${name}=${shellQuote(value)}`);
  const prelude = `export ${words.join(' ')} PATH=${shellQuote(`${bin}:${PATH}`)}:$PATH`;
  const made = await ground(`${backend}(ssh)`, backend, sshd.home, way, 30_000, { prelude, ...base });
  return { ...made, batch, bin };
}

export const sshSge = (): Promise<BatchGround<Sge>> => sshBatch('sge', () => startSge({ slots: 16 }));
export const sshPbs = (): Promise<BatchGround<FakeBatch>> =>
  sshBatch('pbs', () => startFake('pbs.sh', ['qsub', 'qstat', 'qdel']));

export const sshTorque = (): Promise<BatchGround<Slurm>> => sshBatch('torque', startTorque);

export const sshCondor = (): Promise<BatchGround<FakeBatch>> =>
  sshBatch('condor', () =>
    startFake('condor.sh', ['condor_submit', 'condor_q', 'condor_rm', 'condor_history', 'condor_version']),
  );

export const sshLsf = (): Promise<BatchGround<FakeBatch>> =>
  sshBatch('lsf', () => startFake('lsf.sh', ['bsub', 'bjobs', 'bkill', 'bacct']));
