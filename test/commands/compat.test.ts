import { describe, expect, it } from 'vitest';
import { splitOptions } from '../../src/index.ts';
import { getopt, Refused } from '../../src/commands/compat/options.ts';
import { SlurmJob } from '../../src/commands/compat/slurm-job.ts';
import { duration, namedJobs } from '../../src/commands/compat/slurm-jobs.ts';

describe('options in the manner of getopt_long', () => {
  const spec = '-h|--noheader -o|--format= -j|--jobs= --name=?';
  it('are read joined, shortened, and with values attached or apart', () => {
    const { values, words } = getopt(spec, ['-ho', '%i', '--jo=1,2', 'x', '--name', '--', '-j']);
    expect([...values]).toEqual([
      ['noheader', ''],
      ['format', '%i'],
      ['jobs', '1,2'],
      ['name', ''],
    ]);
    expect(words).toEqual(['x', '-j']);
  });
  it.each([
    [['--nosuch'], "unrecognized option '--nosuch'"],
    [['-x'], "invalid option -- 'x'"],
    [['--n'], "option '--n' is ambiguous; possibilities: '--noheader' '--name'"],
    [['--noheader=1'], "option '--noheader' doesn't allow an argument"],
    [['-j'], "option requires an argument -- 'j'"],
  ])('that are wrong are refused: %j', (words, message) => {
    expect(() => getopt(spec, words)).toThrow(new Refused(message, 1, 'option'));
  });
});

it("a submit command's options are separated from the script and its arguments", () => {
  const own = new Map<string, 'needed' | undefined>([
    ['--parsable', undefined],
    ['--wrap', 'needed'],
  ]);
  const { options, rest } = splitOptions('slurm', ['--pars', '-n4', '-J', 'a b', '--mem=1G', 'job.sh', '-n', '5'], own);
  expect(options.map(({ name, value }) => `${name} ${value}`)).toEqual(['--parsable ', '-n 4', '-J a b', '--mem 1G']);
  expect(rest).toEqual(['job.sh', '-n', '5']);
});

describe("a job in Slurm's terms", () => {
  const of = (ad: Record<string, string>) => new SlurmJob({ cluster: 12, proc: 0 }, ad);
  it.each([
    [{ JobStatus: '1' }, 'PENDING', 'Priority'],
    [{ JobStatus: '5', HoldReasonCode: '1' }, 'PENDING', 'JobHeldUser'],
    [{ JobStatus: '5', HoldReasonCode: '15', GryphusDependency: '"afterok:1"' }, 'PENDING', 'Dependency'],
    [{ JobStatus: '5', HoldReasonCode: '46' }, 'TIMEOUT', 'None'],
    [{ JobStatus: '5', HoldReasonCode: '34' }, 'OUT_OF_MEMORY', 'None'],
    [{ JobStatus: '5', HoldReasonCode: '13' }, 'FAILED', 'None'],
    [{ JobStatus: '4', ExitCode: '0' }, 'COMPLETED', 'None'],
    [{ JobStatus: '4', ExitCode: '3' }, 'FAILED', 'None'],
    [{ JobStatus: '3' }, 'CANCELLED', 'None'],
  ])('%j is %s (%s)', (ad, state, reason) => {
    expect(of(ad)).toMatchObject({ state, reason, id: '12', raw: 12 });
  });
  it('of an array has a number of its own, by which it is found', () => {
    const job = new SlurmJob({ cluster: 12, proc: 2 }, { JobStatus: '2', GryphusArrayTask: '7' });
    expect([job.id, job.raw]).toEqual(['12_7', 120_000_007]);
    const named = namedJobs('120000007,13_[2-4,9%2],14.batch').map(({ cluster, tasks }) => [
      cluster,
      [...(tasks ?? [])],
    ]);
    expect(named).toEqual([
      [12, [7]],
      [13, [2, 3, 4, 9]],
      [14, []],
    ]);
  });
  it('has times as squeue and sacct print them', () => {
    expect([5, 65, 3600, 90_000].map((one) => duration(one))).toEqual(['0:05', '1:05', '1:00:00', '1-01:00:00']);
    expect(duration(5, true)).toBe('00:00:05');
  });
});
