import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SITE_CRASH_POINTS } from '../../src/jobmanager/crash-points.ts';
import { TestAgent, until } from '../agent/agent.ts';
import { killMatching } from '../agent/kill.ts';
import { skipWithoutCondor } from '../sites/condor.ts';
import { skipWithoutSge } from '../sites/sge.ts';
import { skipWithoutSlurm } from '../sites/slurm.ts';
import { skipWithoutTorque } from '../sites/slurm-torque.ts';
import { SLOW, some } from '../slow.ts';
import { HERE } from './points.ts';
import { agentDir, attemptsAt, type Kind, startTarget, type Target } from './sites.ts';

const JOBS = 3;
/** A slow run covers all points everywhere; an ordinary one every n-th, and none at three kinds of site. */
const EVERY: Readonly<Record<Kind, number>> = {
  pool: 8,
  'fork, local': 8,
  'fork, ssh': 5,
  'slurm, ssh': 7,
  'sge, ssh': 24,
  'pbs, ssh': 1,
  'torque, ssh': 1,
  'condor, ssh': 1,
};
const KINDS = Object.keys(EVERY) as Kind[];
/** The pool has no JobManager; crashes of its own processes are covered in test/pool. */
const WITHOUT_JOBMANAGER: readonly Kind[] = ['pool'];
/** It is not sent COMMIT either: it takes a job in one exchange. */
const OF_THE_POOL = /^gm\.(?!.*-commit$)/;
/** Where the end of a job that leaves no files is recorded, which takes another path. */
const WITHOUT_FILES = ['gm.after-poll', 'gm.saved-poll', 'gm.before-forget', 'gm.after-forget', 'gm.saved-forget'];
const SKIP: Readonly<Partial<Record<Kind, () => boolean>>> = {
  'slurm, ssh': skipWithoutSlurm,
  'sge, ssh': skipWithoutSge,
  'pbs, ssh': () => !SLOW,
  'torque, ssh': () => !SLOW || skipWithoutTorque(),
  'condor, ssh': () => !SLOW || skipWithoutCondor(),
};

