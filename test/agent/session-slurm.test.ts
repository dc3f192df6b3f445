import { type ChildProcess, spawn } from 'node:child_process';
import { chmodSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { shellWords } from '../../src/util/shell-quote.ts';
import { skipWithoutSlurm } from '../sites/slurm.ts';
import { CLI, type TestAgent, until } from './agent.ts';
import { type LoginAndCluster, startLoginAndCluster } from './login-and-cluster.ts';
import { call } from './said.ts';

/** A person at a terminal, by script(1). */
class Typist {
  said = '';
  readonly process: ChildProcess;
  readonly ended: Promise<number | null>;

  constructor(agent: TestAgent, words: readonly string[], env: NodeJS.ProcessEnv = {}) {
    this.process = spawn('script', ['-qec', `stty rows 33 cols 99; exec ${shellWords(words)}`, '/dev/null'], {
      cwd: agent.work,
      env: { ...agent.env, SHELL: '/bin/sh', ...env },
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    this.process.stdout?.setEncoding('utf8').on('data', (text: string) => (this.said += text));
    this.ended = new Promise((resolve) => this.process.once('close', resolve));
  }

  async sees(text: string): Promise<void> {
    await until(`${JSON.stringify(text)} on the terminal`, () => this.said.includes(text) || undefined, 60_000);
  }

  types(line: string): void {
    this.process.stdin?.write(`${line}\n`);
  }
}

describe.skipIf(skipWithoutSlurm())('a session in a job', { timeout: 180_000 }, () => {
  let ground: LoginAndCluster;
  let agent: TestAgent;
  let bin: string;
  beforeAll(async () => {
    ground = await startLoginAndCluster(1, 2);
    ({ agent, bin } = ground);
  }, 120_000);
  afterAll(() => ground?.stop());

  const ours = (...words: string[]) => [process.execPath, CLI, ...words];
  const newest = async () => {
    const [job] = JSON.parse(await agent.ok('history', '--json', '--limit', '1')) as Record<string, unknown>[];
    return job;
  };

  it('runs a program of here at the terminal, with what the job has, and its files come home', async () => {
    chmodSync(
      agent.file('ask.sh', '#!/bin/sh\nstty size\necho "$COLOUR $1?"\nread answer\necho "$answer" >answer\nexit 5\n'),
      0o755,
    );
    const person = new Typist(agent, ours('run', '--tty', '--env', 'COLOUR=red $(x)', '--', './ask.sh', "it's"));
    await person.sees("red $(x) it's?");
    expect(person.said).toContain('33 99');
    person.types('yes, "this"');
    expect(await person.ended).toBe(5);
    expect(agent.read('answer')).toBe('yes, "this"\n');
    expect(readdirSync(agent.work).filter((name) => name.startsWith('.gryphus'))).toEqual([]);
    expect(await newest()).toMatchObject({ JobStatus: 4, ExitCode: 5 });
  });

  it('without a terminal passes its streams', async () => {
    const ran = await agent.run(['run', '--tty', '--', 'sh', '-c', 'tr a-z A-Z; echo wrong >&2; exit 3'], {
      input: 'typed\n',
    });
    expect(ran).toEqual({ code: 3, stdout: 'TYPED\n', stderr: 'wrong\n' });
  });

  it.each(['cluster', 'login'])('srun --pty opens a shell at %s', async (site) => {
    const person = new Typist(agent, [join(bin, 'srun'), '-M', site, '-c', '2', '--pty', 'sh'], { PS1: '$ ' });
    await person.sees('has been allocated resources');
    person.types('echo "job $((40 + 2)) ${SLURM_CPUS_PER_TASK-none} ${SLURM_JOB_ID:+known}"');
    await person.sees('job 42 2 known');
    // Ctrl-C is for what runs in the shell.
    person.types('trap "echo caught" INT; sleep 100; echo "status $((1 + 1))"');
    await until('the command to run', () => person.said.includes('sleep 100') || undefined);
    person.process.stdin?.write('\x03');
    person.types('echo "still $((3 + 3))"');
    await person.sees('still 6');
    person.types('exit 4');
    expect(await person.ended).toBe(4);
    expect(person.said).toMatch(/^srun: job \d+ queued and waiting for resources\r$/m);
    expect(await newest()).toMatchObject({ JobStatus: 4, ExitCode: 4 });
  });

  it('qsub -I opens a shell', async () => {
    const person = new Typist(agent, [join(bin, 'qsub'), '-I', '-l', 'select=1:ncpus=1'], { PS1: '$ ' });
    await person.sees(' ready');
    person.types('echo "in $PBS_ENVIRONMENT $((40 + 2))"; exit 2');
    await person.sees('in PBS_INTERACTIVE 42');
    expect(await person.ended).toBe(2);
    expect(person.said).toMatch(/qsub: job \d+\.\S+ completed/);
  });

  const idle = async () => (await agent.ok('q', '-af', 'ClusterId')) === '' || undefined;

  it('ends with its terminal', async () => {
    const person = new Typist(agent, ours('run', '--tty', '--', 'sh', '-c', 'echo "in $((40 + 2))"; sleep 1000'));
    await person.sees('in 42');
    // As when the window is closed: the terminal is gone.
    person.process.kill('SIGKILL');
    await person.ended;
    await until('the queue to be empty', idle, 60_000);
    expect(await newest()).toMatchObject({ JobStatus: 3 });
  });

  it('is over when its job is held, evicted or taken away, says why, and leaves nothing behind', async () => {
    const words = ours('run', '--tty', '--', 'sh', '-c', 'echo "in $((40 + 2))"; sleep 1000');
    for (const [how, said] of [
      [['vacate', '--all'], 'its job lost its machine'],
      [['hold', '--all'], 'via gryphus hold'],
      [['rm', '--all'], 'via gryphus rm'],
    ] as const) {
      const person = new Typist(agent, words);
      await person.sees('in 42');
      await agent.ok(...how);
      expect(await person.ended).not.toBe(0);
      expect(person.said).toContain(said);
      expect(person.said).not.toContain('--attach');
      await until('the queue to be empty', idle, 60_000);
      expect(readdirSync(join(agent.home, 'state/runs')), said).toEqual([]);
    }
  });

  it('srun writes the files that it is told, and --kill-on-bad-exit ends the other tasks', async () => {
    const srun = (...words: string[]) => call(agent, {}, join(bin, 'srun'), words);
    const both = await srun('-M', 'login', '-o', 'both.%j', 'sh', '-c', 'echo out; echo err >&2');
    expect(both).toMatchObject({ code: 0, stdout: '', stderr: '' });
    const [name = ''] = readdirSync(agent.work).filter((one) => one.startsWith('both.'));
    expect(agent.read(name)).toBe('out\nerr\n');
    const one = await srun('-M', 'login', '-e', 'errors', 'sh', '-c', 'echo out; echo err >&2');
    expect(one).toMatchObject({ code: 0, stdout: 'out\n', stderr: '' });
    expect(agent.read('errors')).toBe('err\n');
    const command = ['sh', '-c', '[ "$SLURM_PROCID" = 1 ] && exit 7; exec sleep 1000'];
    for (const site of ['login', 'cluster']) {
      const killed = await srun('-M', site, '-n', '2', '--kill-on-bad-exit=1', ...command);
      expect(killed.code, site).not.toBe(0);
      expect(killed.stderr, site).toContain('task 1: Exited with exit code 7');
    }
  });
});
