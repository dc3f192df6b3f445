import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { freePort } from '../sites/ports.ts';
import { TestAgent, until } from './agent.ts';
import { kill, processes, processesOf } from './kill.ts';

/** How much time a removed home leaves its daemons. */
const TEN_SECONDS = 10_000;

let agents: TestAgent[] = [];
afterEach(async () => {
  for (const agent of agents.splice(0)) {
    await agent.end();
    for (const { pid } of processes(agent)) kill(pid);
  }
});

async function started(longName = false): Promise<TestAgent> {
  const agent = new TestAgent();
  if (longName) {
    // Too long for a socket path, so its Redis listens elsewhere.
    const home = join(agent.dir, 'x'.repeat(90));
    renameSync(agent.home, home);
    Object.assign(agent, { home });
    agent.env['GRYPHUS_HOME'] = home;
  }
  agents.push(agent);
  agent.config(`[pool]\ncpus = 2\n[glidein]\nlisten = "127.0.0.1:${await freePort()}"\n`);
  await agent.ok('up');
  return agent;
}

/** One in the pool, one at a site, and a DAG with a node that runs in the pool and a script; all of them long. */
async function busy(agent: TestAgent): Promise<void> {
  agent.file('pool.sh', '#!/bin/sh\ntrap "" TERM\necho >pool.runs\nwhile :; do sleep 1; done\n', 0o755);
  agent.file('site.sh', '#!/bin/sh\necho >"$1/site.runs"\nsleep 600\n', 0o755);
  agent.file('node.sub', 'executable = /bin/sleep\narguments = 601\nlog = node.log\nqueue\n');
  agent.file('pre.sh', '#!/bin/sh\necho >pre.runs\nsleep 602\n', 0o755);
  agent.file('one.dag', 'JOB A node.sub\nJOB B node.sub\nSCRIPT PRE B pre.sh\n');
  await agent.submit('executable = pool.sh\nlog = pool.log\nqueue\n');
  await agent.submit(
    `universe = grid\ngrid_resource = batch fork local\nexecutable = site.sh\narguments = ${agent.work}\nqueue\n`,
  );
  await agent.ok('dag', 'submit', 'one.dag');
  await until('all to run', () => {
    const names = readdirSync(agent.work);
    const node = names.includes('node.log') && agent.read('node.log').includes('001 (');
    return (['pool.runs', 'site.runs', 'pre.runs'].every((name) => names.includes(name)) && node) || undefined;
  });
}

/** The processes of the site's job, which keeps running as it does after `down`. */
const atTheSite = ({ what }: { readonly what: string }) =>
  what.includes('fork-worker.sh') || what.includes('wrapper.sh') || /condor_exec|site\.sh|^sleep/.test(what);

/** As a person would: again, if something was created in it in the meantime. */
function remove(home: string): void {
  for (let times = 0; times < 20 && existsSync(home); times++) spawnSync('rm', ['-rf', home]);
}

async function ends(agent: TestAgent): Promise<void> {
  const left = () => processes(agent).filter((one) => !atTheSite(one));
  await until('the daemons to end', () => left().length === 0 || undefined, TEN_SECONDS).catch(() => {
    throw new Error(
      `these go on:\n${left()
        .map(({ pid, what }) => `${pid} ${what.replaceAll('\n', ' ').slice(0, 120)}`)
        .join('\n')}`,
    );
  });
}

describe('`down`', () => {
  it('leaves nothing but what runs at a site', async () => {
    const agent = await started();
    agent.file('site.sh', '#!/bin/sh\necho >"$1/site.runs"\nsleep 600\n', 0o755);
    await agent.submit(
      `universe = grid\ngrid_resource = batch fork local\nexecutable = site.sh\narguments = ${agent.work}\nqueue\n`,
    );
    const short = await agent.submit('executable = /bin/true\nlog = short.log\nqueue 3\n');
    await agent.ok('wait', '--no-outcome', '--timeout', '60', String(short));
    await until('the other to run', () => readdirSync(agent.work).includes('site.runs') || undefined);
    await agent.ok('down');
    const left = processes(agent).filter((one) => !atTheSite(one));
    expect(left).toEqual([]);
  }, 120_000);

  it('ends what has only just begun', async () => {
    const agent = await started();
    // The worker is testing this machine's container runtimes at this point.
    await agent.ok('down');
    expect(processes(agent)).toEqual([]);
  }, 60_000);
});

describe('daemons whose home is removed', () => {
  it('all end, and with them what ran in it; what runs at a site, and other agents, continue', async () => {
    const [agent, other] = [await started(), await started()];
    await busy(agent);
    const others = processesOf('main.js|redis-server|worker.mjs', other);
    expect(others.length).toBeGreaterThan(3);
    remove(agent.home);
    await ends(agent);
    expect(processesOf('main.js|redis-server|worker.mjs', other)).toEqual(others);
    expect(processes(agent).some(({ what }) => what.includes('fork-worker.sh'))).toBe(true);
    // Nothing has recreated it.
    expect(readdirSync(agent.dir)).not.toContain('g');
  }, 120_000);

  it('end with their Redis, where that listens elsewhere, also when the Scheduler was killed before', async () => {
    const agent = await started(true);
    await busy(agent);
    for (const pid of processesOf('scheduler/main.js', agent)) kill(pid);
    remove(agent.home);
    await ends(agent);
  }, 120_000);

  it('leave alone the agent that has its place by then', async () => {
    const agent = await started(true);
    const before = processesOf('main.js|redis-server|worker.mjs', agent);
    const submitted = await agent.submit('executable = /bin/true\nhold = true\nqueue\n');
    renameSync(agent.home, join(agent.dir, 'moved'));
    // A command in the same place sees nothing of the former state, although that Redis still answers.
    expect(JSON.parse((await agent.run(['q', '--json'])).stdout || '[]')).toEqual([]);
    await agent.ok('up');
    const old = () => before.filter((pid) => processesOf('main.js|redis-server|worker.mjs', agent).includes(pid));
    await until('the old daemons to end', () => old().length === 0 || undefined, TEN_SECONDS);
    const status = JSON.parse(await agent.ok('status', '--json')) as { running: boolean };
    expect(status.running).toBe(true);
    const cluster = await agent.submit('executable = /bin/true\nlog = new.log\nqueue\n');
    expect(cluster).toBe(submitted);
    await agent.ok('wait', '--no-outcome', '--timeout', '60', String(cluster)).catch(async (error: unknown) => {
      throw new Error(
        `${String(error)}\n${await agent.ok('why', String(cluster))}\n${agent.log('pool.log').slice(-1500)}\n${agent.log('pool-worker.log').slice(-500)}`,
      );
    });
  }, 120_000);
});
