import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readlinkSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CLI, TestAgent } from './agent.ts';
import { processes } from './kill.ts';

const agent = new TestAgent();
/** Says what each of its descriptors is, but for the file in which it says so. */
const LIST =
  '#!/bin/sh\nexec 8>"$1"\nfor n in /proc/$$/fd/*; do case $n in */8 | */255) ;; *) printf "%s " "${n##*/}" >&8; readlink "$n" >&8 || echo >&8; esac; done\n';
let secret = '';

describe.runIf(existsSync('/proc/self/fd'))('the open files of the shell that started the daemons', () => {
  beforeAll(() => {
    secret = agent.file('secret', 'of the shell');
    agent.file('list.sh', LIST, 0o755);
    agent.site('here', { url: 'local', batch: 'fork' });
    const { status, stderr } = spawnSync(
      '/bin/bash',
      ['-c', 'exec 7<"$1" 9>>"$1" 40<"$1"; shift; exec "$@"', 'bash', secret, process.execPath, CLI, 'up'],
      { cwd: agent.work, env: agent.env, encoding: 'utf8' },
    );
    if (status !== 0) throw new Error(stderr);
  }, 60_000);
  afterAll(() => agent.end(), 60_000);

  it.each([
    ['the local universe', 'universe = local'],
    ['the scheduler universe', 'universe = scheduler'],
    ['the vanilla universe', ''],
    ['a fork site', 'universe = grid\ngrid_resource = batch fork here\nshould_transfer_files = NO'],
  ])(
    'are not open in a job of %s, nor are those of the daemons',
    async (name, lines) => {
      const file = `${name.replaceAll(' ', '-')}.fds`;
      const cluster = await agent.submit(
        `${lines}\nexecutable = list.sh\narguments = ${file}\noutput = out\nerror = err\nqueue\n`,
      );
      await agent.ok('wait', String(cluster));
      expect(strangeIn(file)).toEqual([]);
    },
    60_000,
  );

  it('are not open in the task of a map', async () => {
    await agent.ok('map', './list.sh', ':::', 'map.fds');
    expect(strangeIn('map.fds')).toEqual([]);
  }, 60_000);

  it("are not open in a DAG's scripts and nodes", async () => {
    agent.file('node.sub', 'executable = list.sh\narguments = node.fds\nuniverse = local\nqueue\n');
    agent.file('d.dag', 'JOB A node.sub\nSCRIPT PRE A list.sh pre.fds\nSCRIPT POST A list.sh post.fds\n');
    await agent.ok('dag', 'submit', 'd.dag', '--wait');
    expect(['pre.fds', 'node.fds', 'post.fds'].flatMap(strangeIn)).toEqual([]);
  }, 60_000);

  it('are not kept open by the daemons', () => {
    const daemons = processes(agent);
    for (const name of ['redis-server', 'scheduler/main.js', 'worker.mjs'])
      expect(daemons.some(({ what }) => what.includes(name))).toBe(true);
    const open = daemons.flatMap(({ pid }) => openIn(pid).map((n) => targetOf(`/proc/${pid}/fd/${n}`)));
    expect(open.filter((target) => target === secret)).toEqual([]);
  });
});

/** None of a process that has ended. */
function openIn(pid: number): string[] {
  try {
    return readdirSync(`/proc/${pid}/fd`);
  } catch {
    return [];
  }
}

function targetOf(link: string): string {
  try {
    return readlinkSync(link);
  } catch {
    return '';
  }
}

/** What is open besides the three streams and the script itself; the shell has closed by then what it listed them by. */
function strangeIn(file: string): string[] {
  return agent
    .read(file)
    .split('\n')
    .filter((line) => !/^([012]\b.*|\d+ \/dev\/null|10 .*(\/list\.sh|condor_exec\.exe)|\d+ |)$/.test(line));
}
