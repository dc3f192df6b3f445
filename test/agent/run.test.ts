import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TestAgent, until } from './agent.ts';
import { atTerminal } from '../commands/cli.ts';
import { kill, processesOf } from './kill.ts';

/** Words that a shell, the submit language or an environment could change. */
const AWKWARD = [
  'a b',
  "it's",
  'say "so"',
  'two\nlines\n',
  '$(HOME) $HOME `id` $$',
  'ünï ☃ 🐿',
  '',
  '--',
  '-h',
  '--help',
  'a=b',
  '\\n \\044 \\',
  '*',
  '{}',
  "''",
];

describe('gryphus run', { timeout: 120_000 }, () => {
  const agent = new TestAgent();
  beforeAll(async () => {
    agent.config('[pool]\ncpus = 4\n');
    await agent.ok('up');
  }, 120_000);
  afterAll(() => agent.end());

  const left = () => readdirSync(join(agent.home, 'state/runs'));
  /** A running command, what it has said so far, and its end. */
  function started(...words: readonly string[]) {
    const child = agent.start(['run', ...words]);
    const said = { stdout: '', stderr: '' };
    child.stdout?.setEncoding('utf8').on('data', (text: string) => (said.stdout += text));
    child.stderr?.setEncoding('utf8').on('data', (text: string) => (said.stderr += text));
    child.stdin?.end();
    const code = new Promise<number | null>((resolve) => child.once('close', resolve));
    return { child, said, code };
  }

  it('keeps streams apart, ends with the exit status, and leaves no files', async () => {
    const ran = await agent.run(['run', '--', 'sh', '-c', 'echo out; echo err >&2; exit 7']);
    expect(ran).toEqual({ code: 7, stdout: 'out\n', stderr: 'err\n' });
    expect(left()).toEqual([]);
    expect((await agent.run(['run', 'sh', '-c', 'kill -9 $$'])).code).toBe(137);
    expect((await agent.run(['run', '--', 'no-such-command'])).code).toBe(127);
  });

  it.each(['--pool', '--site=local'])('passes every argument on unchanged: %s', async (where) => {
    const { code, stdout } = await agent.run(['run', where, '--', 'printf', '%s\\0', ...AWKWARD]);
    expect(stdout.split('\0').slice(0, -1)).toEqual(AWKWARD);
    expect(code).toBe(0);
  });

  it('passes variables on unchanged', async () => {
    const value = AWKWARD.join('|');
    const words = ['run', '--env', `A=${value}`, '--env', 'FROM_HERE', '--', 'sh', '-c', 'printf %s "$A$FROM_HERE"'];
    expect((await agent.run(words, { env: { FROM_HERE: ' and $(B)' } })).stdout).toBe(`${value} and $(B)`);
    expect((await agent.run(['run', '--env', 'NOWHERE', '--', 'true'])).stderr).toContain('no such variable');
  });

  it('passes standard input on, unless told not to', async () => {
    const input = `${'line\n'.repeat(50_000)}end`;
    const ran = await agent.run(['run', '--', 'cat'], { input });
    expect(ran.stdout === input).toBe(true);
    expect((await agent.run(['run', '--no-stdin', '--', 'cat'], { input: 'x' })).stdout).toBe('');
  });

  it('sends a relative program and the inputs, and brings new files back', async () => {
    agent.file('my $(prog).sh', '#!/bin/sh\ncat data; echo "$1" >result; mkdir sub; echo x >other\n', 0o755);
    agent.file('data', 'the data\n');
    const ran = await agent.run(['run', '--input', 'data', '--output', 'result', '--', './my $(prog).sh', 'one']);
    expect(ran).toEqual({ code: 0, stdout: 'the data\n', stderr: '' });
    expect(agent.read('result')).toBe('one\n');
    expect(readdirSync(agent.work)).not.toContain('other');
    agent.file('here.sh', '#!/bin/sh\necho from here >made\n');
    expect((await agent.run(['run', 'here.sh'])).code).toBe(0);
    expect(agent.read('made')).toBe('from here\n');
    const missing = await agent.run(['run', './missing']);
    expect([missing.code, missing.stderr]).toEqual([66, expect.stringContaining('/work/missing" to run')]);
  });

  it('shows output while the job runs, and the first Ctrl-C removes it', async () => {
    const { child, said, code } = started('--', 'sh', '-c', 'echo begun; sleep 300');
    await until('the output', () => (said.stdout === 'begun\n' ? true : undefined));
    child.kill('SIGINT');
    expect(await code).toBe(130);
    expect(said.stderr).toMatch(/Removing job \d+\.0 \(Ctrl-C again/);
    const [, job = ''] = /job (\S+)/.exec(said.stderr) ?? [];
    expect(await agent.ok('history', job, '-af', 'JobStatus')).toBe('3\n');
  });

  it('a second Ctrl-C leaves it running, and --attach comes back to it', async () => {
    const go = join(agent.work, 'go');
    const { child, said, code } = started(
      '--',
      'sh',
      '-c',
      `echo begun; until [ -e ${go} ]; do sleep 0.1; done; exit 4`,
    );
    await until('the output', () => (said.stdout === 'begun\n' ? true : undefined));
    child.kill('SIGINT');
    await until('the first message', () => (said.stderr.includes('Removing') ? true : undefined));
    child.kill('SIGINT');
    expect(await code).toBe(130);
    const [, job = ''] = /gryphus run --attach (\S+)/.exec(said.stderr) ?? [];
    agent.file('go', '');
    expect(await agent.run(['run', '--attach', job])).toEqual({ code: 4, stdout: 'begun\n', stderr: '' });
    expect(left()).toEqual([]);
  });

  it('SIGTERM removes it', async () => {
    const { child, said, code } = started('--', 'sh', '-c', 'echo begun; sleep 300');
    await until('the output', () => (said.stdout === 'begun\n' ? true : undefined));
    child.kill('SIGTERM');
    expect(await code).toBe(143);
  });

  it('survives the death of the Scheduler and the GridManager', async () => {
    const go = join(agent.work, 'go2');
    const { said, code } = started(
      '--',
      'sh',
      '-c',
      `echo one; until [ -e ${go} ]; do sleep 0.1; done; echo two; exit 5`,
    );
    await until('the output', () => (said.stdout === 'one\n' ? true : undefined));
    for (const what of ['scheduler/main', 'gridmanager/main']) {
      const pids = processesOf(what, agent);
      expect(pids.length).toBeGreaterThan(0);
      pids.forEach(kill);
    }
    agent.file('go2', '');
    expect(await code).toBe(5);
    expect(said).toEqual({ stdout: 'one\ntwo\n', stderr: '' });
  });

  it('a held job has no exit status', async () => {
    const { code, stderr } = await agent.run(['run', '--output', 'never-made', '--', 'true']);
    expect(code).toBe(125);
    expect(stderr).toMatch(/Job \d+\.0: It is held: .*'never-made'[^]*gryphus run --attach/);
    const late = await agent.run(['run', '--time', '1s', '--', 'sleep', '100']);
    expect([late.code, late.stderr]).toEqual([125, expect.stringContaining('It is held: ')]);
    await agent.ok('rm', '--all');
  });

  it('--detach returns at once, with the names of the output files', async () => {
    const { cluster, output, error } = JSON.parse(await agent.ok('run', '--detach', '--json', '--', 'echo', 'hello'));
    expect([output, error]).toEqual([`gryphus-${cluster}.0.out`, `gryphus-${cluster}.0.err`]);
    await agent.ok('wait', '--no-outcome', String(cluster));
    expect(agent.read(output)).toBe('hello\n');
    expect(statSync(join(agent.work, error)).size).toBe(0);
  });

  it('says what it was not told', async () => {
    expect((await agent.run(['run', '--cpus', '2'])).stderr).toContain('There is no command to run.');
    expect((await agent.run(['run', '--time', 'soon', '--', 'true'])).stderr).toContain('--time: ');
    expect((await agent.run(['run', '--site', 'nowhere', '--', 'true'])).code).toBe(68);
    expect((await agent.run(['run', '--memory', 'much', '--', 'true'])).stderr).toContain('--memory: ');
  });

  it('shows at a terminal why the job waits', async () => {
    const shown = atTerminal(['run', '--cpus', '64', '--', 'true'], { home: agent.home });
    const [job] = await until('the job', async () => {
      const text = await agent.ok('q', '-af:j', 'JobStatus', '--constraint', 'RequestCpus == 64');
      return text === '' ? undefined : [text.split(' ')[0] ?? ''];
    });
    await until('its reason', async () => ((await agent.ok('why', job)).includes('waits') ? true : undefined));
    await new Promise((resolve) => setTimeout(resolve, 3000));
    await agent.ok('rm', job);
    expect(await shown).toContain(`${job}: `);
  });
});
