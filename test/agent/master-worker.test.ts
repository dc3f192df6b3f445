import { spawn } from 'node:child_process';
import { cpSync, readdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Sshd, startSshd } from '../sites/sshd.ts';
import { TestAgent, until } from './agent.ts';
import { killMatching } from './kill.ts';

const PYTHON = '/usr/bin/python3';
const EXAMPLE = resolve('examples/master-worker');
const N = 7;
const TASKS = N * (N - 1);
const BRUTE_FORCE = `from itertools import permutations
from qap import cost, problem
print(min(cost(*problem(${N}), places) for places in permutations(range(${N}))))`;

describe('the example of a master and its workers', () => {
  let agent: TestAgent;
  let sshd: Sshd;
  beforeAll(async () => {
    sshd = await startSshd();
    agent = new TestAgent({ HOME: sshd.clientHome, SSH_AUTH_SOCK: undefined });
    agent.config('[glidein]\nnode = "own"\n[gridmanager]\nrestart_max = "100ms"\n[pool]\ncpus = 2\n');
    agent.site('login', { url: sshd.url, batch: 'fork', more: '[limits]\npoll_min = "1s"\n' });
    cpSync(EXAMPLE, agent.work, { recursive: true });
    await agent.ok('up');
  }, 120_000);
  afterAll(async () => {
    await agent.end();
    await sshd.stop();
  });

  const python = async (...words: string[]) => {
    const child = spawn(PYTHON, words, { cwd: agent.work, stdio: ['ignore', 'pipe', 'inherit'] });
    let said = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => (said += text));
    expect(await new Promise((done) => child.once('exit', done))).toBe(0);
    return said;
  };

  it('finds what brute force finds, with workers in the pool and at a site, whatever is killed', async () => {
    const submitted = agent.read('workers.sub').replace(/^arguments.*$/m, `arguments = ${N} $(ClusterId).$(ProcId)`);
    const two = submitted.replace('queue 4', 'queue 2');
    const master = python('master.py', String(N));
    const inPool = await agent.submit(two);
    const atSite = await agent.submit(`universe = grid\ngrid_resource = batch fork login\n${two}`);
    const done = () => readdirSync(join(agent.work, 'mw/done')).length;
    await until('some tasks', () => done() > 3 || undefined, 100_000);
    killMatching('gridmanager/main', agent);
    const said = await master;
    await agent.ok('wait', '--timeout', '100', String(inPool), String(atSite));
    expect(/best: (\d+)/.exec(said)?.[1]).toBe((await python('-c', BRUTE_FORCE)).trim());
    expect(readdirSync(join(agent.work, 'mw/taken'))).toEqual([]);
    expect(done()).toBe(TASKS);
    const outputs = readdirSync(agent.work).filter((name) => name.endsWith('.out'));
    const counts = outputs.map((name) => Number(/did (\d+) tasks/.exec(agent.read(name))?.[1]));
    expect(counts).toHaveLength(4);
    expect(counts.reduce((sum, one) => sum + one)).toBe(TASKS);
  }, 400_000);
});
