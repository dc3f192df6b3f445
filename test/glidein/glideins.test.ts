import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { until } from '../agent/agent.ts';
import { killMatching, processesOf } from '../agent/kill.ts';
import { attemptsAt, type Kind, startTarget, type Target } from '../crash/sites.ts';
import { skipWithoutSlurm } from '../sites/slurm.ts';
import { each, GlideinAgent } from './ground.ts';

const KINDS: readonly Kind[] = skipWithoutSlurm() ? ['fork, ssh'] : ['slurm, ssh'];

describe.each(KINDS)('glideins through %s', (kind) => {
  let agent: GlideinAgent;
  let target: Target;
  let site: string;

  beforeAll(async () => {
    agent = new GlideinAgent();
    agent.configure('idle = "60s"');
    target = await startTarget(kind, agent);
    site = kind === 'slurm, ssh' ? 'cluster' : 'there';
    await agent.ok('up');
  }, 90_000);
  afterAll(async () => {
    await agent.end();
    await target?.stop();
  });

  const tokens = (): string[] => readdirSync(join(agent.home, 'state/pool/tokens'));

  it('run 40 jobs, each once, over links that are cut and with a pilot that is killed', async () => {
    expect(await agent.ok('glidein', 'start', '--site', site, '-n', '3', '--walltime', '20m', '--cores', '2')).toMatch(
      /^3 glideins requested at \S+: cluster \d+\.\n$/,
    );
    await agent.untilHome();
    const cluster = await agent.submit(agent.jobs('ledger', 40, 0.4, 'max_retries = 5'));
    await until('some jobs to end', () => agent.ledger('ledger').length > 4 || undefined, 60_000);
    target.sshd?.killSessions();
    await until('more jobs to end', () => agent.ledger('ledger').length > 12 || undefined, 60_000);
    target.sshd?.killSessions();
    const [one] = processesOf('worker.mjs', agent, target.sshd?.home);
    if (one === undefined) throw new Error('no worker to kill');
    process.kill(one, 'SIGKILL');
    await agent.ok('wait', '--no-outcome', '--timeout', '120', String(cluster));
    expect(agent.ledger('ledger')).toEqual(each(40));
    for (const n of each(40)) expect(agent.read(`ledger.${n}.out`)).toBe(`job ${n}\n`);
    const relayed = async () =>
      /ssh: .* passes the nodes' connections on/.test(await agent.ok('site', 'show', site)) || undefined;
    await until('the connection of the login node to be there again', relayed, 60_000);
  }, 240_000);

  it('end after what runs there when they are drained, and leave nothing behind', async () => {
    await agent.ok('glidein', 'start', '--site', site, '-n', '2', '--walltime', '20m', '--cores', '1');
    await agent.untilHome();
    const cluster = await agent.submit(agent.jobs('drained', 2, 3));
    await until('a job to begin', () => agent.begun('drained') > 0 || undefined, 60_000);
    expect(await agent.ok('glidein', 'stop', '--all', '--drain')).toMatch(
      /^\d+ glideins told to end once their running jobs/,
    );
    await agent.untilOver();
    const done = agent.ledger('drained');
    expect(done.length).toBeGreaterThan(0);
    expect(new Set(done).size).toBe(done.length);
    await until('their directories to be gone', () => attemptsAt(target).length === 0 || undefined, 60_000);
    await until('their tokens to be gone', () => tokens().length === 0 || undefined, 60_000);
    await until('what is known of them to be gone', () => {
      return readdirSync(join(agent.home, 'state/glideins')).length === 0 || undefined;
    });
    // Jobs that no longer find a worker wait for others.
    await agent.run(['rm', String(cluster)]);
  }, 240_000);

  it('are found after a crash of everything, and none is left', async () => {
    await agent.ok('glidein', 'start', '--site', site, '-n', '2', '--walltime', '20m', '--cores', '1');
    const cluster = await agent.submit(agent.jobs('crashed', 6, 1, 'max_retries = 5'));
    await until('a job to end', () => agent.ledger('crashed').length > 0 || undefined, 90_000);
    for (const daemon of [
      'redis-server',
      'dist[^ ]*/scheduler/main',
      'dist[^ ]*/gridmanager/main',
      'dist[^ ]*/pool/central-manager/central-manager-main',
    ])
      killMatching(daemon, agent);
    target.sshd?.killSessions();
    await agent.ok('up');
    await agent.ok('wait', '--no-outcome', '--timeout', '120', String(cluster));
    expect(agent.ledger('crashed')).toEqual(each(6));
    await agent.ok('glidein', 'stop', '--all');
    await agent.untilOver();
    await until('their directories to be gone', () => attemptsAt(target).length === 0 || undefined, 60_000);
    await until(
      'the workers to be gone',
      () => processesOf('worker.mjs', agent, target.sshd?.home).length === 0 || undefined,
    );
    await until('their tokens to be gone', () => tokens().length === 0 || undefined, 60_000);
  }, 240_000);
});
