import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { readFound } from '../../src/backends/found.ts';
import { remedyOf } from '../../src/backends/remedies.ts';
import { backendOf } from '../../src/backends/registry.ts';
import { spec } from '../conformance/kit.ts';
import { fixture, look, refusals, shellHalf } from './recorded.ts';

const dir = mkdtempSync(join(tmpdir(), 'gfound-'));
afterAll(() => rmSync(dir, { recursive: true, force: true }));

/** A PATH with only these commands, each a line of shell, and what LOOK itself needs. */
function path(commands: Readonly<Record<string, string>>): string {
  const bin = mkdtempSync(join(dir, 'bin'));
  for (const [name, line] of Object.entries(commands)) {
    writeFileSync(join(bin, name), `#!/bin/sh\n${line}\n`);
    chmodSync(join(bin, name), 0o755);
  }
  const tools = join(dir, 'tools');
  mkdirSync(tools, { recursive: true });
  for (const tool of ['head', 'timeout', 'sh', 'cat']) {
    writeFileSync(join(tools, tool), `#!/bin/sh\nexec /usr/bin/${tool} "$@"\n`);
    chmodSync(join(tools, tool), 0o755);
  }
  return `${bin}:${tools}`;
}
const found = (commands: Readonly<Record<string, string>>) =>
  look({ PATH: path(commands) })?.map(({ batch, answers }) => (answers ? batch : `${batch}?`));

describe('the batch system of a machine', () => {
  const pbs = { qsub: 'echo pbs_version = 23.06.06', qstat: 'exit 0' };
  const torque = { qsub: 'echo "Version: 6.1.2"; echo "Commit: abc"', qstat: 'exit 0' };
  const sge = { qsub: 'echo "Unknown option --version" >&2; exit 2', qstat: 'echo GE 8.1.9', qconf: 'exit 0' };
  const slurm = { sbatch: 'echo slurm 22.05.8', squeue: 'exit 0' };

  it.each([
    ['nothing', {}, []],
    ['OpenPBS', pbs, ['pbs']],
    ['Torque', torque, ['torque']],
    ['Grid Engine', sge, ['sge']],
    ['a qsub that says nothing of itself', { qsub: 'exit 2', qstat: 'exit 0' }, ['torque']],
    ["Slurm with Torque's commands", { ...slurm, qsub: 'exit 2', qstat: 'exit 2' }, ['slurm']],
    ['commands of a Slurm that is gone, and a PBS', { ...pbs, sbatch: 'exit 1', squeue: 'exit 1' }, ['pbs', 'slurm?']],
    ['LSF', { bsub: 'echo IBM Spectrum LSF 10.1 >&2', bqueues: 'exit 0' }, ['lsf']],
    ['HTCondor', { condor_submit: '', condor_version: 'echo v', condor_q: 'exit 0' }, ['condor']],
  ])('is seen by its commands: %s', (_, commands, expected) => {
    expect(found(commands)).toEqual(expected);
  });

  it('is not guessed from half an answer', () => {
    expect(readFound('welcome\ngryphus-found\nfound slurm 0 slurm 22\n')).toBeUndefined();
    expect(readFound('welcome\ngryphus-found\ngryphus-end\nbye\n')).toEqual([]);
  });
});

describe('cores', () => {
  const cores = (backend: string, answers: Readonly<Record<string, string>>) =>
    backendOf(backend)?.capacityOf?.(shellHalf(backend, answers, 'backend_capacity')[0] ?? '');

  it('of PBS are those of hosts that take jobs', () => {
    const pbsnodes = fixture('pbs/pbsnodes-a.txt');
    expect(cores('pbs', { pbsnodes })).toEqual({ cpus: 8, freeCpus: 8 });
    const busy = pbsnodes.replace('assigned.ncpus = 0', 'assigned.ncpus = 3');
    const down = pbsnodes.replace('state = free', 'state = down,offline');
    expect(cores('pbs', { pbsnodes: `${busy}\n${down}` })).toEqual({ cpus: 8, freeCpus: 5 });
    expect(cores('pbs', { pbsnodes: '' })).toBeUndefined();
  });

  it('of the others, as their manuals show them', () => {
    const torque =
      'n1\n     state = job-exclusive\n     np = 4\n     jobs = 0/1.srv, 1/1.srv, 2/2.srv\n\nn2\n     state = down\n     np = 9\n';
    expect(cores('torque', { pbsnodes: torque })).toEqual({ cpus: 4, freeCpus: 1 });
    const ranges = 'n1\n     state = free\n     np = 8\n     jobs = 0-2,5/1.srv, 3/2[1].srv\n';
    expect(cores('torque', { pbsnodes: ranges })).toEqual({ cpus: 8, freeCpus: 3 });
    const bhosts =
      'HOST_NAME          STATUS          JL/U    MAX  NJOBS    RUN  SSUSP  USUSP    RSV\nhosta ok - 8 2 2 0 0 0\nhostb closed_Full - 4 4 4 0 0 0\nhostc unavail - 4 0 0 0 0 0\n';
    expect(cores('lsf', { bhosts })).toEqual({ cpus: 12, freeCpus: 6 });
    expect(cores('condor', { condor_status: '6 Unclaimed\n2 Claimed\n' })).toEqual({ cpus: 8, freeCpus: 6 });
    expect(cores('condor', { condor_status: '' })).toBeUndefined();
  });
});

