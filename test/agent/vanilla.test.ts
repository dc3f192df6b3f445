import { existsSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseUserLog } from '../../src/user-log/text.ts';
import { TestAgent, until } from './agent.ts';
import { processesOf } from './kill.ts';

describe('an ordinary job, in the pool of this machine', () => {
  let agent: TestAgent;

  beforeAll(async () => {
    agent = new TestAgent();
    agent.config('[pool]\ncpus = 2\ngroup_names = ["heavy", "light"]\n');
    await agent.ok('up');
  });
  afterAll(() => agent.end());

  const one = async (cluster: number) => (await agent.ads(cluster))[0] ?? {};

  it('finds a worker that `up` has started before any job was there', async () => {
    const slots = await until('the worker', async () => {
      const { stdout } = await agent.run(['status', '--pool', '--json']);
      const all = stdout.trim() === '' ? [] : (JSON.parse(stdout) as Record<string, unknown>[]);
      return all.length > 0 ? all : undefined;
    });
    expect(slots).toMatchObject([{ State: 'Unclaimed', Cpus: 2, GryphusSite: 'local' }]);
    expect(await agent.ok('why')).toBe('Nothing to explain: no job is in the queue.\n');
    expect(await agent.ok('why', '--constraint', 'JobPrio > 3')).toBe(
      'Nothing to explain: no job in the queue fits.\n',
    );
    expect(await agent.ok('why', '--json')).toBe('[\n]\n');
  }, 60_000);

  it('runs in its directory of submission, and its log says so as HTCondor does', async () => {
    agent.file('here.sh', '#!/bin/sh\npwd; cat beside; echo made >made; ls -A "$_CONDOR_SCRATCH_DIR"\n', 0o755);
    agent.file('beside', 'it was there\n');
    const cluster = await agent.submit('executable = here.sh\noutput = here.out\nlog = here.log\nqueue\n');
    // If a work loop had lost track of a job, it would wait for the next periodic check, half a minute later.
    await agent.ok('wait', '--no-outcome', '--timeout', '28', String(cluster));
    expect(agent.read('here.out')).toBe(`${agent.work}\nit was there\n.job.ad\n.machine.ad\n`);
    expect(agent.read('made')).toBe('made\n');
    const events = parseUserLog(agent.read('here.log')).events.filter(({ type }) => type !== 'image-size');
    // Nothing was transferred, so the log does not mention files.
    expect(events.map(({ type }) => type)).toEqual(['submit', 'execute', 'terminated']);
    const { host, slot } = events[1] as { host?: string; slot?: string };
    expect(slot).toMatch(/^slot1_[12]@/);
    expect(host).toBe(`<${slot?.replace(/^.*@/, '')}>`);
    expect(await one(cluster)).toMatchObject({ LastRemoteHost: slot, NumJobStarts: 1, ExitCode: 0 });
  }, 90_000);

  it('that asks for too much waits, says why, and continues as soon as it is edited', async () => {
    const cluster = await agent.submit('executable = /bin/true\nrequest_memory = 90 TB\nlog = big.log\nqueue\n');
    const why = await until('the pool to have it', async () => {
      const said = await agent.ok('why', String(cluster));
      return said.includes('too small') ? said : undefined;
    });
    expect(why).toMatch(/1 worker: too small: the job requests \d+ MB of memory \(\d+ in all\)\./);
    await agent.ok('edit', String(cluster), 'RequestMemory', '64');
    await agent.ok('wait', '--no-outcome', '--timeout', '60', String(cluster));
    expect(await one(cluster)).toMatchObject({ JobStatus: 4, NumJobStarts: 1 });
    const events = parseUserLog(agent.read('big.log')).events.filter(({ type }) => type !== 'image-size');
    expect(events.map(({ type }) => type)).toEqual(['submit', 'execute', 'terminated']);
  }, 90_000);

  it('goes first where it is more urgent, also by an edit of what waits', async () => {
    agent.file('ordered.sh', '#!/bin/sh\nuntil [ -e go ]; do sleep 0.1; done\necho "$1" >>order\n', 0o755);
    const job = (name: string) => `executable = ordered.sh\narguments = ${name}\nrequest_cpus = 2\nqueue\n`;
    const first = await agent.submit(job('first'));
    await until('it to run', async () => (await one(first))['JobStatus'] === 2 || undefined);
    const [low, high] = [await agent.submit(job('low')), await agent.submit(job('high'))];
    for (const cluster of [low, high])
      await until('it to wait there', async () => (await one(cluster))['GryphusState'] === 'committed' || undefined);
    await agent.ok('edit', String(high), 'JobPrio', '7');
    await until('it to wait there anew', async () => {
      const ad = await one(high);
      return (ad['GryphusState'] === 'committed' && ad['GryphusAttempt'] !== 1) || undefined;
    });
    agent.file('go', '');
    await agent.ok('wait', '--no-outcome', '--timeout', '60', ...[first, low, high].map(String));
    expect(agent.read('order')).toBe('first\nhigh\nlow\n');
  }, 120_000);

  it('of an owner who uses little goes before the queue of one who uses much', async () => {
    agent.file('turns.sh', '#!/bin/sh\nuntil [ -e turn ]; do sleep 0.1; done\necho "$1" >>turns\n', 0o755);
    const jobs = (owner: string, jobs: number) =>
      `executable = turns.sh\narguments = ${owner}\naccounting_group = ${owner}\nrequest_cpus = 2\nqueue ${jobs}\n`;
    const heavy = await agent.submit(jobs('heavy', 4));
    await until('the first to run', async () => (await one(heavy))['JobStatus'] === 2 || undefined);
    const light = await agent.submit(jobs('light', 1));
    await until('it to wait there', async () => (await one(light))['GryphusState'] === 'committed' || undefined);
    agent.file('turn', '');
    await agent.ok('wait', '--no-outcome', '--timeout', '60', String(heavy), String(light));
    expect(agent.read('turns')).toBe('heavy\nlight\nheavy\nheavy\nheavy\n');
  }, 90_000);

  it('leaves no process behind when the daemons end', async () => {
    expect(processesOf('worker.mjs', agent)).not.toEqual([]);
    await agent.ok('down');
    expect(processesOf('.', agent)).toEqual([]);
    expect(existsSync(`${agent.home}/state/run/pool.sock`)).toBe(false);
  }, 60_000);

  it('waits, and why says so, where nothing is in the pool', async () => {
    agent.config('[pool]\nlocal_worker = false\n');
    await agent.ok('up');
    const cluster = await agent.submit('executable = /bin/true\nqueue\n');
    const why = await until('the reason', async () => {
      const said = await agent.ok('why', String(cluster));
      return said.includes('no workers') ? said : undefined;
    });
    expect(why).toContain('The pool has no workers now.');
    expect(why).toContain('gryphus glidein start');
    expect(processesOf('worker.mjs', agent)).toEqual([]);
    await agent.ok('rm', String(cluster));
  }, 60_000);
});
