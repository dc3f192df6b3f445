import { cpSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Sshd, startSshd } from '../sites/sshd.ts';
import { TestAgent, until } from './agent.ts';

describe('a queue that was put back from a backup', () => {
  let agent: TestAgent;
  let sshd: Sshd;
  beforeAll(async () => {
    sshd = await startSshd();
    agent = new TestAgent({ HOME: sshd.clientHome });
    agent.site('there', { url: sshd.url, batch: 'fork', more: '[limits]\nqueued = 2\nrunning = 2\n' });
  });
  afterAll(async () => {
    await agent.end();
    await sshd.stop();
  });

  const job = (name: string, script: string, count = 1) =>
    agent.submit(
      [
        'universe = grid',
        'grid_resource = batch fork there',
        'executable = /bin/sh',
        'transfer_executable = false',
        `arguments = "-c 'echo ${name} $(Process) >>${agent.work}/ledger; ${script}'"`,
        `output = ${name}.$(Process)`,
        `queue ${count}`,
      ].join('\n'),
    );
  const ledger = () => readFileSync(join(agent.work, 'ledger'), 'utf8').trim().split('\n').sort();
  // In the queue: the history also covers the time that was lost.
  const ads = async (cluster: number) =>
    JSON.parse((await agent.ok('q', '--json', String(cluster))) || '[]') as Record<string, unknown>[];
  const states = async (cluster: number) => (await ads(cluster)).map((ad) => ad['GryphusState']);

  it('holds what may have run meanwhile, gives no number to two jobs, and runs nothing twice without a word', async () => {
    agent.file('ledger', '');
    const wait = (file: string) => `while [ ! -e ${agent.work}/${file} ]; do sleep 0.2; done; echo ${file}`;
    // One runs, another is at the site, two wait at home.
    const old = await job('old', wait('go'), 4);
    await until('two to run', async () => ledger().length === 2 || undefined);
    await until(
      'that to be known',
      async () => (await states(old)).filter((state) => state === 'running').length === 2 || undefined,
    );
    await agent.ok('down');
    const redis = join(agent.home, 'state/redis');
    cpSync(redis, join(agent.dir, 'backup'), { recursive: true });

    agent.file('go', '');
    await agent.ok('up');
    await agent.ok('wait', '--no-outcome', '--timeout', '90', String(old));
    const lost = await job('lost', wait('later'));
    await until('it to run', () => ledger().includes('lost 0') || undefined);
    await agent.ok('down');
    rmSync(redis, { recursive: true });
    cpSync(join(agent.dir, 'backup'), redis, { recursive: true });
    // As in a copy of the whole directory, which knows nothing of later either.
    rmSync(join(agent.home, 'state/queue-mark'));

    // Its number is that of the job that runs there now.
    const fresh = await job('fresh', 'echo fresh');
    expect(fresh).toBe(lost);
    await agent.ok('wait', '--no-outcome', '--timeout', '90', String(fresh));
    expect(agent.read('fresh.0')).toBe('fresh\n');
    await until(
      'the old ones to be held',
      async () => (await states(old)).every((state) => state === 'held') || undefined,
    );
    const reasons = (await ads(old)).map((ad) => String(ad['HoldReason']));
    expect(reasons.filter((message) => message.includes('older copy'))).toHaveLength(2);
    expect(reasons.filter((message) => message.includes('has no record of the job any more'))).toHaveLength(2);
    expect(ledger()).toEqual(['fresh 0', 'lost 0', 'old 0', 'old 1', 'old 2', 'old 3']);
    expect(await agent.ok('why', `${old}.3`)).toContain('was a backup restored?');

    // Jobs running there from the lost time belong to no job of the queue, and are reported.
    expect((await agent.run(['site', 'audit', 'there'])).stdout).toMatch(new RegExp(`\\.${lost}\\.0\\.1 `));
    agent.file('later', '');
    expect(await job('next', 'true')).toBeGreaterThan(lost);
    // A release by the user runs it, although the queue was told of a run once before.
    await agent.ok('release', `${old}.3`);
    await agent.ok('wait', '--no-outcome', '--timeout', '90', `${old}.3`);
    expect(ledger().filter((line) => line === 'old 3')).toHaveLength(2);
  }, 300_000);
});
