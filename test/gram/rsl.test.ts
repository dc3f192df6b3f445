import { describe, expect, it } from 'vitest';
import { gramAdapter } from '../../src/config/gram-adapter.ts';
import { jobRsl, rslQuote } from '../../src/gram/rsl.ts';

const NONE = { memoryMb: undefined, diskKb: undefined, gpus: undefined, walltimeSeconds: undefined };
/** The parts of the request that are not the same for every job. */
const asked = (service: string, resources: Partial<Parameters<typeof jobRsl>[0]['resources']>, batch = {}) => {
  const facts = { base: 'https://h:1/k/t', key: 'k', scriptBytes: 7, shared: new Map<string, string>() };
  const rsl = jobRsl({
    ...facts,
    resources: { cpus: 1, ...NONE, ...resources },
    batch: { extraArgs: [], ...batch },
    rslNames: gramAdapter(service).rslNames,
  });
  return /\(job_type="single"\)(.*)\(save_state="yes"\)\(two_phase=\d+\)(.*)$/.exec(rsl)?.slice(1).join(' ');
};

describe("GRAM's request for a job", () => {
  it('says what the job asks for by the names that the service knows', () => {
    const much = { cpus: 4, memoryMb: 2000, walltimeSeconds: 90 };
    expect(asked('jobmanager-pbs', much)).toBe('(count=4)(max_memory=2000)(max_wall_time=2) ');
    expect(asked('jobmanager-slurm', much)).toBe('(count=4)(host_count=1)(max_memory=2000)(max_wall_time=2) ');
    expect(asked('jobmanager-condor', much)).toBe('(xcount=4)(min_memory=2000)(max_wall_time=2) ');
    expect(asked('jobmanager-sge', much)).toBe('(max_memory=2000)(max_wall_time=2) ');
    expect(asked('jobmanager-slurm@jane', {})).toBe(' ');
  });

  it('asks for several machines, where it counts the cores of each or of all', () => {
    const nodes = { cpus: 8, nodes: { count: 4, ranks: 2 } };
    expect(asked('jobmanager-slurm', nodes)).toBe('(count=8)(host_count=4) ');
    expect(asked('jobmanager-pbs', nodes)).toBe('(count=32)(host_count=4) ');
    expect(asked('jobmanager-lsf', nodes)).toBe('(count=32)(host_count=4) ');
  });

  it('says queue and project, and what the job adds as it stands', () => {
    const batch = { queue: 'a "b', project: 'p', extraArgs: ['(environment=(A', '"x"))'] };
    expect(asked('jobmanager-lsf', {}, batch)).toBe('(queue="a ""b")(project="p") (environment=(A "x"))');
    expect(rslQuote('$(HOME)')).toBe('"$(HOME)"');
  });
});
