import { removeTree } from '../remove-tree.ts';
import { spawnSync } from 'node:child_process';
import {
  appendFileSync,
  closeSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { printUserLog } from '../../src/user-log/text.ts';
import { BIN, ended, gryphus, start } from './cli.ts';

let home: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'gry-'));
});
afterEach(() => removeTree(home));
const run = (words: readonly string[], stdin?: string) =>
  gryphus(words, { home, ...(stdin === undefined ? {} : { stdin }) });

describe('words that mean nothing', () => {
  it.each([
    ['sumbit', "There is no command 'sumbit'.", "Did you mean 'gryphus submit'?"],
    ['site tset', "There is no command 'site tset'.", "Did you mean 'gryphus site test'?"],
    ['q --nobath', 'Nonexistent flag: --nobath.', 'Did you mean --nobatch?\n  → See `gryphus q --help`.'],
    ['stat', "There is no command 'stat'.", "Did you mean 'gryphus status'?"],
    ['dag sub x.dag', "There is no command 'dag sub'.", "Did you mean 'gryphus dag submit'?"],
    ['condor_qq', "There is no command 'condor_qq'.", "Did you mean 'gryphus q'?"],
    ['watch', "There is no command 'watch'.", "Did you mean 'gryphus q --watch'?"],
    ['queue', "There is no command 'queue'.", "Did you mean 'gryphus q'?"],
    ['cancel 12', "There is no command 'cancel'.", "Did you mean 'gryphus rm JOBS'?"],
    ['ls', "There is no command 'ls'.", "Did you mean 'gryphus q'?"],
    ['srun x.sh', "There is no command 'srun'.", "Did you mean 'gryphus run -- COMMAND'?"],
    ['logs -f 12', "There is no command 'logs'.", "Did you mean 'gryphus tail JOB'?"],
    ['condor_submit x.sub', "There is no command 'condor_submit'.", "Did you mean 'gryphus submit FILE'?"],
    ['sbatch x.sh', "There is no command 'sbatch'.", "Did you mean 'gryphus submit FILE'?"],
    ['site remove c1', "There is no command 'site remove'.", "Did you mean 'gryphus site rm'?"],
    ['dag nothing', "There is no command 'dag nothing'.", 'See `gryphus dag --help`.'],
    ['q --verbos', 'Nonexistent flag: --verbos.', 'Did you mean --long?'],
    ['hold 12 --mesage x', 'Nonexistent flag: --mesage.', 'Did you mean --reason?'],
    ['q -u me', 'Nonexistent flag: -u.', 'Did you mean --allusers?'],
    ['rm -9 12', "'-9' is neither a cluster (12), nor a job (12.3), nor a user.", 'gryphus rm --force'],
    ['q -io', '-io: the I/O of jobs is not measured.', 'gryphus top --all'],
    ['q -factory', '-factory: ', 'gryphus q'],
    ['q -name x', '-name: this agent has a single queue', '--home'],
    ['status -schedd', '-schedd: the daemons belong to this agent', 'gryphus status'],
    ['status -master', '-master: the daemons belong to this agent', 'gryphus status'],
    ['config notify.emial', "There is no key 'notify.emial'.", "Did you mean 'notify.email'?"],
    ['down nosuch', 'gryphus: Unexpected argument: nosuch.', 'See `gryphus down --help`.'],
    ['site list a:b', 'gryphus: Unexpected argument: a:b.', 'See `gryphus site list --help`.'],
    ['rm', 'You did not specify any jobs.', '--constraint'],
    ['tail', 'gryphus: JOB is missing: a job (12.3); 12 is 12.0.', '--help'],
    ['map', 'gryphus: COMMAND is missing: a command line of the shell.', '--help'],
    ['glidein start', 'gryphus: Missing required flag --site.', '--help'],
    ['glidein start --site x -n 0', '--number: expected an integer greater than or equal to 1', '--help'],
    ['q --af', 'gryphus: Flag --af expects a value.', '--help'],
    ['edit 12.3 JobPrio', "'JobPrio' has no value.", 'NAME=VALUE'],
    ['tail x', "'x' is not a job.", '12.3'],
  ])('%s: one error, what to do, status 2', async (text, message, remedy) => {
    const { stdout, stderr, exit } = await run(text.split(' '));
    const [first = '', ...rest] = stderr.split('\n');
    expect(stdout).toBe('');
    expect(first).toMatch(/^gryphus: /);
    expect(first).toContain(message);
    expect(rest.join('\n')).toContain(remedy);
    expect(exit).toBe(2);
  });
});

it.each(['/proc/nowhere', '/dev/null/x'])('a home that cannot be made, %s: one error that says so', async (place) => {
  const { stderr, exit } = await run(['q', '--home', place]);
  expect(stderr).toMatch(new RegExp(`^gryphus: The directory ${place}.* cannot be made: E`));
  expect(stderr).toContain('GRYPHUS_HOME');
  expect(exit).toBe(77);
});

