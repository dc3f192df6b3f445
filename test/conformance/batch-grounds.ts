import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { JobManagerOptions } from '../../src/jobmanager/client.ts';
import { shellQuote } from '../../src/util/shell-quote.ts';
import { CLI, TestAgent } from '../agent/agent.ts';
import { type FakeBatch, startFake } from '../sites/fake-batch.ts';
import { type Condor, type CondorOptions, startCondor } from '../sites/condor.ts';
import { type Sge, startSge } from '../sites/sge.ts';
import type { Slurm } from '../sites/slurm.ts';
import { startTorque } from '../sites/slurm-torque.ts';
import { letIn, type User } from '../sites/ordinary-user.ts';
import { startSshd } from '../sites/sshd.ts';
import { ground, reach } from './grounds.ts';
import type { Ground } from './kit.ts';

export interface BatchGround<B> extends Ground {
  readonly batch: B;
  /** First in PATH at the site. */
  readonly bin: string;
}

/** A batch system, with the environment that its commands need. */
interface Batch {
  readonly env: Readonly<Record<string, string>>;
  /** Whose jobs it runs, if not those of the user who runs the test. */
  readonly user?: User | undefined;
  stop(): Promise<void>;
}

/** A batch system private to the test, behind a private sshd. */
export async function sshBatch<B extends Batch>(
  backend: string,
  start: () => Promise<B>,
  base: JobManagerOptions = {},
): Promise<BatchGround<B>> {
  const batch = await start();
  const sshd = await startSshd({ as: batch.user });
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
  letIn(batch.user, made.scratch, made.scratch, bin);
  return { ...made, batch, bin };
}

export const sshSge = (): Promise<BatchGround<Sge>> => sshBatch('sge', () => startSge({ slots: 16 }));
export const sshPbs = (): Promise<BatchGround<FakeBatch>> =>
  sshBatch('pbs', () => startFake('pbs.sh', ['qsub', 'qstat', 'qdel']));

/** Another Gryphus, private to the test, whose jobs are plain processes; used through its built command line. */
async function startOther(): Promise<Batch> {
  const agent = new TestAgent();
  agent.site('local', { url: 'local', batch: 'fork', more: '[limits]\nrunning = 16\n' });
  const bin = join(agent.dir, 'bin');
  mkdirSync(bin);
  writeFileSync(join(bin, 'gryphus'), `#!/bin/sh\nexec ${shellQuote(process.execPath)} ${shellQuote(CLI)} "$@"\n`, {
    mode: 0o755,
  });
  await agent.ok('up');
  const PATH = `${bin}:${process.env['PATH'] ?? ''}`;
  return { env: { GRYPHUS_HOME: agent.home, PATH }, stop: () => agent.end() };
}
export const sshGryphus = (): Promise<BatchGround<Batch>> => sshBatch('gryphus', startOther);

/** Slurm's commands in Torque's style. */
export const sshTorque = (): Promise<BatchGround<Slurm>> => sshBatch('torque', startTorque);
export const sshTorqueItself = (): Promise<BatchGround<FakeBatch>> =>
  sshBatch('torque', () => startFake('torque.sh', ['qsub', 'qstat', 'qdel']));

export const sshCondor = (): Promise<BatchGround<FakeBatch>> =>
  sshBatch('condor', () =>
    startFake('condor.sh', ['condor_submit', 'condor_q', 'condor_rm', 'condor_history', 'condor_version']),
  );

/** The real one. */
export const sshHtcondor = (options: CondorOptions = {}): Promise<BatchGround<Condor>> =>
  sshBatch('condor', () => startCondor({ slots: 16, config: MEMORY_KEPT, ...options }));
const MEMORY_KEPT = [
  'use POLICY : HOLD_IF_MEMORY_EXCEEDED',
  'STARTER_UPDATE_INTERVAL = 1',
  'MAX_HISTORY_LOG = 12000',
  'MAX_HISTORY_ROTATIONS = 20',
];

export const sshLsf = (): Promise<BatchGround<FakeBatch>> =>
  sshBatch('lsf', () => startFake('lsf.sh', ['bsub', 'bjobs', 'bkill', 'bacct']));
