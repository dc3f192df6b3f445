import { describe, expect, it } from 'vitest';
import { gramSite, LOCAL_SITE } from '../../src/config/sites.ts';
import { UnsupportedRequests } from '../../src/enqueue/unsupported-requests.ts';

const site = (service: string) => gramSite(`gt2:ce.example.org:2119:${service}`) ?? LOCAL_SITE;
const shared = { RequestCpus: '4', RequestMemory: '2000', BatchRuntime: '3600', BatchQueue: '"long"' };
const said = (service: string, ...jobs: Record<string, string>[]) => {
  const unsupported = new UnsupportedRequests();
  for (const own of jobs.length === 0 ? [{}] : jobs) unsupported.look(site(service), own, shared);
  return unsupported.warnings.map(({ message }) => message);
};

describe('what a GRAM service passes over', () => {
  it('is said, by what its adapter is', () => {
    const all = 'request_cpus, request_memory, batch_runtime, batch_queue';
    expect(said('jobmanager-fork')).toEqual([
      `The GRAM service jobmanager-fork of ce.example.org ignores ${all}: the site's own settings apply.`,
    ]);
    expect(said('jobmanager-slurm')).toEqual([expect.stringContaining('ignores batch_runtime: ')]);
    expect(said('jobmanager-sge')).toEqual([expect.stringContaining('ignores request_cpus: ')]);
    expect(said('jobmanager-condor')).toEqual([expect.stringContaining('ignores batch_queue: ')]);
    expect([said('jobmanager-pbs'), said('jobmanager-lsf'), said('jobmanager')]).toEqual([[], [], []]);
  });

  it('is said once for many jobs, with what each of them asks for', () => {
    const words = said('jobmanager-slurm', {}, { RequestGPUs: '1' }, {}, { RequestGPUs: '2' });
    expect(words).toEqual([expect.stringContaining('ignores batch_runtime, request_gpus: ')]);
  });

  it('is said of a batch system that has no word for it, once for each site', () => {
    const unsupported = new UnsupportedRequests();
    const at = (name: string, batch: 'slurm' | 'condor') => ({ ...LOCAL_SITE, name, batch });
    for (const name of ['a', 'b', 'a']) unsupported.look(at(name, 'slurm'), { RequestDisk: '1024' }, shared);
    unsupported.look(at('c', 'condor'), { RequestDisk: '1024' }, shared);
    unsupported.look(at('d', 'slurm'), {}, shared);
    expect(unsupported.warnings.map(({ message }) => message)).toEqual([
      'request_disk is not passed on to site a (slurm). If the site has it, ask with: batch_extra_submit_args = --tmp=10G',
      'request_disk is not passed on to site b (slurm). If the site has it, ask with: batch_extra_submit_args = --tmp=10G',
      'batch_queue is not passed on to site c (condor).',
    ]);
  });

  it('is nothing where nothing is asked, and at other sites', () => {
    const unsupported = new UnsupportedRequests();
    unsupported.look(site('jobmanager-fork'), {}, { RequestCpus: '1', RequestMemory: '128' });
    unsupported.look(LOCAL_SITE, {}, shared);
    expect(unsupported.warnings).toEqual([]);
  });
});
