import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Sge, skipWithoutSge, startSge } from '../sites/sge.ts';
import { TestAgent, until } from './agent.ts';

const JOBS = 12;
const LIMIT = 4;

/** A real Grid Engine that accepts four jobs per user: a refusal is not a failure; the job waits at home. */
describe.skipIf(skipWithoutSge())('a site that takes few jobs of us', () => {
  let agent: TestAgent;
  let sge: Sge;
  let submits: string;

  beforeAll(async () => {
    agent = new TestAgent();
    sge = await startSge({ slots: 16, userJobs: LIMIT });
    // Each submit command records how it ended.
    submits = join(sge.dir, 'submits');
    const bin = join(sge.dir, 'before');
    mkdirSync(bin);
    const real = execFileSync('sh', ['-c', 'command -v qsub'], {
      encoding: 'utf8',
      env: { ...process.env, ...sge.env },
    });
    writeFileSync(
      join(bin, 'qsub'),
      `#!/bin/sh\n${real.trim()} "$@"\nstatus=$?\necho "$status" >>'${submits}'\nexit "$status"\n`,
    );
    chmodSync(join(bin, 'qsub'), 0o755);
    const words = Object.entries(sge.env).map(([name, value]) => `export ${name}='${value}'`);
    agent.site('engine', {
      url: 'local',
      batch: 'sge',
      prelude: [...words, `PATH='${bin}':$PATH`].join('\n'),
      more: `scratch = "${agent.dir}/site"\n[limits]\npoll_min = "1s"\npoll_max = "3s"\n`,
    });
    await agent.ok('up');
  }, 120_000);
  afterAll(async () => {
    await agent?.end();
    await sge?.stop();
  });

  it('runs each job once, holds none, asks it seldom, and says what it learned', async () => {
    const ledger = join(agent.work, 'ledger');
    const go = join(agent.work, 'go');
    agent.file('job.sh', '#!/bin/sh\necho "$1" >>"$2"\nwhile [ ! -e "$3" ]; do sleep 0.1; done\nsleep 1\n', 0o755);
    // Each requests something different, so that no two become elements of one array, which counts as one job there.
    const cluster = await agent.submit(
      [
        'universe = grid',
        'grid_resource = batch sge engine',
        'executable = job.sh',
        `arguments = $(Process) ${ledger} ${go}`,
        'batch_runtime = 10$(Process)',
        `queue ${JOBS}`,
      ].join('\n'),
    );
    await until('as many to run as it takes', () => lines(ledger).length === LIMIT || undefined, 60_000);
    const learned = await until(
      'the limit to be learned',
      async () => {
        const sites = JSON.parse(await agent.ok('site', 'list', '--json')) as { name: string; learned?: object }[];
        return sites.find(({ name }) => name === 'engine')?.learned;
      },
      60_000,
    );
    expect(learned).toMatchObject({ jobs: LIMIT });
    expect(await agent.ok('site', 'show', 'engine')).toMatch(/learned limit +4 jobs, since .*jobs are allowed/);
    const states = (await agent.ok('q', '-af', 'JobStatus')).trim().split('\n');
    expect(states.filter((state) => state === '5')).toEqual([]);
    expect(states.filter((state) => state === '2')).toHaveLength(LIMIT);
    writeFileSync(go, '');
    await agent.ok('wait', '--no-outcome', '--timeout', '240', String(cluster));
    expect(
      lines(ledger)
        .map(Number)
        .sort((a, b) => a - b),
    ).toEqual(Array.from({ length: JOBS }, (_, proc) => proc));
    expect((await agent.ads(cluster)).map((ad) => ad['JobStatus'])).toEqual(Array.from({ length: JOBS }, () => 4));
    const statuses = lines(submits);
    const refusals = statuses.filter((status) => status !== '0').length;
    expect(statuses.length - refusals).toBe(JOBS);
    // The first round tries all; after that, a slot that becomes free costs at most one refusal, and rarely that.
    expect(refusals).toBeGreaterThan(0);
    expect(refusals).toBeLessThanOrEqual(2 * JOBS);
  }, 400_000);
});

function lines(file: string): string[] {
  return existsSync(file) ? readFileSync(file, 'utf8').split('\n').filter(Boolean) : [];
}