describe.each(KINDS)('every job once, whatever crashes: %s', (kind) => {
  const skip = SKIP[kind]?.() === true;
  const pointsOf = <T>(points: readonly T[]): readonly T[] => some(points, EVERY[kind]);
  const withoutJobManager = WITHOUT_JOBMANAGER.includes(kind);
  const jobManager = withoutJobManager ? [] : SITE_CRASH_POINTS;
  const here = Object.entries(HERE).filter(([point]) => !withoutJobManager || OF_THE_POOL.test(point));
  let agent: TestAgent;
  let target: Target;
  let crashFile: string;

  beforeAll(async () => {
    if (skip) return;
    agent = new TestAgent();
    crashFile = join(agent.dir, 'crash-point');
    agent.env['GRYPHUS_CRASH_FILE'] = crashFile;
    agent.config('[pool]\ncpus = 8\n[gridmanager]\nrestart_max = "100ms"\nretry_max = "1s"\n');
    target = await startTarget(kind, agent);
    await agent.ok('up');
    // The first job installs the JobManager there: its directory is then where crash points are set.
    const { cluster, ledger } = await submit('0');
    await finish(cluster, ledger);
  }, 120_000);
  afterAll(async () => {
    if (skip) return;
    await agent.end();
    await target.stop();
  });

  /** Jobs that write a line to a ledger when they start, their argument to stdout, and a file. */
  async function submit(seconds: string): Promise<{ cluster: number; ledger: string }> {
    const ledger = join(agent.work, `ledger-${Math.random().toString(36).slice(2)}`);
    agent.file(
      'job.sh',
      `#!/bin/sh\necho "$1" >> "$2"\necho "out $1"\nsleep ${seconds}\necho "file $1" > "r$1"\n`,
      0o755,
    );
    const cluster = await agent.submit(
      [
        ...(target.resource === undefined ? [] : ['universe = grid', `grid_resource = ${target.resource}`]),
        'executable = job.sh',
        `arguments = $(Process) ${ledger}`,
        'output = o$(Process)',
        'transfer_output_files = r$(Process)',
        'log = job.log',
        `queue ${JOBS}`,
      ].join('\n'),
    );
    return { cluster, ledger };
  }

  /** The same without anything to bring home. */
  async function submitPlain(): Promise<{ cluster: number; ledger: string }> {
    const ledger = join(agent.work, `ledger-${Math.random().toString(36).slice(2)}`);
    agent.file('plain.sh', '#!/bin/sh\necho "$1" >> "$2"\n', 0o755);
    const to = target.resource === undefined ? [] : ['universe = grid', `grid_resource = ${target.resource}`];
    const lines = ['executable = plain.sh', `arguments = $(Process) ${ledger}`, 'log = job.log'];
    return { cluster: await agent.submit([...to, ...lines, `queue ${JOBS}`].join('\n')), ledger };
  }

  /** A JobManager reads at its start where it is to die: the current one dies now, and another is started. */
  function armJobManager(point: string): string {
    const file = join(agentDir(target) ?? '', 'crash-point');
    writeFileSync(file, point);
    killMatching('jobmanager.sh', agent, target.sshd?.home);
    return file;
  }

  async function finish(cluster: number, ledger: string): Promise<void> {
    await agent.ok('wait', '--no-outcome', '--timeout', '90', String(cluster));
    expect(lines(ledger).sort()).toEqual(['0', '1', '2']);
    for (let proc = 0; proc < JOBS; proc++) {
      expect(agent.read(`o${proc}`)).toBe(`out ${proc}\n`);
      expect(agent.read(`r${proc}`)).toBe(`file ${proc}\n`);
      rmSync(join(agent.work, `o${proc}`));
      rmSync(join(agent.work, `r${proc}`));
    }
    await nothingIsLeft();
  }

  /** The pool's central manager forgets immediately, and a worker deletes a moment later. */
  async function nothingIsLeft(): Promise<void> {
    if (kind === 'pool') await until('the worker to forget', () => attemptsAt(target).length === 0 || undefined);
    expect(attemptsAt(target)).toEqual([]);
  }

  it.skipIf(skip).each(pointsOf(here.filter(([, how]) => how === 'run')))(
    'the GridManager dies at %s',
    async (point) => {
      writeFileSync(crashFile, point);
      const { cluster, ledger } = await submit('0.2');
      await until(`a crash at ${point}`, () => !existsSync(crashFile) || undefined);
      await finish(cluster, ledger);
    },
    120_000,
  );

  it.skipIf(skip || !withoutJobManager).each(WITHOUT_FILES)(
    'the GridManager dies at %s of jobs that leave no files',
    async (point) => {
      writeFileSync(crashFile, point);
      const { cluster, ledger } = await submitPlain();
      await until(`a crash at ${point}`, () => !existsSync(crashFile) || undefined);
      await agent.ok('wait', '--no-outcome', '--timeout', '90', String(cluster));
      expect(lines(ledger).sort()).toEqual(['0', '1', '2']);
      for (const ad of await agent.ads(cluster)) expect(ad).toMatchObject({ JobStatus: 4, ExitCode: 0 });
      await nothingIsLeft();
    },
    120_000,
  );

  it.skipIf(skip).each(pointsOf(here.filter(([, how]) => how === 'remove')))(
    'the GridManager dies at %s while jobs are removed',
    async (point) => {
      const { cluster, ledger } = await submit('600');
      await until('the jobs to run', () => lines(ledger).length === JOBS || undefined);
      expect(attemptsAt(target)).toHaveLength(JOBS);
      writeFileSync(crashFile, point);
      await agent.ok('rm', String(cluster));
      await until(`a crash at ${point}`, () => !existsSync(crashFile) || undefined);
      await agent.ok('wait', '--no-outcome', '--timeout', '90', String(cluster));
      await nothingIsLeft();
      expect((await agent.ads(cluster)).map((ad) => ad['JobStatus'])).toEqual([3, 3, 3]);
    },
    120_000,
  );

  it
    .skipIf(skip)
    .each(pointsOf(jobManager.filter((point) => !point.startsWith('jm.cancel') && !point.startsWith('jm.leave'))))(
    'the JobManager dies at %s',
    async (point) => {
      const file = armJobManager(point);
      const { cluster, ledger } = await submit('0.2');
      await until(`a crash at ${point}`, () => !existsSync(file) || undefined);
      await finish(cluster, ledger);
    },
    120_000,
  );

  it.skipIf(skip).each(pointsOf(jobManager.filter((point) => point.startsWith('jm.cancel'))))(
    'the JobManager dies at %s',
    async (point) => {
      const { cluster, ledger } = await submit('600');
      await until('the jobs to run', () => lines(ledger).length === JOBS || undefined);
      const file = armJobManager(point);
      await agent.ok('rm', String(cluster));
      await until(`a crash at ${point}`, () => !existsSync(file) || undefined);
      await agent.ok('wait', '--no-outcome', '--timeout', '90', String(cluster));
      expect(attemptsAt(target)).toEqual([]);
    },
    120_000,
  );
});

function lines(file: string): string[] {
  return existsSync(file) ? readFileSync(file, 'utf8').split('\n').filter(Boolean) : [];
}
