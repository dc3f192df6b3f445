import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { shellQuote } from '../../src/util/shell-quote.ts';
import { type FakeBatch, startFake } from '../sites/fake-batch.ts';
import { TestAgent, until } from './agent.ts';
import { killMatching, processesOf } from './kill.ts';

describe('what a site still runs of removed jobs', () => {
  const agent = new TestAgent();
  afterAll(() => agent.end());

  it('is adopted: the jobs are in the queue again, ran once, and their results come home', async () => {
    agent.site('here', {
      url: 'local',
      batch: 'fork',
      more: `scratch = ${JSON.stringify(join(agent.dir, "the re's"))}\nlimits.running = 8\n`,
    });
    const go = join(agent.dir, 'go');
    const ledger = join(agent.dir, 'ledger');
    const cluster = await agent.submit(
      [
        'universe = grid',
        'grid_resource = batch fork here',
        'executable = /bin/sh',
        'transfer_executable = false',
        `arguments = "-c 'echo $(Process) >>${ledger}; while [ ! -e ${go} ]; do sleep 0.2; done; echo out-$(Process)'"`,
        'output = out.$(Process)',
        'log = jobs.log',
        'queue 3',
      ].join('\n'),
    );
    await agent.ok('wait', '--until', 'start', '--timeout', '60', String(cluster));
    const managers = processesOf('gridmanager/main.js', agent);
    const [manager = 0] = managers;
    expect(managers).toHaveLength(1);

    // Two jobs are removed from the queue while the site cannot be told.
    process.kill(manager, 'SIGSTOP');
    await agent.ok('rm', '--forcex', `${cluster}.0`, `${cluster}.1`);
    await until('the history to have them', async () => (await left(cluster)) === 2);
    const audit = await agent.run(['site', 'audit', 'here', '--json']);
    expect(audit.code).toBe(1);
    const found = JSON.parse(audit.stdout) as { key: string; can: string[] }[];
    expect(found.map(({ can }) => can)).toEqual([
      ['adopt', 'clean'],
      ['adopt', 'clean'],
    ]);
    const keys = found.map(({ key }) => key).sort();
    expect(keys.map((key) => key.split('.').slice(1))).toEqual([0, 1].map((proc) => [`${cluster}`, `${proc}`, '1']));

    // One during the life of its GridManager, which ignored the site's report of it; the other is found by a new
    // GridManager.
    const adopted = await agent.run(['site', 'audit', 'here', '--adopt', keys[0] ?? '']);
    expect(adopted.stdout).toMatch(/\(adopted\)$/m);
    process.kill(manager, 'SIGCONT');
    const states = async () =>
      (JSON.parse(await agent.ok('q', '--json', String(cluster))) as Record<string, unknown>[]).map(
        (ad) => ad['JobStatus'],
      );
    await until('the job to run here', async () => (await states()).join() === '2,2');
    killMatching('gridmanager/main.js', agent);
    const rest = await agent.run(['site', 'audit', 'here', '--adopt', 'all']);
    expect(rest.stdout).toBe(
      `${keys[1]}  only at the site: started there; job ${cluster}.1 has left the queue, removed (adopted)\n`,
    );
    await until('all to run here', async () => (await states()).join() === '2,2,2');
    const again = await agent.run(['site', 'audit', 'here', '--adopt', keys[1] ?? '']);
    expect(again.stderr).toContain(`does not list '${keys[1]}'`);

    writeFileSync(go, '');
    await agent.ok('wait', '--no-outcome', '--timeout', '60', String(cluster));
    for (const proc of [0, 1, 2]) expect(agent.read(`out.${proc}`)).toBe(`out-${proc}\n`);
    expect(readFileSync(ledger, 'utf8').trim().split('\n').sort()).toEqual(['0', '1', '2']);
    expect(await agent.ok('site', 'audit', 'here')).toContain('agree');
    const log = agent.read('jobs.log');
    expect(log.match(/^005 /gm)).toHaveLength(3);
    const ends = (JSON.parse(await agent.ok('history', '--json', String(cluster))) as Record<string, unknown>[]).map(
      (ad) => ad['JobStatus'],
    );
    expect(ends.map(String).sort().join()).toBe('3,3,4,4,4');
  }, 180_000);

  async function left(cluster: number): Promise<number> {
    return (JSON.parse(await agent.ok('history', '--json', String(cluster))) as unknown[]).length;
  }
});

describe('what runs at a site without a record there', () => {
  const agent = new TestAgent();
  let batch: FakeBatch | undefined;
  afterAll(async () => {
    await agent.end();
    await batch?.stop();
  });

  it("is said of its jobs, listed by audit, and removed by it from the site's queue", async () => {
    batch = await startFake('pbs.sh', ['qsub', 'qstat', 'qdel']);
    const { dir, env } = batch;
    const states = (): string[] =>
      readdirSync(join(dir, 'jobs')).map((id) => readFileSync(join(dir, 'jobs', id, 'state'), 'utf8').trim());
    const scratch = join(agent.dir, 'scratch');
    const prelude = Object.entries(env).map(([name, value]) => `export ${name}=${shellQuote(value)}`);
    agent.site('here', {
      url: 'local',
      batch: 'pbs',
      more: [
        `scratch = ${JSON.stringify(scratch)}`,
        `prelude = ${JSON.stringify(prelude.join('\n'))}`,
        'limits.poll_min = "1s"',
        'limits.poll_max = "1s"',
      ].join('\n'),
    });
    const sleeps = (count: number): string =>
      [
        'universe = grid',
        'grid_resource = batch pbs here',
        'executable = /bin/sleep',
        'transfer_executable = false',
        'arguments = 600',
        `queue ${count}`,
      ].join('\n');
    const clusters = [await agent.submit(sleeps(3)), await agent.submit(sleeps(1))].map(String);
    await agent.ok('wait', '--until', 'start', '--timeout', '60', ...clusters);
    for (const name of readdirSync(join(scratch, 'here')))
      rmSync(join(scratch, 'here', name), { recursive: true, force: true });
    const [array = '', alone = ''] = clusters;
    for (const id of [`${array}.1`, `${alone}.0`])
      await until('it to be said', async () => (await agent.ok('why', id)).includes('its directory there is gone'));
    expect(await agent.ok('site', 'audit', 'here')).toContain('agree');

    expect(states().filter((state) => state === 'running')).toHaveLength(4);
    // The queue forgets them while the site cannot be told.
    for (const pid of processesOf('gridmanager/main.js', agent)) process.kill(pid, 'SIGSTOP');
    await agent.ok('rm', '--forcex', ...clusters);
    await until(
      'the queue to be empty',
      async () => (JSON.parse(await agent.ok('q', '--json')) as unknown[]).length === 0,
    );
    const found = JSON.parse((await agent.run(['site', 'audit', 'here', '--json'])).stdout) as {
      message: string;
      can: string[];
    }[];
    const words = found.map(({ message }) => (message.startsWith('an element of an array') ? 'element' : message));
    expect(words.sort()).toEqual([
      'element',
      'element',
      'element',
      `in its queue without a record there; job ${alone}.0 has left the queue, removed`,
    ]);
    expect(found.every(({ can }) => can.join() === 'clean')).toBe(true);
    await agent.run(['site', 'audit', 'here', '--clean', 'all']);
    await until('the queue there to be empty', async () => !states().includes('running'));
    expect(await agent.ok('site', 'audit', 'here')).toContain('agree');
  }, 180_000);
});