it.each([
  [
    'universe = vm\nvm_type = kvm\nvm_memory = 100\nvm_disk = a:b:w',
    'Jobs of the vm universe (13) cannot be run here.',
  ],
])('a job of a universe that is not here, by its name: %j', async (lines, message) => {
  const { stderr, exit } = await run(['submit'], `${lines}\nexecutable = /bin/true\nqueue\n`);
  expect(stderr).toContain(message);
  expect(exit).toBe(65);
  await run(['down']);
});

it('a submit file that is a pipe is read once', () => {
  const text = 'executable = /bin/true\nqueue 2\n';
  const { status, stdout, stderr } = spawnSync(
    'sh',
    ['-c', 'cat | "$@"', 'sh', process.execPath, BIN, 'submit', '--dry-run', '/dev/stdin'],
    { input: text, encoding: 'utf8', cwd: home, env: { ...process.env, GRYPHUS_HOME: home } },
  );
  expect({ status, stderr }).toMatchObject({ status: 0 });
  expect(stdout).toMatch(/Cmd = "\/bin\/true"/);
});

describe('help', () => {
  it('is there for every command, and says what it is', async () => {
    const { stdout, exit } = await run(['--help']);
    expect(exit).toBe(0);
    for (const word of ['submit', 'q', 'history', 'site', 'why', 'completion'])
      expect(stdout).toContain(`\n  ${word} `);
    for (const help of ['-h', '-help', '--help']) expect((await run([help])).stdout).toBe(stdout);
    expect((await run(['q', '-h'])).stdout).toContain('$ gryphus q [JOBS...]');
    for (const version of ['version', '-version', '-V']) expect((await run([version])).stdout).toMatch(/^gryphus\/\d/);
    const q = await run(['q', '-help']);
    expect(q.stdout).toContain('$ gryphus q [JOBS...]');
    expect(q.stdout.replaceAll(/\s+/g, ' ')).toContain('ST is I idle, R running');
    expect((await run(['--version'])).stdout).toMatch(/^gryphus\/\d/);
  });

  it('lists topics that are some, and long flags below each other', async () => {
    const { stdout } = await run(['--help']);
    const topics = stdout.slice(stdout.indexOf('TOPICS'), stdout.indexOf('COMMANDS'));
    expect([...topics.matchAll(/^ {2}(\S+)/gm)].map((found) => found[1])).toEqual([
      'alarm',
      'classad',
      'compat',
      'cred',
      'dag',
      'flock',
      'glidein',
      'pool',
      'site',
    ]);
    expect((await run(['status', '--help'])).stdout).toContain('\n      --json ');
  });

  it('shows what excludes what without empty places', async () => {
    const usage = async (...words: string[]) => (await run([...words, '--help'])).stdout.replaceAll(/\s+/g, ' ');
    expect(await usage('web')).toContain('[--stop | [--socket | --port <value>]] [--json]');
    expect(await usage('dag', 'submit')).toContain('| --rescuefile <file>]');
  });

  it('ends with one error where standard output is full', () => {
    const full = openSync('/dev/full', 'w');
    const { status, stderr } = spawnSync(process.execPath, [BIN, '--help'], { stdio: ['ignore', full, 'pipe'] });
    closeSync(full);
    expect(stderr.toString()).toMatch(/^gryphus: standard output cannot be written: ENOSPC.*\n$/);
    expect(status).toBe(74);
  });
});

describe('config', () => {
  it('writes one key, and leaves the rest of the file as it is', async () => {
    const file = join(home, 'config.toml');
    writeFileSync(file, '# mine\nowner = "me" # yes\n\n[notify]\n# where to\nmethod = "smtp"\n');
    expect(await run(['config', 'notify.email', 'me@example.org'])).toMatchObject({ exit: 0, stderr: '' });
    expect(await run(['config', 'owner', 'jane doe'])).toMatchObject({ exit: 0 });
    expect(await run(['config', 'history.keep_jobs', '7'])).toMatchObject({ exit: 0 });
    expect(readFileSync(file, 'utf8')).toBe(
      '# mine\nowner = "jane doe" # yes\n\nhistory.keep_jobs = 7\n\n[notify]\nemail = "me@example.org"\n# where to\nmethod = "smtp"\n',
    );
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect((await run(['config', 'notify.email'])).stdout).toBe('me@example.org\n');
    expect((await run(['config'])).stdout).toMatch(/notify\.email +me@example\.org +\S+config\.toml\n/);
    await run(['config', 'notify.email', '--unset']);
    expect((await run(['config', 'notify.email'])).stdout).toBe('-\n');
  });

  it('refuses a value that cannot be, and writes nothing', async () => {
    const { stderr, exit } = await run(['config', 'history.keep_jobs', 'many']);
    expect(stderr).toContain("'history.keep_jobs' must be a whole number of at least 0");
    expect(stderr).not.toContain('line 1');
    expect(stderr).toContain('Nothing was written.');
    expect(exit).toBe(78);
    expect((await run(['config', 'history.keep_jobs'])).stdout).toBe('100000\n');
    expect(await run(['config', '--unset'])).toMatchObject({
      exit: 2,
      stderr: expect.stringContaining('Name the key'),
    });
  });

  it('answers a broken file with its line', async () => {
    writeFileSync(join(home, 'config.toml'), 'owner = "me"\n\nnotify.emial = "x"\n');
    const { stderr, exit } = await run(['config']);
    expect(stderr).toBe(
      `gryphus: ${home}/config.toml, line 3: unknown key 'notify.emial'.\n  → Did you mean 'notify.email'?\n`,
    );
    expect(exit).toBe(78);
  });
});