describe('a named queue of Slurm', () => {
  const look = (sinfo: string) => shellHalf('slurm', { sinfo }, 'backend_has main 2>&1 | sed "s/^/said /"')[0];

  it('takes jobs, or is told of with what is wrong', () => {
    expect(look('main* is up, time limit 1:00\n')).toBe('said main* is up, time limit 1:00');
    expect(look('main* is down, time limit 1:00\n')).toBe('said main* is down, time limit 1:00');
    expect(look('')).toBe('said there is no partition main');
    expect(shellHalf('slurm', { sinfo: 'main* is drain, time limit 1:00\n' }, 'backend_has main 2>/dev/null')).toEqual([
      '',
    ]);
  });
});

describe('a refusal', () => {
  it.each([
    ...refusals('pbs/qsub-refusals.tsv'),
    ...refusals('sge/qsub-refusals.tsv'),
    ...refusals('torque/qsub-refusals.tsv'),
    ...refusals('lsf/bsub-refusals.tsv'),
  ])('with status %i and the words %s says what to do, where a user can', (_, message) => {
    expect(remedyOf(message)?.split(':')[0] ?? 'nothing').toMatchSnapshot();
  });

  it.each([
    ['Batch job submission failed: Invalid partition name specified', /batch_queue/],
    ['Batch job submission failed: Invalid account or account/partition combination specified', /batch_project/],
    ['Requested node configuration is not available', /request_cpus/],
    ['PENDING (PartitionTimeLimit)', /batch_runtime/],
    ['PENDING (ReqNodeNotAvail, Reserved for maintenance)', /batch_runtime/],
    ["Job's account not permitted to use this partition (small allows other not lab)", /batch_project/],
    ['QOSMaxWallDurationPerJobLimit', /batch_runtime/],
    [
      "QOSMaxCpuPerJobLimit; Batch job submission failed: Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)",
      /request_cpus/,
    ],
    ['Batch job submission failed: Required partition not available (inactive or drain)', /batch_queue/],
    ['Batch job submission failed: Invalid license specification', /batch_extra_submit_args/],
    ['Batch job submission failed: Requested reservation is invalid', /batch_extra_submit_args/],
    ['AssocGrpCPUMinutesLimit', /batch_project/],
    ['normal9: No such queue. Job not submitted.', /batch_queue/],
    ['Disk quota exceeded', /scratch/],
    ['Invalid generic resource (gres) specification', /request_gpus/],
    ['unknown resource "gpu"', /request_gpus/],
    ['unknown resource "exclusive"', /WholeNodes/],
    ['Batch job submission failed: Invalid qos specification', /--qos/],
    ['Setting job owner to "root" is not permitted', /ordinary user/],
    ['unknown resource "foo"', /batch_extra_submit_args/],
    ['Unknown resource: ngpus', /request_gpus/],
    ['HELD (Can Never Run: Insufficient amount of resource: ncpus (R: 64 A: 16 T: 16))', /request_cpus/],
  ])('%s: %s', (message, remedy) => {
    expect(remedyOf(message)).toMatch(remedy);
  });
  it('that passes by itself wants nothing', () => {
    const message = 'PENDING (Not Running: Insufficient amount of resource: ncpus (R: 16 A: 14 T: 16))';
    expect(remedyOf(message)).toBeUndefined();
  });
});

describe('a whole host', () => {
  it.each([
    ['slurm', '--exclusive'],
    ['pbs', 'place=excl'],
    ['torque', 'x=NACCESSPOLICY:SINGLEJOB'],
    ['sge', 'exclusive=true'],
    ['lsf', '-x'],
    ['condor', 'request_cpus = TARGET.TotalCpus'],
  ])('is asked for in the words of %s', (name, word) => {
    const job = spec('a.1.0.1');
    const words = (wholeHost: boolean) =>
      backendOf(name)?.submitWords({ ...job, resources: { ...job.resources, wholeHost } });
    expect(words(true)).toContain(word);
    expect(words(false)).not.toContain(word);
  });
});
