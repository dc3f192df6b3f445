import { readFileSync } from 'node:fs';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { condor } from '../../src/backends/condor.ts';
import { lsf } from '../../src/backends/lsf.ts';
import { pbs } from '../../src/backends/pbs.ts';
import { sge } from '../../src/backends/sge.ts';
import { slurm } from '../../src/backends/slurm.ts';
import { slurmRefusal } from '../../src/backends/slurm-refusals.ts';
import { slurmEntry, slurmVerdict } from '../../src/backends/slurm-states.ts';
import { torque } from '../../src/backends/torque.ts';
import { spec } from '../conformance/kit.ts';

const recorded = (name: string): string[] =>
  readFileSync(new URL(`../fixtures/slurm/${name}`, import.meta.url), 'utf8')
    .trimEnd()
    .split('\n');

describe("squeue's states", () => {
  it('are all known in what a real Slurm printed', () => {
    const entries = recorded('squeue-states.txt').map((line) => {
      const [, state = '', reason = ''] = line.split('|');
      return [state, reason, slurmEntry(state, reason, 'n1')] as const;
    });
    expect(entries.filter(([, , entry]) => entry.is === 'unclear')).toEqual([]);
    const seen = new Map(entries.map(([state, reason, entry]) => [`${state} ${reason}`, entry]));
    expect(seen.get('PENDING JobHeldUser')).toEqual({ is: 'held', message: 'JobHeldUser' });
    expect(seen.get('PENDING Resources')).toEqual({ is: 'waiting', message: 'Resources' });
    expect(seen.get('PENDING DependencyNeverSatisfied')).toMatchObject({ is: 'held' });
    expect(seen.get('RUNNING None')).toEqual({ is: 'running', host: 'n1' });
    expect(seen.get('COMPLETED None')).toMatchObject({ is: 'ended', by: 'itself' });
    expect(seen.get('CANCELLED JobHeldUser')).toMatchObject({ is: 'ended', by: 'cancelled' });
  });

  it.each(recorded('squeue-reasons.txt').map((line) => line.split('|')))(
    '%s: %s, %s',
    (what, state = '', reason = '') => {
      const entry = slurmEntry(state, reason, 'n1');
      const is = entry.is === 'held' && entry.never ? 'never' : entry.is === 'ended' ? entry.by : entry.is;
      expect([is, JSON.stringify(entry)]).toEqual([what, expect.stringContaining(reason === 'None' ? state : reason)]);
    },
  );

  it.each([
    ['TIMEOUT', 'timeout'],
    ['NODE_FAIL', 'node-fail'],
    ['PREEMPTED', 'preempted'],
    ['OUT_OF_MEMORY', 'out-of-memory'],
    ['CANCELLED', 'cancelled'],
    ['BOOT_FAIL', 'boot-fail'],
    ['DEADLINE', 'deadline'],
  ])('%s is told apart', (state, by) => {
    expect(slurmEntry(state, 'X', '')).toEqual({ is: 'ended', by, message: `${state} (X)` });
  });

  it('never take an unknown state for an end', () => {
    const known = /^(COMPLETED|FAILED|TIMEOUT|NODE_FAIL|PREEMPTED|OUT_OF_MEMORY|CANCELLED|REVOKED|BOOT_FAIL|DEADLINE)$/;
    fc.assert(
      fc.property(fc.string(), fc.string(), (state, reason) => {
        const entry = slurm.queueEntry(`${state}||${reason}`);
        expect(entry.is === 'ended').toBe(known.test(state.split('|')[0] ?? ''));
      }),
    );
  });

  it('keep a reason with every character', () => {
    const rest = 'PENDING||ReqNodeNotAvail, UnavailableNodes:n[1-2] | x';
    expect(slurm.queueEntry(rest)).toEqual({ is: 'waiting', message: 'ReqNodeNotAvail, UnavailableNodes:n[1-2] | x' });
  });
});

describe("sacct's lines", () => {
  it('name the attempt by its directory', () => {
    const line =
      '12|CANCELLED by 1001|0:15|2026-11-20T23:45:41|2026-11-20T23:45:46|n2|/home/u|x/.gryphus/a/jobs/a.1.0.1';
    expect(slurm.accountOf?.(line)).toEqual({
      id: '12',
      by: 'cancelled',
      message: 'CANCELLED by 1001, exit 0:15',
      key: 'a.1.0.1',
    });
  });
  it.each(['', 'JobIDRaw|State', '12.batch|FAILED|3:0', '7|RUNNING|0:0|||n1|/x'])('are no verdict: %j', (line) => {
    expect(slurm.accountOf?.(line)).toBeUndefined();
  });
  it('are no verdict where the state is not an end', () => {
    expect(slurmVerdict('PENDING')).toBeUndefined();
    expect(slurmVerdict('OUT_OF_MEMORY')).toMatchObject({ by: 'out-of-memory' });
  });
});

