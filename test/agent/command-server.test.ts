import { spawn } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { connect } from 'node:net';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CLI, type Ran, TestAgent, until } from './agent.ts';

const CLIENT = join(dirname(CLI), `../native/${process.arch}/gryphus-client`);
const agent = new TestAgent({ SINFO_FORMAT: undefined, SQUEUE_FORMAT: undefined });
const bin = join(agent.dir, 'bin');
const socket = join(agent.home, 'state/run/commands');

beforeAll(async () => {
  await agent.ok('compat', 'install', bin);
  await agent.ok('up');
});
afterAll(() => agent.end());

interface How {
  readonly input?: string;
  readonly cwd?: string;
  readonly env?: NodeJS.ProcessEnv;
}

function run(
  program: string,
  words: readonly string[],
  { input = '', cwd = agent.work, env = {} }: How = {},
): Promise<Ran> {
  const child = spawn(program, words, { cwd, env: { ...agent.env, ...env } });
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  child.stdin.on('error', () => undefined).end(input);
  return new Promise((ended) => child.once('close', (code) => ended({ code, stdout, stderr })));
}

const called = (name: string, words: readonly string[] = [], how: How = {}) => run(join(bin, name), words, how);
/** What the server answers; status 99 if the command would be run by its own process. */
const served = (name: string, words: readonly string[] = [], how: How = {}, program = CLI) =>
  run(
    CLIENT,
    [agent.file('not-served', '#!/bin/sh\nexit 99\n', 0o755), program, 'compat', 'speak', name, ...words],
    how,
  );
const own = (name: string, words: readonly string[] = [], how: How = {}) =>
  run(process.execPath, [CLI, 'compat', 'speak', name, ...words], how);

async function pid(): Promise<number> {
  await until('a command server', async () => {
    await called('sinfo');
    return existsSync(socket) || undefined;
  });
  const records = join(agent.home, 'state/daemons');
  return until('its record', async () => {
    for (const file of readdirSync(records)) {
      const text = readFileSync(join(records, file), 'utf8');
      if (text.includes('"name":"commands"')) return Number(/"pid":(\d+)/.exec(text)?.[1]);
    }
    return undefined;
  });
}

const isGone = (id: number) => !existsSync(`/proc/${id}`) || undefined;

