import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Slurm, skipWithoutSlurm, startSlurm } from '../sites/slurm.ts';
import { TestAgent, until } from './agent.ts';

describe.skipIf(skipWithoutSlurm())('a job that a real Slurm puts back into its queue', { timeout: 240_000 }, () => {
  let agent: TestAgent;
  let slurm: Slurm;
  beforeAll(async () => {
    agent = new TestAgent();
    slurm = await startSlurm({ nodes: 1, cpus: 4 });
    agent.slurmSite('slurm', slurm);
  }, 120_000);
  afterAll(async () => {
    await agent?.end();
    await slurm?.stop();
  });

  /** Appends to an input, writes each start to a ledger, and waits for the file `go`. */
  async function submit(name: string, extra = '', jobs = 1) {
    const at = (file: string) => join(agent.dir, `${name}.${file}`);
    agent.file(
      `../${name}.sh`,
      `#!/bin/sh\n${extra}\necho more >>in\necho started >>${at('ledger')}\necho begun\nwhile [ ! -e ${at('go')} ]; do sleep 0.1; done\ncp in out\n`,
    );
    agent.file(`../in`, 'staged\n');
    const cluster = await agent.submit(
      [
        'universe = grid',
        'grid_resource = batch slurm slurm',
        `executable = ${at('sh')}`,
        `transfer_input_files = ${agent.dir}/in`,
        'should_transfer_files = YES',
        'transfer_output_files = out',
        `transfer_output_remaps = "out = ${at('out')}"`,
        `output = ${at('stdout')}`,
        `log = ${at('log')}`,
        `queue ${jobs}`,
      ].join('\n'),
    );
    return { cluster, at, go: () => agent.file(`../${name}.go`, '') };
  }
  const lines = (path: string): string[] => {
    try {
      return readFileSync(path, 'utf8').trim().split('\n');
    } catch {
      return [];
    }
  };
  const started = async (path: string, times: number) =>
    await until(`start ${times}`, async () => (lines(path).length === times ? true : undefined));
  const shown = async (cluster: number | string, state: RegExp) =>
    await until(`${state}`, async () => {
      const seen = await agent.ok('q', `${cluster}`, '-af', 'GryphusState', 'GridJobId');
      return state.test(seen) ? seen : undefined;
    });
  /**
   * Slurm makes such a job wait for two minutes. Within the second in which it revoked the former run's credential, it
   * fails.
   */
  const begin = async (id: string) => {
    await until('pending', async () => slurm.run('squeue', '-h', '-j', id, '-o', '%T').trim() === 'PENDING');
    await delay(2000);
    slurm.scontrol('update', `JobId=${id}`, 'StartTime=now');
  };
  const requeued = (): string => {
    const id = slurm.run('squeue', '-h', '-o', '%i').trim();
    slurm.scontrol('requeue', id);
    return id;
  };
  const events = (path: string) => lines(path).flatMap((line) => /^(\d{3}) \(/.exec(line)?.[1] ?? []);

  it('runs again there, twice, with its inputs as they were staged, and counts once', async () => {
    const job = await submit('twice');
    for (const run of [1, 2]) {
      await started(job.at('ledger'), run);
      await shown(job.cluster, /running/);
      const id = requeued();
      await shown(job.cluster, /committed/);
      await begin(id);
    }
    await started(job.at('ledger'), 3);
    await shown(job.cluster, /running/);
    job.go();
    await agent.ok('wait', '--no-outcome', `${job.cluster}`, '--timeout', '90');
    expect(lines(job.at('out'))).toEqual(['staged', 'more']);
    expect(lines(job.at('stdout'))).toEqual(['begun']);
    const log = events(job.at('log')).filter((code) => /^00[0-9]|012/.test(code));
    expect(log).toEqual(['000', '001', '004', '001', '004', '001', '005']);
    expect(lines(job.at('ledger'))).toHaveLength(3);
  });

  it('runs again if it was requeued while the site was not polled', async () => {
    const job = await submit('unseen', "trap '' TERM");
    await started(job.at('ledger'), 1);
    await shown(job.cluster, /running/);
    await agent.ok('down');
    await begin(requeued());
    await started(job.at('ledger'), 2);
    job.go();
    await agent.ok('up');
    await agent.ok('wait', '--no-outcome', `${job.cluster}`, '--timeout', '90');
    expect(lines(job.at('out'))).toEqual(['staged', 'more']);
    const log = events(job.at('log')).filter((code) => /^00[0-9]|012/.test(code));
    expect(log).toEqual(['000', '001', '004', '001', '005']);
  });

  it('runs again there as the element of an array that it is, and its siblings do not', async () => {
    const job = await submit('array', '', 3);
    await started(job.at('ledger'), 3);
    const running = await until('three running', async () => {
      const seen = (await agent.ok('q', `${job.cluster}`, '-af', 'ProcId', 'GryphusState', 'GridJobId')).trim();
      return (seen.match(/running/g) ?? []).length === 3 ? seen.split('\n') : undefined;
    });
    const id = /(\d+_\d+)$/.exec(running[1] ?? '')?.[1] ?? '';
    expect(id).toMatch(/_2$/);
    slurm.scontrol('requeue', id);
    await shown(`${job.cluster}.1`, /committed/);
    await begin(id);
    await started(job.at('ledger'), 4);
    await shown(`${job.cluster}.1`, /running/);
    job.go();
    await agent.ok('wait', '--no-outcome', `${job.cluster}`, '--timeout', '90');
    expect(lines(job.at('ledger'))).toHaveLength(4);
    const log = events(job.at('log')).filter((code) => /^00[1-9]|012/.test(code));
    expect(log.sort()).toEqual(['001', '001', '001', '001', '004', '005', '005', '005']);
  });

  it('runs once where it only waited', async () => {
    slurm.scontrol('update', 'PartitionName=main', 'State=DOWN');
    const job = await submit('pending');
    await shown(job.cluster, /committed .*\d/);
    slurm.scontrol('update', 'PartitionName=main', 'State=UP');
    job.go();
    await agent.ok('wait', '--no-outcome', `${job.cluster}`, '--timeout', '90');
    expect(lines(job.at('ledger'))).toHaveLength(1);
    expect(events(job.at('log')).filter((code) => /^00[0-9]|012/.test(code))).toEqual(['000', '001', '005']);
  });
});
