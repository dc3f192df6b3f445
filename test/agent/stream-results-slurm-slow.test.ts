import { existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { skipWithoutSlurm, startSlurm, type Slurm } from '../sites/slurm.ts';
import { type Sshd, startSshd } from '../sites/sshd.ts';
import { SLOW } from '../slow.ts';
import { TestAgent, until } from './agent.ts';
import { killMatching } from './kill.ts';

describe.skipIf(skipWithoutSlurm() || !SLOW)('files of jobs on a Slurm behind ssh', { timeout: 400_000 }, () => {
  let agent: TestAgent;
  let slurm: Slurm;
  let sshd: Sshd;
  beforeAll(async () => {
    sshd = await startSshd();
    slurm = await startSlurm({ nodes: 1, cpus: 4 });
    agent = new TestAgent({ HOME: sshd.clientHome, SSH_AUTH_SOCK: undefined });
    const prelude = `export SLURM_CONF='${slurm.env['SLURM_CONF'] ?? ''}'`;
    const more = `scratch = "${agent.dir}/there"\n[limits]\npoll_min = "1s"\n`;
    agent.site('cluster', { url: sshd.url, batch: 'slurm', prelude, more });
    await agent.ok('up');
  }, 240_000);
  afterAll(async () => {
    await agent?.end();
    await slurm?.stop();
    await sshd?.stop();
  });

  const submit = (script: string, patterns: string) => {
    agent.file('w.sh', script);
    return agent.submit(`universe = grid
grid_resource = batch slurm cluster
executable = /bin/sh
arguments = w.sh
transfer_input_files = w.sh
output_directory = home
stream_results = ${patterns}
queue
`);
  };
  const home = (name: string) => join(agent.work, 'home', name);
  const read = (name: string) => (existsSync(home(name)) ? readFileSync(home(name), 'utf8') : undefined);

  it('grow at home, across a cut connection and a killed GridManager', async () => {
    mkdirSync(home('.'));
    const wait = `wait_for() { until [ -e ${agent.work}/$1 ]; do sleep 0.1; done; }`;
    const cluster = await submit(
      `${wait}
mkdir logs; printf 'a\\nb' >'logs/x y.dat'; echo one >r.out; ln -s /etc logs/etc; ln -s /etc/passwd logs/p.dat
wait_for go1; echo c >>'logs/x y.dat'; echo second >r.out
wait_for go2; echo d >>'logs/x y.dat'
`,
      '*.out, logs/*.dat, logs/etc/*',
    );
    await until('the first bytes', () => read('logs/x y.dat') === 'a\nb' || undefined, 120_000);
    await until('the other file', () => read('r.out') === 'one\n' || undefined, 30_000);
    sshd.killSessions();
    killMatching('gridmanager/main', agent);
    agent.file('go1', '');
    await until('more', () => read('logs/x y.dat') === 'a\nbc\n' || undefined, 120_000);
    await until('the file anew', () => read('r.out') === 'second\n' || undefined, 60_000);
    agent.file('go2', '');
    await agent.ok('wait', '--timeout', '200', String(cluster));
    expect(read('logs/x y.dat')).toBe('a\nbc\nd\n');
    expect(readdirSync(home('.'), { recursive: true, encoding: 'utf8' }).sort()).toEqual(
      ['logs', 'logs/x y.dat', 'r.out'].sort(),
    );
  });
});
