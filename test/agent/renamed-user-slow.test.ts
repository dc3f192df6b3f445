import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SLOW } from '../slow.ts';
import { CLI, TestAgent } from './agent.ts';
import { processesOf } from './kill.ts';
import { MAY_BE_ANOTHER } from './machine.ts';

const UID = 54_321;

/** How the machine calls the user and itself; without a name, the password file does not know the user. */
interface Names {
  readonly user: string | undefined;
  readonly home: string;
  readonly host: string;
}

/** `gryphus WORDS` of this user under these names; its standard output. */
function runNamed(agent: TestAgent, uid: number, { user, home, host }: Names, words: readonly string[]): string {
  const passwd = join(agent.dir, 'passwd');
  const root = uid === 0 ? '' : 'root:x:0:0::/root:/bin/sh\n';
  const nobody = 'nobody:x:65534:65534::/nonexistent:/bin/sh\n';
  writeFileSync(passwd, `${root}${user ? `${user}:x:${uid}:${uid}::${home}:/bin/sh\n` : ''}${nobody}`);
  const script = `mount --bind "$0" /etc/passwd && hostname "$1" && shift && exec setpriv --reuid=${uid} --regid=${uid} --clear-groups "$@"`;
  const { stdout, stderr, status } = spawnSync(
    'unshare',
    ['--mount', '--uts', 'sh', '-c', script, passwd, host, process.execPath, CLI, ...words],
    {
      cwd: agent.work,
      env: { ...agent.env, HOME: home, USER: undefined, LOGNAME: undefined },
      encoding: 'utf8',
    },
  );
  if (status !== 0) throw new Error(`gryphus ${words.join(' ')} ended with ${status}:\n${stdout}${stderr}`);
  return stdout;
}

describe.skipIf(!SLOW || !MAY_BE_ANOTHER)('a user who gets another name, home directory and host name', () => {
  let agent: TestAgent;
  let names: Names;
  beforeAll(() => {
    agent = new TestAgent();
    agent.config('[pool]\ncpus = 3\n');
    names = { user: 'anna', home: join(agent.dir, 'home'), host: 'before' };
    execFileSync('chown', ['-R', `${UID}:${UID}`, agent.dir]);
    chmodSync(agent.dir, 0o755);
  });
  afterAll(() => agent.end());

  const run = (...words: readonly string[]) => runNamed(agent, UID, names, words);

  const ads = (cluster: number) =>
    [run('q', '--json', '--allusers', String(cluster)), run('history', '--json', String(cluster))].flatMap((text) =>
      text.trim() === '' ? [] : (JSON.parse(text) as Record<string, unknown>[]),
    );

  function submit(name: string, more = ''): number {
    const script = `echo ${name} >>${agent.work}/ledger; while [ ! -e ${agent.work}/go ]; do sleep 0.2; done`;
    agent.file(
      `${name}.sub`,
      `${more}\nexecutable = /bin/sh\ntransfer_executable = false\nrequest_memory = 20M\narguments = "-c '${script}'"\nqueue\n`,
    );
    return Number(/^(\d+)\./.exec(run('submit', '--terse', `${name}.sub`))?.[1]);
  }

  const FORK = 'universe = grid\ngrid_resource = batch fork local';
  const shown = () => (JSON.parse(run('q', '--json')) as Record<string, unknown>[]).map((ad) => ad['ClusterId']);

  it('keeps its jobs, which run once and keep their owner; with the former name as `owner` all is as before', () => {
    const clusters = [submit('pool'), submit('site', FORK)];
    run('wait', '--until', 'start', '--timeout', '60', ...clusters.map(String));
    expect(shown()).toEqual(clusters);

    names = { ...names, user: 'bella', host: 'after' };
    // The daemons have the former names.
    expect(shown()).toEqual([]);
    run('down');
    clusters.push(submit('later'), submit('later-site', FORK));
    run('wait', '--until', 'start', '--timeout', '60', ...clusters.map(String));
    expect(shown()).toEqual(clusters.slice(2));
    for (const cluster of clusters) expect(ads(cluster)).toMatchObject([{ JobStatus: 2, NumJobStarts: 1 }]);
    agent.file('go', '');
    run('wait', '--no-outcome', '--timeout', '60', ...clusters.map(String));
    expect(agent.read('ledger').trim().split('\n').toSorted()).toEqual(['later', 'later-site', 'pool', 'site']);
    expect(clusters.flatMap((cluster) => ads(cluster).map(({ Owner }) => Owner))).toEqual([
      'anna',
      'anna',
      'bella',
      'bella',
    ]);

    // Nothing runs in its home directory, which moves.
    run('down');
    const home = join(agent.dir, 'home of bella');
    renameSync(names.home, home);
    names = { ...names, home };
    const moved = [submit('moved'), submit('moved-site', FORK)];
    run('wait', '--no-outcome', '--timeout', '60', ...moved.map(String));
    for (const cluster of moved) expect(ads(cluster)).toMatchObject([{ JobStatus: 4, ExitCode: 0 }]);

    const held = submit('held', 'hold = true');
    agent.config('owner = "anna"\n[pool]\ncpus = 3\n');
    const again = submit('again', 'hold = true');
    expect(shown()).toEqual([again]);
    expect(ads(again)).toMatchObject([{ Owner: 'anna' }]);
    expect(ads(held)).toMatchObject([{ Owner: 'bella' }]);

    // Without a name, the number is one.
    agent.config('[pool]\ncpus = 3\n');
    names = { ...names, user: undefined };
    const nameless = submit('nameless');
    run('wait', '--no-outcome', '--timeout', '60', String(nameless));
    expect(ads(nameless)).toMatchObject([{ Owner: String(UID), JobStatus: 4, ExitCode: 0 }]);
    run('down');
  }, 240_000);
});

describe.skipIf(!SLOW || !MAY_BE_ANOTHER)('root under another name', () => {
  let agent: TestAgent;
  beforeAll(() => {
    agent = new TestAgent();
    agent.config('[pool]\ncpus = 2\n');
  });
  afterAll(() => agent.end());

  it('has its jobs run as root by a worker that was started under the former name', () => {
    let user = 'anna';
    const names = () => ({ user, home: join(agent.dir, 'home'), host: 'host' });
    const run = (...words: readonly string[]) => runNamed(agent, 0, names(), words);
    const submit = (name: string, script: string) => {
      agent.file(
        `${name}.sub`,
        `executable = /bin/sh\ntransfer_executable = false\nrequest_memory = 20M\noutput = ${name}.out\narguments = "-c '${script}'"\nqueue\n`,
      );
      return String(Number(/^(\d+)\./.exec(run('submit', '--terse', `${name}.sub`))?.[1]));
    };
    // It keeps the worker, which has a job, beyond `gryphus down`.
    const first = submit('first', `id -u; while [ ! -e ${agent.work}/go ]; do sleep 0.2; done`);
    run('wait', '--until', 'start', '--timeout', '60', first);
    const [worker] = processesOf('worker.mjs', agent);
    user = 'bella';
    run('down');
    const second = submit('second', 'id -u');
    run('wait', '--timeout', '60', second);
    expect(processesOf('worker.mjs', agent)).toEqual([worker]);
    agent.file('go', '');
    run('wait', '--timeout', '60', first);
    expect(['first', 'second'].map((name) => agent.read(`${name}.out`))).toEqual(['0\n', '0\n']);
  }, 180_000);
});