describe('a command server', () => {
  it('is started by the second of two calls, and answers as a process of its own would', async () => {
    await called('squeue');
    expect(existsSync(socket)).toBe(false);
    await pid();
    const script = agent.file('job.sh', '#!/bin/sh\n#SBATCH -H\npwd\n');
    expect((await called('sbatch', [script])).stdout).toBe('Submitted batch job 1\n');
    for (const [name, words] of [
      ['squeue', ['-o', '%i %j %T']],
      ['squeue', ['--nosuch']],
      ['scontrol', ['show', 'job', '1']],
      ['condor_q', ['-af', 'ClusterId', 'Iwd']],
      ['condor_q', ['--nosuch']],
    ] as const)
      expect([name, words, await served(name, words)]).toEqual([name, words, await own(name, words)]);
  });
  it("runs a command in its caller's place", async () => {
    await pid();
    const place = join(agent.work, "it's a\n$(place) 🦅");
    mkdirSync(place, { recursive: true });
    writeFileSync(join(place, 'a job.sub'), 'executable = /bin/true\nhold = true\nqueue\n');
    const { code } = await served('condor_submit', ['a job.sub'], { cwd: place });
    expect(code).toBe(0);
    expect((await served('condor_q', ['-af', 'Iwd'])).stdout.split('\n').slice(1).join('\n')).toBe(`${place}\n`);
    expect((await served('squeue', ['-h'], { env: { SQUEUE_FORMAT: '%i@' } })).stdout).toBe('1@\n2@\n');
    expect((await served('squeue', ['-h', '-o', '%i'])).stdout).toBe('1\n2\n');
    // Another agent, by a variable of the same call.
    const other = { GRYPHUS_HOME: join(agent.dir, 'none') };
    expect((await served('squeue', [], { env: other })).code).toBe(99);
    const dump = ['compat', 'speak', 'condor_submit', '-dump', 'dumped', 'a job.sub'];
    await run('sh', ['-c', 'umask 027; exec "$0" "$@"', CLIENT, '/bin/false', CLI, ...dump], { cwd: place });
    expect(statSync(join(place, 'dumped')).mode & 0o777).toBe(0o640);
    rmSync(place, { recursive: true });
  });
  it('leaves to their own processes what reads, lasts, or needs another place', async () => {
    await pid();
    const text = '#!/bin/sh\n#SBATCH -H -J read\n';
    expect((await served('sbatch', [], { input: text })).code).toBe(99);
    expect((await called('sbatch', [], { input: text })).code).toBe(0);
    expect((await served('squeue', ['-h', '-n', 'read', '-o', '%j'])).stdout).toBe('read\n');
    for (const [name, words] of [
      ['sbatch', ['--wait', 'x.sh']],
      ['sbatch', ['-HW', 'x.sh']],
      ['srun', ['true']],
      ['condor_wait', ['log']],
      ['condor_rm', ['-h']],
      ['condor_q', ['-help']],
    ] as const)
      expect((await served(name, words)).code).toBe(99);
    expect((await served('squeue', [], { env: { TZ: 'Asia/Tokyo' } })).code).toBe(99);
    expect((await served('squeue', [], {}, '/another/gryphus.js')).code).toBe(99);
    // What ran in between has changed nothing.
    expect(await served('sinfo')).toEqual(await own('sinfo'));
  });
  it('answers many callers at once, each its own', async () => {
    await pid();
    const names = Array.from({ length: 12 }, (_, n) => `%i-${n}`);
    const answers = await Promise.all(names.map((format) => called('squeue', ['-h', '-j', '1', '-o', format])));
    expect(answers.map(({ stdout }) => stdout)).toEqual(names.map((_, n) => `1-${n}\n`));
  });
  it('follows a change of the configuration', async () => {
    await pid();
    agent.site('extra', { url: 'local', batch: 'fork' });
    expect((await served('sinfo')).stdout).toContain('extra');
    rmSync(join(agent.home, 'sites/extra.toml'));
    expect((await served('sinfo')).stdout).not.toContain('extra');
  });
  it('outlives whoever sends it anything, or goes', async () => {
    const before = await pid();
    for (const bytes of ['x', '\xff\xff\xff\xff', '\x04\0\0\0abcd', 'GET / HTTP/1.1\r\n\r\n'])
      await new Promise<void>((gone) => {
        const odd = connect({ path: socket }, () => odd.end(Buffer.from(bytes, 'latin1')));
        odd.on('error', () => undefined).on('close', () => gone());
        odd.resume();
      });
    await run('sh', ['-c', `timeout -s KILL 0.02 ${join(bin, 'condor_q')} -long`]);
    // It may still be busy with a command whose caller has gone.
    await until('an answer', async () => (await served('sinfo')).code === 0 || undefined);
    expect(await pid()).toBe(before);
  });
  it('that is killed is missed by nobody', async () => {
    const first = await pid();
    process.kill(first, 'SIGKILL');
    await until('its end', () => isGone(first));
    expect((await called('sinfo')).code).toBe(0);
    rmSync(join(agent.home, 'state/run/commands.started'), { force: true });
    await until('another', async () => (await called('sinfo'), (await served('sinfo')).code === 0 || undefined));
  });
  it('of a build that is there no more answers nothing, and ends', async () => {
    // The same build under another name, which then is another.
    const place = join(agent.dir, 'build');
    mkdirSync(join(place, 'bin'), { recursive: true });
    for (const part of ['cli', 'compat-cli', 'native', 'daemons'])
      symlinkSync(join(dirname(CLI), '..', part), join(place, part));
    writeFileSync(join(place, '.built'), 'one\n');
    writeFileSync(join(place, 'bin/package.json'), '{}');
    symlinkSync(CLI, join(place, 'bin/gryphus.js'));
    const old = await pid();
    process.kill(old, 'SIGTERM');
    await until('its end', () => isGone(old));
    const program = join(place, 'bin/gryphus.js');
    const child = spawn(process.execPath, ['--preserve-symlinks-main', program, 'compat', 'serve'], {
      cwd: '/',
      env: agent.env,
    });
    const ended = new Promise<number | null>((end) => child.once('close', end));
    await until('it', async () => (await served('sinfo', [], {}, program)).code === 0 || undefined);
    writeFileSync(join(place, '.new'), 'two\n');
    renameSync(join(place, '.new'), join(place, '.built'));
    expect((await served('sinfo', [], {}, program)).code).toBe(99);
    expect(await ended).toBe(0);
    expect(existsSync(socket)).toBe(false);
  });
  it('ends with `gryphus down`, and when its directory goes', async () => {
    rmSync(join(agent.home, 'state/run/commands.started'), { force: true });
    const first = await pid();
    await agent.ok('down');
    await until('its end', () => isGone(first), 5000);
    rmSync(join(agent.home, 'state/run/commands.started'), { force: true });
    const second = await pid();
    rmSync(socket);
    await until('its end', () => isGone(second), 15_000);
  });
  it('is not used by commands that were installed without it', async () => {
    const without = join(agent.dir, 'without');
    await agent.ok('compat', 'install', without, '--no-server');
    expect(readFileSync(join(without, 'squeue'), 'utf8')).not.toContain('gryphus-client');
    expect(readFileSync(join(bin, 'squeue'), 'utf8')).toContain('gryphus-client');
  });
});
