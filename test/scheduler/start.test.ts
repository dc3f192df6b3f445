import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { openQueue } from '../../src/queue/api.ts';
import { processIdentity } from '../../src/util/process-identity.ts';
import { TestAgent, until } from '../agent/agent.ts';
import { kill, processesOf } from '../agent/kill.ts';

const agent = new TestAgent();
const living: ChildProcess[] = [];
afterAll(async () => {
  for (const child of living) child.kill('SIGKILL');
  await agent.end();
});

/** Managers that an earlier Scheduler left: the many dead ones keep the next Scheduler busy while some of the others end. */
const DEAD = 3000;
const LIVING = 20;

it('is not ended by a GridManager that ends while it starts', async () => {
  await agent.ok('up');
  const queue = await openQueue({ stateDir: join(agent.home, 'state'), start: 'never' });
  try {
    for (const pid of processesOf('scheduler/main.js', agent)) kill(pid);
    for (let n = 0; n < LIVING; n++) living.push(spawn('sleep', ['120'], { stdio: 'ignore' }));
    const note = (name: string, daemon: object) =>
      queue.kv.set('daemon', `gm:${name}`, JSON.stringify({ ...daemon, since: 1 }));
    const dead = { pid: 2 ** 22 + 1, started: '1' };
    await Promise.all([
      ...living.map(({ pid }) => note(`living-${pid}`, processIdentity(pid))),
      ...Array.from({ length: DEAD }, (_, n) => note(`dead-${n}`, dead)),
    ]);
    const started = agent.run(['up']);
    const left = async () => (await queue.kv.list('daemon')).length;
    await until('half of the start', async () => (await left()) < DEAD / 2 || undefined);
    for (const child of living) child.kill('SIGKILL');
    expect(await started).toMatchObject({ code: 0, stderr: '' });
    await until('all that ended to be forgotten', async () => (await left()) === 1 || undefined);
    expect(processesOf('scheduler/main.js', agent)).toHaveLength(1);
    expect(agent.log('scheduler.log')).toContain('it was started by an earlier Scheduler');
  } finally {
    await queue.close();
  }
}, 60_000);
