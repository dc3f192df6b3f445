import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TestAgent, until } from '../agent/agent.ts';
import { killMatching, processesOf } from '../agent/kill.ts';
import { attemptsAt, type Kind, startTarget, type Target } from '../crash/sites.ts';
import { skipWithoutSlurm } from '../sites/slurm.ts';

interface Shown {
  readonly job: string;
  readonly is: string;
  readonly busy: number;
  readonly host?: string;
}

const KINDS: readonly Kind[] = skipWithoutSlurm() ? ['fork, ssh'] : ['slurm, ssh'];

describe.each(KINDS)('glideins through %s', (kind) => {
  let agent: TestAgent;
  let target: Target;
  let site: string;

  beforeAll(async () => {
    agent = new TestAgent();
    agent.config(
      [
        '[scheduler]\nperiodic_interval = "1s"',
        '[gridmanager]\nretry_max = "1s"',
        '[pool]\nlocal_worker = false',
        '[glidein]\nnode = "own"\ndisk = "10M"\nidle = "60s"',
        '[submit]\ndefault_site = "pool"\n',
      ].join('\n'),
    );
    target = await startTarget(kind, agent);
    site = kind === 'slurm, ssh' ? 'cluster' : 'there';
    await agent.ok('up');
  }, 90_000);
  afterAll(async () => {
    await agent.end();
    await target?.stop();
  });

  const pilots = async (): Promise<Shown[]> => JSON.parse(await agent.ok('glidein', 'list', '--json')) as Shown[];
  const ledger = (name: string): string[] => {
    const path = join(agent.work, name);
    return existsSync(path) ? readFileSync(path, 'utf8').trim().split('\n').sort() : [];
  };
  const jobs = (name: string, count: number, seconds: number, more = ''): string => {
    agent.file(
      `${name}.sh`,
      `#!/bin/sh\nsleep ${seconds}\necho "$1" >>'${agent.work}/${name}'\necho "job $1"\n`,
      0o755,
    );
    return [
      `executable = ${name}.sh`,
      'arguments = $(Process)',
      `output = ${name}.$(Process).out`,
      'should_transfer_files = YES',
      more,
      `queue ${count}\n`,
    ].join('\n');
  };
  const tokens = (): string[] => readdirSync(join(agent.home, 'state/pool/tokens'));
  const all = (count: number): string[] => Array.from({ length: count }, (_, i) => String(i)).sort();

  it('run 40 jobs, each once, over links that are cut and with a pilot that is killed', async () => {
    expect(await agent.ok('glidein', 'start', '--site', site, '-n', '3', '--walltime', '20m', '--cores', '2')).toMatch(
      /^3 glideins asked for at \S+: cluster \d+\.\n$/,
    );
    await until('a worker at home', async () => (await pilots()).some((one) => one.is === 'home') || undefined, 60_000);
    const cluster = await agent.submit(jobs('ledger', 40, 0.4, 'max_retries = 5'));
    await until('some jobs to end', () => ledger('ledger').length > 4 || undefined, 60_000);
    target.sshd?.killSessions();
    await until('more jobs to end', () => ledger('ledger').length > 12 || undefined, 60_000);
    target.sshd?.killSessions();
    const [one] = processesOf('worker.mjs', agent, target.sshd?.home);
    if (one === undefined) throw new Error('no worker to kill');
    process.kill(one, 'SIGKILL');
    await agent.ok('wait', '--timeout', '120', String(cluster));
    expect(ledger('ledger')).toEqual(all(40));
    for (const n of all(40)) expect(agent.read(`ledger.${n}.out`)).toBe(`job ${n}\n`);
    const shown = await agent.ok('site', 'show', site);
    expect(shown).toContain('How workers come home');
    expect(shown).toMatch(/ssh: .* passes the nodes' connections on/);
  }, 240_000);

  it('end after what runs there when they are drained, and leave nothing behind', async () => {
    await agent.ok('glidein', 'start', '--site', site, '-n', '2', '--walltime', '20m', '--cores', '1');
    await until('a worker at home', async () => (await pilots()).some((one) => one.is === 'home') || undefined, 60_000);
    const cluster = await agent.submit(jobs('drained', 2, 3));
    await until('a job to run', async () => (await pilots()).some((one) => one.busy > 0) || undefined, 60_000);
    expect(await agent.ok('glidein', 'stop', '--all', '--drain')).toMatch(
      /^\d+ glideins told to end when nothing runs/,
    );
    await until('all of them to be over', async () => (await pilots()).length === 0 || undefined, 90_000);
    const done = ledger('drained');
    expect(done.length).toBeGreaterThan(0);
    expect(new Set(done).size).toBe(done.length);
    await until('their directories to be gone', () => attemptsAt(target).length === 0 || undefined, 60_000);
    await until('their tokens to be gone', () => tokens().length === 0 || undefined, 60_000);
    await until('what is known of them to be gone', () => {
      return readdirSync(join(agent.home, 'state/glideins')).length === 0 || undefined;
    });
    await agent.ok('rm', String(cluster)).catch(() => undefined);
  }, 240_000);

  it('are found after a crash of everything, and none is left', async () => {
    await agent.ok('glidein', 'start', '--site', site, '-n', '2', '--walltime', '20m', '--cores', '1');
    const cluster = await agent.submit(jobs('crashed', 6, 1, 'max_retries = 5'));
    await until('a job to end', () => ledger('crashed').length > 0 || undefined, 90_000);
    for (const daemon of [
      'redis-server',
      'dist[^ ]*/scheduler/main',
      'dist[^ ]*/gridmanager/main',
      'dist[^ ]*/pool/desk-main',
    ])
      killMatching(daemon, agent);
    target.sshd?.killSessions();
    await agent.ok('up');
    await agent.ok('wait', '--timeout', '120', String(cluster));
    expect(ledger('crashed')).toEqual(all(6));
    await agent.ok('glidein', 'stop', '--all');
    await until('all of them to be over', async () => (await pilots()).length === 0 || undefined, 90_000);
    await until('their directories to be gone', () => attemptsAt(target).length === 0 || undefined, 60_000);
    await until(
      'the workers to be gone',
      () => processesOf('worker.mjs', agent, target.sshd?.home).length === 0 || undefined,
    );
    await until('their tokens to be gone', () => tokens().length === 0 || undefined, 60_000);
  }, 240_000);
});