describe('a failed sbatch', () => {
  it.each([
    [
      slurm,
      1,
      "sbatch: error: QOSMaxSubmitJobPerUserLimit\nsbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)",
    ],
    [sge, 25, 'Unable to run job: job rejected: Only 4 jobs are allowed per user (current job count: 4)\nExiting.'],
    [pbs, 38, 'qsub: Maximum number of jobs for user pbsu1 already in queue workq'],
    [lsf, 255, 'User <u>: Pending job threshold reached. Retrying in 60 seconds...'],
    [condor, 1, 'ERROR: Number of submitted jobs would exceed MAX_JOBS_PER_OWNER'],
  ])('means that the site is full where it counts jobs: %#', (backend, status, message) => {
    expect(backend.refusalOf(status, message)).toMatchObject({ kind: 'later', code: 'site-full' });
  });

  it.each([
    [sge, 1, "Unable to run job: can't write job spool file: Disk quota exceeded\nExiting."],
    [pbs, 1, 'qsub: could not create tmp file: Disk quota exceeded'],
    [torque, 1, 'qsub: submit error (cannot write the script file: Disk quota exceeded)'],
    [lsf, 255, 'night: Queue has been closed. Job not submitted.'],
    [lsf, 255, 'cannot write the job file: Disk quota exceeded. Job not submitted.'],
    [condor, 1, 'ERROR: Cannot write the submit digest: Disk quota exceeded'],
  ])('means that the job waits where the site itself is not well: %#', (backend, status, message) => {
    expect(backend.refusalOf(status, message)).toMatchObject({ kind: 'later', code: 'site-busy' });
  });

  it.each([
    ['sbatch: error: Batch job submission failed: Invalid partition name specified', 'never'],
    [
      'sbatch: error: Batch job submission failed: Requested time limit is invalid (missing or exceeds some limit)',
      'never',
    ],
    ['sbatch: error: Batch job submission failed: More processors requested than permitted', 'never'],
    ['sbatch: error: Invalid --mem specification', 'never'],
    [
      "sbatch: error: AssocMaxSubmitJobLimit\nsbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)",
      'later',
    ],
    [
      "sbatch: error: QOSMaxWallDurationPerJobLimit\nsbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)",
      'never',
    ],
    ['sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect failure)', 'later'],
    ['sbatch: error: Batch job submission failed: Protocol authentication error', 'later'],
    // About the site, whatever the job asks for; the texts are libslurm's of 22.05.
    ...[
      'I/O error writing script/environment to file',
      'Slurm backup controller in standby mode',
      'Controller is in standby mode, try a different controller',
      'Unable to create job record, try again',
      'Requested reservation not usable now',
      'Required node not available (down, drained or reserved)',
      'Requested nodes are busy',
      'Job can not start due to maintenance reservation.',
      'System submissions disabled',
      'Requested operation is presently disabled',
      'Error generating job credential',
      'Unable to connect to database',
      'Incompatible versions of client and server code',
    ].map((text) => [`sbatch: error: Batch job submission failed: ${text}`, 'later']),
    ['sbatch: error: Batch job submission failed: Requested reservation is invalid', 'never'],
    ['sbatch: error: Batch job submission failed: Requested partition configuration not available now', 'never'],
  ])('is understood: %s', (message, kind) => {
    expect(slurmRefusal(1, message)).toMatchObject({ kind });
  });

  it('may have submitted where it says nothing of an answer', () => {
    expect(slurmRefusal(1, 'sbatch: error: Batch job submission failed: Socket timed out on send/recv operation')).toBe(
      'unclear',
    );
    expect(slurmRefusal(137, '')).toBe('unclear');
    for (const text of [
      'Unable to contact slurm controller (send failure)',
      'Unable to contact slurm controller (receive failure)',
      'Unable to contact slurm controller (shutdown failure)',
      'Message receive failure',
      'Message send failure',
      'Received zero length message',
      'Insane message length',
      'Communication shutdown failure',
    ])
      expect(slurmRefusal(1, `sbatch: error: Batch job submission failed: ${text}`)).toBe('unclear');
    fc.assert(
      fc.property(fc.stringMatching(/^[a-z ]{0,30}$/), (message) => {
        fc.pre(!/invalid|requires/.test(message));
        expect(slurmRefusal(1, message)).toBe('unclear');
      }),
    );
  });

  it('says the limit as well as the sentence', () => {
    const message =
      'sbatch: error: AssocMaxSubmitJobLimit\nsbatch: error: Batch job submission failed: Job violates accounting/QOS policy';
    expect(slurmRefusal(1, message)).toMatchObject({
      message: 'AssocMaxSubmitJobLimit; Batch job submission failed: Job violates accounting/QOS policy',
    });
  });
});

describe('the words of sbatch', () => {
  it('ask for what the job asks for, in whole minutes and megabytes', () => {
    const job = spec('a.1.0.1', {
      title: 'pi',
      resources: { cpus: 2, memoryMb: 100.5, diskKb: 5, gpus: 1, walltimeSeconds: 61 },
      batch: { queue: 'long', project: 'p1', extraArgs: ['--nice=5'] },
    });
    expect(slurm.submitWords(job)).toEqual([
      '--job-name=pi',
      '--ntasks=1',
      '--cpus-per-task=2',
      '--mem=101M',
      '--gres=gpu:1',
      '--time=2',
      '--partition=long',
      '--account=p1',
      '--nice=5',
    ]);
  });

  it('are answered by an id', () => {
    expect([slurm.idOf('12'), slurm.idOf('12;cluster'), slurm.idOf('Welcome'), slurm.idOf('')]).toEqual([
      '12',
      '12',
      undefined,
      undefined,
    ]);
  });
});
