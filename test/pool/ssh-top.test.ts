import { execFileSync, spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { shellWords } from '../../src/util/shell-quote.ts';
import { CLI, TestAgent, until } from '../agent/agent.ts';
import { killMatching } from '../agent/kill.ts';

describe('beside a running job', () => {
  let agent: TestAgent;
  let job: string;

  beforeAll(async () => {
    agent = new TestAgent();
    agent.config('[pool]\ncpus = 2\n');
    agent.site('here', { url: 'local', batch: 'fork' });
    agent.file(
      'busy.sh',
      '#!/bin/sh\nenv | grep -E "^(_CONDOR_|BATCH_SYSTEM|GRYPHUS_)" | sort >variables; echo kept > "a file"\nwhile [ ! -e done ]; do :; done\necho over\n',
      0o755,
    );
    job = `${await agent.submit('executable = busy.sh\nenvironment = "COLOUR=red"\noutput = out\nqueue\n')}.0`;
    await until(
      'the job to run',
      async () => (await agent.ok('q', '--json', job)).includes('"JobStatus": 2') || undefined,
    );
  }, 120_000);
  afterAll(async () => {
    killMatching('worker.mjs', agent);
    await agent.end();
  });

  it('a command sees what the job sees, and its streams and status come back', async () => {
    const seen = await agent.run(['ssh', job, '--', 'cat "a file" -; echo "$COLOUR" >&2; exit 7'], {
      input: 'typed\n',
    });
    expect(seen).toEqual({ code: 7, stdout: 'kept\ntyped\n', stderr: 'red\n' });
    const words = ['printf', '%s|', 'a b', '$(x)', "o'clock", 'naïve\n'];
    expect((await agent.run(['ssh', job, '--', ...words])).stdout).toBe("a b|$(x)|o'clock|naïve\n|");
    const variables = 'env | grep -E "^(_CONDOR_|BATCH_SYSTEM|GRYPHUS_)" | sort';
    const jobs = readFileSync(join(agent.work, 'variables'), 'utf8');
    expect(jobs).toMatch(/^BATCH_SYSTEM=[^]*^_CONDOR_JOB_AD=[^]*^_CONDOR_SLOT=slot1_1$/m);
    expect((await agent.run(['ssh', job, '--', variables])).stdout).toBe(jobs);
    const much = await agent.run(['ssh', job, '--', 'head -c 9000000 /dev/zero | tr "\\0" x']);
    expect(much.stdout.length).toBe(9_000_000);
  }, 60_000);

  it('who types at a terminal has one there, of the size that their window has', async () => {
    const own = join(agent.work, 'terminal');
    const command = shellWords([process.execPath, CLI, 'ssh', job]);
    const typing = spawn('script', ['-qec', `tty > ${own}; stty rows 33 cols 99; ${command}`, '/dev/null'], {
      env: { ...agent.env, SHELL: '/bin/sh' },
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    let said = '';
    typing.stdout.setEncoding('utf8').on('data', (text: string) => (said += text));
    const ended = new Promise<number | null>((resolve) => typing.once('close', resolve));
    typing.stdin.write('stty size; test -t 0 && echo "with $((40 + 2))"\n');
    await until('an answer', () => said.includes('with 42') || undefined);
    expect(said).toContain('33 99');
    execFileSync('stty', ['-F', readFileSync(own, 'utf8').trim(), 'rows', '44', 'cols', '111']);
    typing.stdin.write('while [ "$(stty size)" != "44 111" ]; do sleep 0.1; done; echo "now $((50 + 5))"\n');
    await until('the size to follow', () => said.includes('now 55') || undefined);
    typing.stdin.write('exit 3\n');
    expect(await ended).toBe(3);
  }, 60_000);

  it('top says what it takes', async () => {
    const [row] = JSON.parse(await agent.ok('top', job, '--json')) as { cpuSeconds: number; memoryKb: number }[];
    expect(row?.cpuSeconds).toBeGreaterThan(0);
    expect(row?.memoryKb).toBeGreaterThan(100);
    expect(await agent.ok('top', '--all', '--once')).toMatch(/^JOB .*CPU%.*\n1\.0 +\S+ +\d+ +\d+:\d\d +\d+ MB /);
    expect((await agent.run(['top'])).code).toBe(2);
  }, 60_000);

  it('a site that runs jobs on its login host lets people in, too; no other batch system does', async () => {
    const text = 'universe = grid\nexecutable = busy.sh\ntransfer_output_files = ""\nshould_transfer_files = YES\n';
    const cluster = await agent.submit(`${text}grid_resource = batch fork here\nqueue\n`);
    const running = async () =>
      (await agent.ok('q', '--json', String(cluster))).includes('"JobStatus": 2') || undefined;
    await until('it to run', running, 60_000);
    const left = await until('its file', async () => {
      const { stdout } = await agent.run(['ssh', String(cluster), '--', 'cat "a file" && touch done']);
      return stdout === '' ? undefined : stdout;
    });
    expect(left).toBe('kept\n');
    await agent.ok('wait', '--no-outcome', '--timeout', '60', String(cluster));
    const after = await agent.run(['ssh', String(cluster)]);
    expect(after.code).toBe(1);
    expect(after.stderr).toContain('There is no job');
  }, 120_000);

  it('what was started there ends with the job', async () => {
    const shell = agent.start(['ssh', job, '--', 'echo here; sleep 600 & echo $! > shell.pid; wait']);
    let said = '';
    shell.stdout?.setEncoding('utf8').on('data', (text: string) => (said += text));
    const ended = new Promise<number | null>((resolve) => shell.once('close', resolve));
    await until('the shell', () => said.includes('here') || undefined);
    await agent.ok('rm', job);
    expect(await ended).toBe(255);
    await agent.ok('wait', '--no-outcome', '--timeout', '60', job);
    const pid = Number(agent.read('shell.pid'));
    expect(pid).toBeGreaterThan(1);
    await until('the sleep to be gone', () => !existsSync(`/proc/${pid}/cmdline`) || undefined);
  }, 90_000);
});
