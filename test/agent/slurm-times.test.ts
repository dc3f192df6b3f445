import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TestAgent, until } from './agent.ts';
import { killMatching } from './kill.ts';
import { call } from './said.ts';

describe("times and signals of sbatch's options in the pool", { timeout: 120_000 }, () => {
  const agent = new TestAgent();
  beforeAll(async () => {
    agent.config('[pool]\ncpus = 4\n[scheduler]\nperiodic_interval = "1s"\n');
    await agent.ok('compat', 'install', join(agent.dir, 'bin'));
  }, 60_000);
  afterAll(() => agent.end());

  const ours = (command: string, ...args: string[]) => call(agent, {}, join(agent.dir, 'bin', command), args);
  const submit = async (...args: string[]) => {
    const { code, stdout, stderr } = await ours('sbatch', '--parsable', ...args);
    expect([code, stderr]).toEqual([0, '']);
    return stdout.trim();
  };
  const state = async (id: string) =>
    (await ours('sacct', '-n', '-X', '-P', '-j', id, '-o', 'State')).stdout.trim().split(' ')[0];
  const ends = (id: string, how: string) =>
    until(`${id} to be ${how}`, async () => ((await state(id)) === how ? true : undefined));

  it('--begin: a job does not start before, and says why it waits', async () => {
    const at = Math.floor(Date.now() / 1000) + 8;
    const first = await submit('-o', 'first', '--begin=now+8', '--wrap', 'date +%s');
    const after = await submit('-o', 'after', '-d', `afterany:${first}`, '--begin=now+1hour', '--wrap', 'true');
    const past = await submit('-o', 'past', '--begin=2010-01-01', '--wrap', 'date +%s');
    expect((await ours('squeue', '-h', '-j', first, '-o', '%t %r')).stdout).toBe('PD BeginTime\n');
    expect((await ours('squeue', '-h', '--start', '-j', first)).stdout).toMatch(/ PD \d{4}-\d\d-\d\dT/);
    await ends(past, 'COMPLETED');
    await ends(first, 'COMPLETED');
    expect(Number(agent.read('first'))).toBeGreaterThanOrEqual(at);
    await until('the dependency to be met', async () =>
      (await ours('squeue', '-h', '-j', after, '-o', '%r')).stdout === 'BeginTime\n' ? true : undefined,
    );
    expect(await state(after)).toBe('PENDING');
    await ours('scancel', after);
    expect(await ours('sbatch', '--begin=nonsense', '--wrap', 'true')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("'nonsense' is not a time"),
    });
  });

  it('--deadline: a job that runs, or cannot end in time, is removed', async () => {
    const runs = await submit('--deadline=now+4', '--wrap', 'sleep 600');
    const long = await submit('--deadline=now+1hour', '-t', '61', '--wrap', 'true');
    await ends(runs, 'DEADLINE');
    await ends(long, 'DEADLINE');
    expect((await ours('sbatch', '--deadline=2010-01-01', '--wrap', 'true')).stderr).toContain('it has passed');
  });

  it('--signal: goes to what the script has started, or with B: to the script, through the end of the worker', async () => {
    const script = (file: string) => {
      const child = `sh -c 'trap "echo child >>${file}; exit 0" USR1; while :; do sleep 0.1; done'`;
      return `trap 'echo script >>${file}' USR1\n${child} &\nwhile :; do wait; kill -0 $! 2>/dev/null || break; done; exec sleep 600`;
    };
    const below = await submit('-t', '1', '--signal=USR1@48', '--wrap', script('below'));
    const shell = await submit('-t', '1', '--signal=B:USR1@48', '--wrap', script('shell'));
    const none = await ours('sbatch', '--signal=USR1', '--wrap', 'true');
    expect(none.stderr).toContain('--signal=USR1 has no effect in the pool: the job has no time limit (--time)');
    await until('both to run', async () =>
      (await ours('squeue', '-h', '-j', `${below},${shell}`, '-o', '%t')).stdout === 'R\nR\n' ? true : undefined,
    );
    killMatching('worker.mjs', agent);
    for (const file of ['below', 'shell']) await until(`the signal of ${file}`, () => agent.read(file));
    expect([await state(below), await state(shell)]).toEqual(['RUNNING', 'RUNNING']);
    await ours('scancel', below, shell);
    await ends(below, 'CANCELLED');
    await ends(shell, 'CANCELLED');
    expect([agent.read('below'), agent.read('shell')]).toEqual(['child\n', 'script\n']);
    expect((await ours('sbatch', '-t', '1', '--signal=B:FOO@10', '--wrap', 'true')).code).toBe(1);
  });
});
