import { expect, it } from 'vitest';
import { picker } from '../../src/client/select.ts';
import { SlurmJob } from '../../src/commands/compat/slurm-job.ts';
import { columnsOf, linesOf, longColumnsOf } from '../../src/commands/compat/squeue-fields.ts';
import { Attrs } from '../../src/job/attrs.ts';

it('jobs for which all that was asked for is the same get one ad, others their own', () => {
  const cluster = new Attrs({ Owner: '"me"', Cmd: '"/bin/true"' });
  const pick = picker(['Owner', 'JobStatus']);
  const [one, alike, runs, without] = [
    { JobStatus: '1', ProcId: '0' },
    { JobStatus: '1', ProcId: '1' },
    { JobStatus: '2', ProcId: '2' },
    { JobStatus: '1', Owner: null },
  ].map((own) => pick(new Attrs(own, cluster)));
  expect(one).toEqual({ Owner: '"me"', JobStatus: '1' });
  expect(alike).toBe(one);
  expect(runs).toEqual({ Owner: '"me"', JobStatus: '2' });
  expect(without).toEqual({ JobStatus: '1' });
});

it('lines of jobs with one ad differ in their ids', () => {
  const ad = { JobStatus: '1', Owner: '"me"' };
  const first = new SlurmJob({ cluster: 7, proc: 1 }, ad);
  const jobs = [first, new SlurmJob({ cluster: 7, proc: 2 }, ad, undefined, undefined, first)];
  expect(linesOf(columnsOf('%i %A %F %K %u %t'), jobs, 0)).toEqual([
    '7_1 70000001 7 1 me PD',
    '7_2 70000002 7 2 me PD',
  ]);
  expect(linesOf(longColumnsOf('jobid:9,arraytaskid:2,state:7'), jobs, 0)).toEqual([
    '70000001 1 PENDING',
    '70000002 2 PENDING',
  ]);
});
