import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { sge as sgeBackend } from '../../src/backends/sge.ts';
import { look, shellHalf } from './recorded.ts';
import { type Sge, skipWithoutSge, startSge } from '../sites/sge.ts';

describe.skipIf(skipWithoutSge())('the private Grid Engine', () => {
  let sge: Sge;
  beforeAll(async () => {
    sge = await startSge();
  });
  afterAll(async () => await sge?.stop());

  it('runs a job to its end', () => {
    const answer = sge.run('qsub', '-terse', '-sync', 'y', '-b', 'y', '-o', '/dev/null', '-e', '/dev/null', 'true');
    expect(answer).toMatch(/^\d+$/m);
  });

  it('is found, says its cores, its queues and its accounting', () => {
    expect(look(sge.env)?.[0]).toMatchObject({ batch: 'sge', answers: true, message: expect.stringMatching(/GE \d/) });
    const half = (call: string) => shellHalf('sge', {}, call, sge.env);
    const cores = sgeBackend.capacityOf?.(half('backend_capacity')[0] ?? '');
    expect(cores?.cpus).toBeGreaterThan(0);
    expect(cores?.freeCpus).toBeLessThanOrEqual(cores?.cpus ?? 0);
    expect(half('backend_has nosuch')).toEqual(['']);
    const [queue = ''] = sge.run('qconf', '-sql').split('\n');
    expect(half(`backend_has ${queue}@somewhere`)).toEqual([queue]);
    expect(half('backend_accounting')).toEqual(['qacct answers']);
  });
});
