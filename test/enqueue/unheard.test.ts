import { describe, expect, it } from 'vitest';
import { gramSite, LOCAL_SITE } from '../../src/config/sites.ts';
import { Unheard } from '../../src/enqueue/unheard.ts';

const site = (service: string) => gramSite(`gt2:ce.example.org:2119:${service}`) ?? LOCAL_SITE;
const shared = { RequestCpus: '4', RequestMemory: '2000', BatchRuntime: '3600', BatchQueue: '"long"' };
const said = (service: string, ...jobs: Record<string, string>[]) => {
  const unheard = new Unheard();
  for (const own of jobs.length === 0 ? [{}] : jobs) unheard.look(site(service), own, shared);
  return unheard.warnings.map(({ message }) => message);
};

describe('what a GRAM service passes over', () => {
  it('is said, by what its adapter is', () => {
    const all = 'request_cpus, request_memory, batch_runtime, batch_queue';
    expect(said('jobmanager-fork')).toEqual([
      `The GRAM service jobmanager-fork of ce.example.org passes over ${all}: what the site sets by itself holds.`,
    ]);
    expect(said('jobmanager-slurm')).toEqual([expect.stringContaining('passes over batch_runtime: ')]);
    expect(said('jobmanager-sge')).toEqual([expect.stringContaining('passes over request_cpus: ')]);
    expect(said('jobmanager-condor')).toEqual([expect.stringContaining('passes over batch_queue: ')]);
    expect([said('jobmanager-pbs'), said('jobmanager-lsf'), said('jobmanager')]).toEqual([[], [], []]);
  });

  it('is said once for many jobs, with what each of them asks for', () => {
    const words = said('jobmanager-slurm', {}, { RequestGPUs: '1' }, {}, { RequestGPUs: '2' });
    expect(words).toEqual([expect.stringContaining('passes over batch_runtime, request_gpus: ')]);
  });

  it('is nothing where nothing is asked, and at other sites', () => {
    const unheard = new Unheard();
    unheard.look(site('jobmanager-fork'), {}, { RequestCpus: '1', RequestMemory: '128' });
    unheard.look(LOCAL_SITE, {}, shared);
    expect(unheard.warnings).toEqual([]);
  });
});