describe('site', () => {
  it('add writes what show reads', async () => {
    const added = await run([
      'site',
      'add',
      'c1',
      'ssh://me@login.example.org',
      '-batch',
      'slurm',
      '--prelude',
      'module load "x y"',
    ]);
    expect(added).toMatchObject({
      exit: 0,
      stdout: `Site c1 is written to ${home}/sites/c1.toml.\nCheck it with: gryphus site test c1\n`,
    });
    const { stdout } = await run(['site', 'show', 'c1', '--json']);
    expect(JSON.parse(stdout)).toMatchObject({ name: 'c1', batch: 'slurm', prelude: 'module load "x y"' });
    expect((await run(['site', 'list', '--quiet'])).stdout).toBe('local\nc1\n');
    expect(await run(['site', 'rm', 'c1', '--force'])).toMatchObject({ exit: 0 });
    expect((await run(['site', 'list', '--quiet'])).stdout).toBe('local\n');
  });

  it('are asked which batch system they have', async () => {
    const bin = join(home, 'bin');
    mkdirSync(bin);
    for (const name of ['bsub', 'bqueues']) {
      writeFileSync(join(bin, name), '#!/bin/sh\necho IBM Spectrum LSF 10.1\n', { mode: 0o755 });
    }
    const prelude = `PATH=${bin}:/usr/bin:/bin; unset SLURM_CONF SGE_ROOT`;
    const { stdout } = await run(['site', 'add', 'big', 'local', '--prelude', prelude]);
    expect(stdout).toMatch(/^big has lsf \(IBM Spectrum LSF 10\.1\)\.$/m);
    expect((await run(['site', 'show', 'big', '--json'])).stdout).toContain('"lsf"');
    const away = await run(['site', 'add', 'away', 'ssh://127.0.0.1:1']);
    expect(away).toMatchObject({ exit: 69, stderr: expect.stringContaining('--batch slurm') });
    expect((await run(['site', 'list', '--quiet'])).stdout).toBe('local\nbig\n');
  }, 120_000);

  it.each([
    [['site', 'add', 'c1', 'http://x'], 65, 'ssh://user@host'],
    [['site', 'add', 'a b', 'local'], 65, 'letters, digits'],
    [['site', 'add', 'c1', 'h', '--batch', 'slrm'], 2, '--batch=slrm'],
    [['site', 'show', 'lcoal'], 68, "Did you mean 'local'?"],
    [['site', 'rm', 'nosuch', '--force'], 68, 'gryphus site list'],
  ])('%j is refused with the remedy', async (words, status, remedy) => {
    const { stderr, exit } = await run(words);
    expect(exit).toBe(status);
    expect(stderr).toContain(remedy);
  });
});

describe('classad eval', () => {
  it('evaluates over ads of both forms', async () => {
    writeFileSync(join(home, 'my.ad'), 'A = 1\nB = A + TARGET.C\nS = "x\\y"\n');
    writeFileSync(join(home, 'other.ad'), '[ C = 41 ]');
    const words = ['classad', 'eval', '--old', '--ad', 'my.ad', '--target', 'other.ad'];
    expect(await run([...words, 'B'])).toMatchObject({ stdout: '42\n', exit: 0 });
    expect((await run([...words, 'S'])).stdout).toBe('"x\\y"\n');
    expect(await run(['classad', 'eval', '1 +'])).toMatchObject({ exit: 65, stdout: '' });
    expect(await run(['classad', 'eval', '--ad', 'nosuch', '1'])).toMatchObject({ exit: 66 });
  });

  it('answers records, a line each', async () => {
    const questions = [
      { expr: 'a + 1', ad: '[ a = 2 ]', target: null, kind: 'eval' },
      { expr: 'symmetricMatch', ad: '[ Requirements = true ]', target: '[ Requirements = true ]', kind: 'match' },
      { expr: '1+ 1', ad: null, target: null, kind: 'unparse' },
      { expr: '1 +', ad: null, target: null, kind: 'eval' },
    ];
    const { stdout } = await run(
      ['classad', 'eval', '--jsonl'],
      questions.map((one) => `${JSON.stringify(one)}\n`).join(''),
    );
    expect(
      stdout
        .trimEnd()
        .split('\n')
        .map((line) => (JSON.parse(line) as { result: string }).result),
    ).toEqual(['3', 'true', '1 + 1', 'PARSE_ERROR']);
    expect(await run(['classad', 'eval', '--jsonl'], '\n{"expr": 3}\n')).toMatchObject({
      exit: 65,
      stderr: expect.stringContaining('line 2: "expr" is not a string'),
    });
  });
});

