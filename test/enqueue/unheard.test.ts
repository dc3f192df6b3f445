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

  it('is said of a batch system that has no word for it, once for each site', () => {
    const unheard = new Unheard();
    const at = (name: string, batch: 'slurm' | 'condor') => ({ ...LOCAL_SITE, name, batch });
    for (const name of ['a', 'b', 'a']) unheard.look(at(name, 'slurm'), { RequestDisk: '1024' }, shared);
    unheard.look(at('c', 'condor'), { RequestDisk: '1024' }, shared);
    unheard.look(at('d', 'slurm'), {}, shared);
    expect(unheard.warnings.map(({ message }) => message)).toEqual([
      'Site a (slurm) is not asked for request_disk. Where the site counts it, ask in its words: batch_extra_submit_args = --tmp=10G',
      'Site b (slurm) is not asked for request_disk. Where the site counts it, ask in its words: batch_extra_submit_args = --tmp=10G',
      'Site c (condor) is not asked for batch_queue.',
    ]);
  });

  it('is nothing where nothing is asked, and at other sites', () => {
    const unheard = new Unheard();
    unheard.look(site('jobmanager-fork'), {}, { RequestCpus: '1', RequestMemory: '128' });
    unheard.look(LOCAL_SITE, {}, shared);
    expect(unheard.warnings).toEqual([]);
  });
});
