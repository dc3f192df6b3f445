import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { AttemptKey } from '../../src/job/ids.ts';
import { Containers } from '../../src/pool/worker/containers.ts';
import type { InputFile } from '../../src/site/contract.ts';
import { jobAdOf } from '../../src/pool/worker/job-ad-of.ts';
import { Startd } from '../../src/pool/worker/startd.ts';
import type { FromWorker, RunSpec } from '../../src/pool/wire/wire.ts';
import { readPid } from '../../src/util/pid-file.ts';
import { until } from '../agent/agent.ts';
import { SCRIPTS } from './scripts.ts';

/** How long ago the machine was started, in milliseconds. */
const boot = vi.hoisted(() => ({ ago: 3_600_000 }));
vi.mock('../../src/util/boot-clock.ts', async (original) => ({
  ...(await original<object>()),
  sinceBootMs: () => boot.ago,
}));

const SIZE = { cpus: 4, memoryMb: 4000, diskKb: 1e6, gpus: 0 };

describe("a worker's runs", () => {
  let dir: string;
  let startd: Startd;
  let said: FromWorker[];
  beforeEach(() => {
    boot.ago = 3_600_000;
    dir = mkdtempSync(join(tmpdir(), 'gryphus startd '));
    open(60_000);
  });
  afterEach(() => {
    startd.close();
    rmSync(dir, { recursive: true, force: true });
  });

  function open(slowMs: number): void {
    const mine: FromWorker[] = [];
    said = mine;
    startd = new Startd({
      dir,
      machine: { size: SIZE, ad: { Requirements: 'true' }, limitMemory: true },
      env: { PATH: process.env['PATH'] },
      scripts: SCRIPTS,
      sharesHome: true,
      slowMs,
      containers: new Containers({ dir, env: {}, environment: {}, log: () => undefined }),
      pull: () => () => Promise.reject(new Error('nothing is to be fetched')),
      proxyOf: (name) => join(dir, name),
      say: (message) => mine.push(message),
      log: () => undefined,
    });
    startd.take({ t: 'kind', id: 'k', ad: { Requirements: 'true' } });
  }

  /** Under a claim of its own, with 50 MB and a lease of a minute. */
  function start(
    key: AttemptKey,
    executable: string,
    args: readonly string[],
    claim: string = key,
    waits = false,
    vacateSeconds = 1,
  ): void {
    const spec: RunSpec = {
      executable: { kind: 'there', path: executable },
      args,
      env: {},
      inputs: [],
      joinStderr: false,
      shared: { cwd: dir, executable },
      vacateSeconds,
    };
    const size = { cpus: 1, memoryMb: 50, diskKb: 0, gpus: 0 };
    startd.take({ t: 'start', key, claim, kind: 'k', size, spec, lease: 60, ...(waits && { waits }) });
  }

  const end = (key: AttemptKey) =>
    until(`the end of ${key}`, () => {
      const ended = said.find((message) => message.t === 'ended' && message.key === key);
      return ended?.t === 'ended' ? ended.ending : undefined;
    });
  const started = (path: string) => until(path, () => (existsSync(join(dir, path)) ? true : undefined));

  /** A script of the kind `k`, whose directory is its own; it is told this one. */
  const startOfKind = (key: AttemptKey, script: string): void => {
    const executable = { kind: 'there' as const, path: '/bin/sh' };
    const spec = { executable, args: ['-c', script, 'sh', dir], env: {}, inputs: [], joinStderr: false };
    startd.take({ t: 'start', key, claim: 'c', kind: 'k', size: { ...SIZE, cpus: 1 }, spec, lease: 60 });
  };

  it('that hold more memory than their slot has are ended, and nothing else is', async () => {
    const hold = (mb: number) => `const held = Buffer.alloc(${mb} << 20, 1); setTimeout(() => held, 600_000)`;
    start('a.1.0.1', '/bin/sleep', ['600']);
    start('a.2.0.1', process.execPath, ['-e', hold(300)]);
    const { how } = await end('a.2.0.1');
    expect(how).toMatchObject({ kind: 'by-site', cause: 'out-of-memory' });
    expect(how.kind === 'by-site' && how.message).toMatch(/^it used \d{3} MB of 50$/);
    expect(said.some((message) => message.t === 'ended' && message.key === 'a.1.0.1')).toBe(false);
    startd.take({ t: 'cancel', key: 'a.1.0.1', how: 'remove', message: 'over' });
    await end('a.1.0.1');
  }, 60_000);

  it('wait behind what runs under their claim, and are begun in their turn', async () => {
    start('a.1.0.1', '/bin/sh', ['-c', 'while ! [ -e go ]; do :; done'], 'c');
    for (const n of [2, 3, 4]) start(`a.${n}.0.1`, '/bin/sh', ['-c', `echo ${n} >> ledger`], 'c');
    startd.take({ t: 'cancel', key: 'a.3.0.1', how: 'remove', message: 'no more' });
    expect(said).toMatchObject([{ t: 'gone', key: 'a.3.0.1', why: 'cancelled' }]);
    writeFileSync(join(dir, 'go'), '');
    await end('a.4.0.1');
    expect(readFileSync(join(dir, 'ledger'), 'utf8')).toBe('2\n4\n');
    expect(said.flatMap((message) => (message.t === 'ended' ? message.key : []))).toEqual([
      'a.1.0.1',
      'a.2.0.1',
      'a.4.0.1',
    ]);
  }, 60_000);

  it('go back when what they wait for takes long', async () => {
    startd.close();
    open(100);
    start('a.5.0.1', '/bin/sleep', ['600'], 'c');
    start('a.6.0.1', '/bin/true', [], 'c');
    const back = (key: AttemptKey) => said.some((message) => message.t === 'gone' && message.key === key) || undefined;
    await until('it to go back', () => back('a.6.0.1'));
    start('a.7.0.1', '/bin/true', [], 'c');
    expect(said.at(-1)).toMatchObject({ t: 'gone', key: 'a.7.0.1', why: 'behind' });
    startd.take({ t: 'cancel', key: 'a.5.0.1', how: 'remove', message: 'over' });
    await end('a.5.0.1');
    expect(startd.held().map(({ key }) => key)).toEqual(['a.5.0.1']);
  }, 60_000);

  it('that are told to end with all other processes were evicted, and have not ended by themselves', async () => {
    start('a.8.0.1', '/bin/sh', ['-c', ': > a.8; kill -TERM $$']);
    await started('a.8');
    startd.drain(true, 'its worker was asked to end');
    expect((await end('a.8.0.1')).how).toMatchObject({ kind: 'by-site', cause: 'preempted' });
  }, 60_000);

  it('that are terminated by somebody else have ended by themselves', async () => {
    start('a.9.0.1', '/bin/sh', ['-c', 'kill -TERM $$']);
    expect((await end('a.9.0.1')).how).toEqual({ kind: 'signaled', signal: 15 });
  }, 60_000);

  it.each([
    ['vacate', 0, { kind: 'exited', code: 3 }],
    ['remove', 0, { kind: 'exited', code: 3 }],
    // Whatever ends an allocation may have told both.
    ['drain', 500, { kind: 'by-site', cause: 'preempted' }],
    ['drain', 1500, { kind: 'exited', code: 3 }],
  ] as const)(
    'that had ended by themselves before their end could be told: %s after %i ms',
    async (order, ms, how) => {
      const key = 'a.9.0.2';
      start(key, '/bin/sh', ['-c', ': >a.9; until [ -e go ]; do :; done; exit 3']);
      await started('a.9');
      const shell = startd.find(key)?.shell?.pid ?? 0;
      // Nobody tells the worker of the record.
      process.kill(shell, 'SIGSTOP');
      writeFileSync(join(dir, 'go'), '');
      const { endedAt } = await until('its record', () => startd.find(key)?.dir.exit());
      const clock = vi.spyOn(Date, 'now').mockReturnValue(endedAt * 1000 + ms);
      if (order === 'drain') startd.drain(true, 'its worker was asked to end');
      else startd.take({ t: 'cancel', key, how: order, message: 'no more' });
      clock.mockRestore();
      process.kill(shell, 'SIGCONT');
      expect((await end(key)).how).toMatchObject(how);
    },
    60_000,
  );

  it('that ended by themselves while their image was waited for have not been evicted, for the next worker either', async () => {
    startd.take({ t: 'kind', id: 'k', ad: { Requirements: 'true', WantCheckpoint: 'true' } });
    const key = 'a.9.0.3';
    startOfKind(key, 'cd "$1"; : >a.9; until [ -e go ]; do :; done; exit 3');
    await started('a.9');
    const run = startd.find(key);
    if (run)
      run.save = async () => {
        writeFileSync(join(dir, 'go'), '');
        await until('its record', () => run.dir.exit());
        return 'file descriptor 3 is a socket';
      };
    startd.take({ t: 'cancel', key, how: 'vacate', message: 'no more' });
    expect((await end(key)).how).toEqual({ kind: 'exited', code: 3 });
    startd.close();
    open(60_000);
    expect((await end(key)).how).toEqual({ kind: 'exited', code: 3 });
  }, 60_000);

  it.each([
    // Its end is rounded; it was surely before this one.
    ['an earlier', -5000, { kind: 'by-site', cause: 'preempted', message: 'its machine was shut down' }],
    ['this', 3_600_000, { kind: 'signaled', signal: 15 }],
  ])('that were terminated in %s boot, when no worker saw it', async (_, sinceBootMs, how) => {
    start('a.10.0.1', '/bin/sh', ['-c', 'echo $$ >pid; exec sleep 600']);
    const pid = await until('its number', () => readPid(join(dir, 'pid')));
    startd.close();
    process.kill(pid, 'SIGTERM');
    await until('its record', () => readdirSync(join(dir, 'jobs/a.10.0.1')).includes('exit') || undefined);
    boot.ago = sinceBootMs;
    open(100);
    expect((await end('a.10.0.1')).how).toMatchObject(how);
  });

  it('that are nodes of a parallel job and were given up occupy no slot', async () => {
    const all = Array.from({ length: SIZE.cpus }, (_, n) => `a.${20 + n}.0.1.0` as const);
    for (const key of all) start(key, '/bin/true', [], key, true);
    await until('all to be ready', () => said.filter(({ t }) => t === 'ready').length === all.length || undefined);
    for (const key of all) {
      startd.take({ t: 'release', claim: key });
      startd.take({ t: 'forget', keys: [key] });
    }
    start('a.30.0.1', '/bin/true', []);
    await end('a.30.0.1');
  }, 60_000);

  it('that wait when the connection is cut are forgotten, since no report of them can arrive', async () => {
    start('a.1.0.1', '/bin/sh', ['-c', 'while ! [ -e go ]; do :; done'], 'c');
    start('a.2.0.1', '/bin/sh', ['-c', ': > never'], 'c');
    expect(startd.held().map(({ key }) => key)).toEqual(['a.1.0.1']);
    writeFileSync(join(dir, 'go'), '');
    await end('a.1.0.1');
    start('a.3.0.1', '/bin/true', [], 'c');
    await end('a.3.0.1');
    expect(existsSync(join(dir, 'never'))).toBe(false);
  }, 60_000);

  it.each([
    ['a pipe', 'mkfifo .job.ad; (sleep 1; echo WantCheckpoint = true >.job.ad) &'],
    ['a link', 'echo WantCheckpoint = true >ad; ln -s ad .job.ad'],
  ])(
    'that put %s in the place of their ad keep the next worker neither waiting nor believing',
    async (_, text) => {
      const key = 'a.9.0.4';
      startOfKind(key, `rm .job.ad; ${text}\n: >"$1/a.9"; exec sleep 600`);
      await started('a.9');
      startd.close();
      open(60_000);
      const run = startd.find(key);
      expect(run && jobAdOf(run)).toEqual({});
      startd.take({ t: 'cancel', key, how: 'remove', message: 'over' });
      await end(key);
    },
    60_000,
  );

  it('under one claim that another worker finds occupy its slot once', async () => {
    start('a.1.0.1', '/bin/true', [], 'c');
    await end('a.1.0.1');
    start('a.2.0.1', '/bin/sh', ['-c', 'while ! [ -e go ]; do :; done'], 'c');
    startd.close();
    open(60_000);
    for (const n of [3, 4, 5]) start(`a.${n}.0.1`, '/bin/sleep', ['600']);
    start('a.6.0.1', '/bin/true', []);
    expect(said.flatMap((message) => (message.t === 'gone' ? message.key : []))).toEqual(['a.6.0.1']);
    writeFileSync(join(dir, 'go'), '');
    await end('a.2.0.1');
    startd.take({ t: 'release', claim: 'c' });
    start('a.7.0.1', '/bin/true', []);
    await end('a.7.0.1');
    for (const n of [3, 4, 5]) startd.take({ t: 'cancel', key: `a.${n}.0.1`, how: 'remove', message: 'over' });
    for (const n of [3, 4, 5]) await end(`a.${n}.0.1`);
  }, 60_000);

  it('that another worker finds ended claim nothing, even before they are forgotten', async () => {
    const keys = [1, 2, 3, 4].map((n): AttemptKey => `a.${n}.0.1`);
    for (const key of keys) start(key, '/bin/true', []);
    for (const key of keys) await end(key);
    startd.close();
    open(60_000);
    for (const key of keys) await end(key);
    start('a.5.0.1', '/bin/true', []);
    await end('a.5.0.1');
    startd.take({ t: 'forget', keys });
    start('a.6.0.1', '/bin/true', []);
    await end('a.6.0.1');
  }, 60_000);

  it('end with their lease, to the last process, though some forked away and pass over what asks them to end', async () => {
    const script = `trap '' TERM; setsid sh -c 'trap "" TERM; echo $$ > away; sleep 600' & while ! [ -s away ]; do :; done; : > up; sleep 600`;
    start('a.3.0.1', '/bin/sh', ['-c', script]);
    await started('up');
    startd.endLeases(59);
    startd.endLeases(61);
    const { how } = await end('a.3.0.1');
    expect(how).toMatchObject({ kind: 'by-site', cause: 'preempted' });
    const away = Number(readFileSync(join(dir, 'away'), 'utf8'));
    expect(away).toBeGreaterThan(1);
    // A process that has not been waited for has no command line any more.
    expect(existsSync(`/proc/${away}/cmdline`) && readFileSync(`/proc/${away}/cmdline`, 'utf8')).toBeFalsy();
  }, 60_000);

  it('are killed before they may run elsewhere, however long they may take to end, and whoever asked them to before', async () => {
    const patient = (key: AttemptKey) => {
      start(key, '/bin/sh', ['-c', `trap : TERM; : > up-${key}; while :; do sleep 0.1; done`], key, false, 600);
      return started(`up-${key}`);
    };
    await Promise.all(['a.1.0.1', 'a.2.0.1', 'a.3.0.1'].map((key) => patient(key as AttemptKey)));
    startd.take({ t: 'cancel', key: 'a.1.0.1', how: 'vacate', message: 'the machine is wanted' });
    startd.endLeases(61);
    startd.endLeases(104);
    expect(said.some(({ t }) => t === 'ended')).toBe(false);
    startd.endLeases(106);
    for (const key of ['a.1.0.1', 'a.2.0.1', 'a.3.0.1'] as const) await end(key);
    await patient('a.4.0.1');
    const known = startd.find('a.4.0.1');
    startd.take({ t: 'forget', keys: ['a.4.0.1'] });
    await until('the end of what the agent does not know', () => known?.phase === 'ended' || undefined, 5000);
  }, 60_000);

  it('find their ads, their proxy and their inputs in their sandbox, large ones too', async () => {
    const input = (name: string, bytes: number): InputFile => {
      const path = join(dir, `home ${name}`);
      const content = Buffer.alloc(bytes, name);
      writeFileSync(path, content);
      const sha256 = createHash('sha256').update(content).digest('hex');
      return {
        kind: 'file',
        name,
        file: { kind: 'blob', blob: { sha256, bytes, path } },
        executable: name === 'large',
      };
    };
    const script = [
      'cat "$_CONDOR_JOB_AD"; grep -h "^Name\\|^Cpus" "$_CONDOR_MACHINE_AD"; echo "$X509_USER_PROXY"',
      'wc -c <small; wc -c <in/large; test -x in/large && echo yes',
    ].join('\n');
    const large = input('large', 9 << 20);
    const inputs = [input('small', 3), { ...large, name: 'in/large' }];
    for (const key of ['a.4.0.1', 'a.4.1.1'] as const) {
      startd.take({
        t: 'start',
        key,
        claim: key,
        kind: 'k',
        size: { cpus: 1, memoryMb: 50, diskKb: 0, gpus: 0 },
        spec: {
          executable: { kind: 'there', path: '/bin/sh' },
          args: ['-c', script],
          env: {},
          proxy: 'mine',
          inputs,
          joinStderr: true,
        },
        lease: 60,
        ad: { Requirements: null, MyText: '"a\nb"', Environment: '"X=1"', GryphusKey: '"k"', JobStatus: '1' },
        slot: 'slot1_3@here',
      });
      expect((await end(key)).how).toEqual({ kind: 'exited', code: 0 });
      const lines = ['JobStatus = 2', 'MyText = "a\\nb"', 'Cpus = 1', 'Name = "slot1_3@here"', join(dir, 'mine')];
      expect(readFileSync(join(dir, 'jobs', key, 'stdout'), 'utf8')).toBe(
        `${[...lines, 3, 9 << 20, 'yes'].join('\n')}\n`,
      );
    }
    // An input that has changed since it was prepared: the job is not run, and the reason is reported.
    rmSync(join(dir, 'cache'), { recursive: true });
    mkdirSync(join(dir, 'cache'));
    writeFileSync(join(dir, 'home large'), Buffer.alloc(9 << 20, 'other'));
    const spec: RunSpec = {
      executable: { kind: 'there', path: '/bin/true' },
      args: [],
      env: {},
      inputs,
      joinStderr: true,
    };
    const size = { cpus: 1, memoryMb: 50, diskKb: 0, gpus: 0 };
    startd.take({ t: 'start', key: 'a.4.2.1', claim: 'c', kind: 'k', size, spec, lease: 60 });
    const gone = await until('the refusal', () => said.find((message) => message.t === 'gone'));
    expect(gone).toMatchObject({ key: 'a.4.2.1', why: 'input', message: expect.stringContaining('home large') });
  }, 60_000);

  it('with few small files use one sandbox after another, and each finds there what is its own, and no more', async () => {
    const blob = (name: string, content: string) => {
      const path = join(dir, `home ${name}`);
      writeFileSync(path, content);
      const sha256 = createHash('sha256').update(content).digest('hex');
      return { kind: 'blob', blob: { sha256, bytes: content.length, path } } as const;
    };
    const program = blob(
      'program',
      '#!/bin/sh\npwd; cat; cat in.*; ls; echo "it is" >&2; echo "$1" > made; echo x > in.$1; mkdir d\n',
    );
    const startOne = (n: number) => {
      const spec: RunSpec = {
        executable: program,
        args: [`${n}`],
        env: {},
        stdin: blob('stdin', `stdin ${n}\n`),
        inputs: [{ kind: 'file', name: `in.${n}`, file: blob(`in.${n}`, `input ${n}\n`), executable: false }],
        joinStderr: true,
      };
      const size = { cpus: 1, memoryMb: 50, diskKb: 0, gpus: 0 };
      startd.take({ t: 'start', key: `a.${n}.0.1`, claim: 'c', kind: 'k', size, spec, lease: 60, ad: {} });
    };
    const works = new Set<string>();
    for (const n of [1, 2, 3, 4]) {
      startOne(n);
      expect((await end(`a.${n}.0.1`)).how).toEqual({ kind: 'exited', code: 0 });
      const message = said.find((one) => one.t === 'ended' && one.key === `a.${n}.0.1`);
      if (message?.t !== 'ended') throw new Error('it did not end');
      expect(message.files?.map(({ name }) => name)).toEqual(['made']);
      const run = startd.find(`a.${n}.0.1`);
      const [work = '', ...lines] = readFileSync(run?.dir.stream('stdout') ?? '', 'utf8').split('\n');
      expect(lines).toEqual([`stdin ${n}`, `input ${n}`, 'condor_exec.exe', `in.${n}`, 'it is', '']);
      works.add(work);
      // Between the last two, another worker takes over.
      if (n === 3) {
        startd.close();
        open(60_000);
        await end('a.3.0.1');
        const again = said.find((one) => one.t === 'ended' && one.key === 'a.3.0.1');
        expect(again?.t === 'ended' && again.files?.map(({ name }) => name)).toEqual(['made']);
      }
      startd.take({ t: 'forget', keys: [`a.${n}.0.1`] });
      if (n === 2) await until('the sandbox to be emptied', () => !existsSync(join(work, 'd')) || undefined);
    }
    // The first has a directory of its own, and the third that of the second.
    expect(works.size).toBe(3);
    expect(readdirSync(join(dir, 'jobs'))).toEqual([]);
  }, 60_000);
});