describe('a user log', () => {
  const job = { cluster: 7, proc: 0, at: Date.UTC(2026, 10, 20) };
  const submit = printUserLog({ ...job, type: 'submit', host: '<h>' });
  const aborted = printUserLog({ ...job, type: 'aborted', reason: 'enough' });

  it('is waited for until its last job has ended', async () => {
    const log = join(home, 'a b.log');
    writeFileSync(log, submit + printUserLog({ ...job, proc: 1, type: 'submit', host: '<h>' }));
    expect(await run(['wait', log, '--timeout', '0'])).toMatchObject({ stdout: 'Time expired.\n', exit: 1 });
    const child = start(['wait', log, '-status'], { home });
    const end = ended(child);
    await new Promise((seen) => child.stdout.once('data', seen));
    const half = aborted.length - 4;
    appendFileSync(log, aborted.slice(0, half));
    appendFileSync(log, aborted.slice(half) + printUserLog({ ...job, proc: 1, type: 'aborted' }));
    expect(await end).toEqual({
      stdout: '7.0.0 submitted\n7.1.0 submitted\n7.0.0 removed\n7.1.0 removed\nAll jobs done.\n',
      stderr: '',
      exit: 0,
    });
    expect(await run(['wait', log, '-num', '1'])).toMatchObject({
      stdout: 'Specified number of jobs (1) done.\n',
      exit: 0,
    });
    expect(await run(['wait', log, '7.1'])).toMatchObject({ exit: 0 });
    expect(await run(['wait', 'nosuch.log'])).toMatchObject({
      exit: 66,
      stderr: expect.stringContaining("Couldn't open nosuch.log: no such file or directory."),
    });
  });

  it('is printed in the form that is asked for', async () => {
    const log = join(home, 'x.log');
    writeFileSync(log, submit + aborted);
    expect((await run(['log', log])).stdout).toBe(submit + aborted);
    expect((await run(['log', log, '--legacy'])).stdout).toContain(
      '009 (007.000.000) 11/20 00:00:00 Job was aborted.\n\tenough\n...\n',
    );
    const submitted = { MyType: 'SubmitEvent', Cluster: 7 };
    const removed = { MyType: 'JobAbortedEvent', Reason: 'enough' };
    expect(JSON.parse((await run(['log', log, '--json'])).stdout)).toMatchObject([submitted, removed]);
    const lines = (await run(['log', log, '--jsonl'])).stdout.trimEnd().split('\n');
    expect(lines.map((line) => JSON.parse(line) as object)).toMatchObject([submitted, removed]);
  });

  it('is left by Ctrl-C with status 130 and no word', async () => {
    const log = join(home, 'x.log');
    writeFileSync(log, submit);
    const child = start(['wait', log, '-echo'], { home });
    const end = ended(child);
    await new Promise((seen) => child.stdout.once('data', seen));
    child.kill('SIGINT');
    expect(await end).toEqual({ stdout: submit, stderr: '', exit: 130 });
  });

  it('may be read by one who goes away', async () => {
    const log = join(home, 'x.log');
    writeFileSync(log, submit.repeat(20_000));
    const child = start(['log', log], { home });
    const end = ended(child);
    await new Promise((seen) => child.stdout.once('data', seen));
    child.stdout.destroy();
    expect(await end).toMatchObject({ stderr: '', exit: 0 });
  });
});

it('status starts nothing', async () => {
  const { stdout, exit } = await run(['status']);
  expect(exit).toBe(3);
  expect(stdout).toContain('Scheduler:   not running\n');
});

it('up --systemd prints a unit and starts nothing', async () => {
  const { stdout, exit } = await run(['up', '--systemd']);
  expect(exit).toBe(0);
  expect(stdout).toMatch(/^ExecStart="\S+" "\S+gryphus\.js" up$/m);
  expect(stdout).toContain(`Environment="GRYPHUS_HOME=${home}"\n`);
  expect((await run(['status'])).exit).toBe(3);
});
