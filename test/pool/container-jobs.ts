import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import type { AttemptKey } from '../../src/job/ids.ts';
import { accountOf } from '../../src/pool/host/accounts.ts';
import { Accounts } from '../../src/pool/worker/accounts.ts';
import { Containers } from '../../src/pool/worker/containers.ts';
import { ExecuteDir } from '../../src/pool/worker/execute-dir.ts';
import { JobUsers } from '../../src/pool/worker/job-users.ts';
import { Startd } from '../../src/pool/worker/startd.ts';
import type { FromWorker, RunSpec } from '../../src/pool/wire/wire.ts';
import type { ContainerSpec, Ending } from '../../src/site/contract.ts';
import { until } from '../agent/agent.ts';
import type { ContainerEngine } from '../sites/container-engine.ts';
import { ticksOf } from './owner/ticks.ts';
import { SCRIPTS } from './scripts.ts';

const SIZE = { cpus: 4, memoryMb: 4000, diskKb: 1e6, gpus: 0 };

/** What every runtime must do for jobs. `docker`: as jobs of the docker universe. */
export function containerJobs(make: () => ContainerEngine | Promise<ContainerEngine>, docker = false): void {
  let engine: ContainerEngine;
  let env: NodeJS.ProcessEnv;
  let found: Containers;
  let home: string;
  beforeAll(async () => {
    engine = await make();
    env = { PATH: engine.env['PATH'], HOME: engine.env['HOME'] };
    home = mkdtempSync(join(tmpdir(), 'gryphus boxes '));
    found = new Containers({ dir: home, env, environment: engine.env, log: () => undefined });
    await found.find();
  }, 120_000);
  afterAll(async () => {
    await engine?.end();
    rmSync(home, { recursive: true, force: true });
  });

  let dir: string;
  let startd: Startd;
  let said: FromWorker[];
  let count = 0;
  let started: { key: AttemptKey }[] = [];
  beforeEach(() => {
    started = [];
    dir = mkdtempSync(join(home, 'worker '));
    said = [];
    startd = worker(found);
  });
  afterEach(async () => {
    // A failed test's containers would fail each one after it.
    for (const { key } of started) startd.take({ t: 'cancel', key, how: 'remove', message: 'over' });
    await until('all jobs to end', () => startd.busy === 0 || undefined);
    startd.close();
    rmSync(dir, { recursive: true, force: true });
  });

  function worker(containers: Containers, accounts?: Accounts): Startd {
    const news: FromWorker[] = [];
    said = news;
    const made = new Startd({
      dir,
      machine: { size: SIZE, ad: { Requirements: 'true' }, limitMemory: true },
      env,
      scripts: SCRIPTS,
      sharesHome: true,
      containers,
      ...(accounts ? { accounts } : {}),
      proxyOf: (name) => join(dir, name),
      pull: () => () => Promise.reject(new Error('nothing is to be fetched')),
      say: (message) => news.push(message),
      log: () => undefined,
    });
    made.take({ t: 'kind', id: 'k', ad: { Requirements: 'true' } });
    return made;
  }

  function start(
    program: string,
    args: readonly string[],
    more: Partial<RunSpec> = {},
    box: Partial<ContainerSpec> = {},
  ) {
    const key: AttemptKey = `${home.slice(-6)}.${++count}.0.1`;
    const container: ContainerSpec = {
      image: engine.image,
      docker,
      keepEntrypoint: false,
      alwaysPull: false,
      binds: [],
      ...box,
    };
    const executable = { kind: 'there', path: program } as const;
    const spec: RunSpec = {
      executable,
      args,
      env: {},
      inputs: [],
      joinStderr: false,
      container,
      vacateSeconds: 2,
      ...more,
    };
    const size = { cpus: 1, memoryMb: 50, diskKb: 0, gpus: 0 };
    startd.take({ t: 'start', key, claim: key, kind: 'k', size, spec, lease: 60 });
    const path = join(dir, 'jobs', key);
    const job = {
      key,
      path,
      work: join(path, 'work'),
      out: () => readFileSync(join(path, 'stdout'), 'utf8'),
      err: () => readFileSync(join(path, 'stderr'), 'utf8'),
      end: () => ended(key),
    };
    started.push(job);
    return job;
  }

  const ended = (key: AttemptKey): Promise<Ending> =>
    until(`the end of ${key}`, () => {
      const news = said.find((message) => message.t === 'ended' && message.key === key);
      return news?.t === 'ended' ? news.ending : undefined;
    });

  it('are what this machine says it can run, once it has seen it', () => {
    expect(found.ad()).toMatchObject(engine.ad);
    expect(found.ad()['ContainerRuntime']).toMatch(engine.version);
    expect(readdirSync(home).filter((name) => name.startsWith('probe-'))).toEqual([]);
    expect(engine.containers()).toEqual([]);
  });

  it('have their arguments, environment, streams and files, in their sandbox', async () => {
    const env = { LINES: 'one\ntwo $(id) `id`', PATH: '/bin:/x y', QUOTES: 'o\'clock \\ "q"', EMPTY: '' };
    const script = 'printf "%s|" "$@"; cat; env; pwd; id -u; echo made > "a file"; echo bad >&2; exit 3';
    const args = ['a b', '$(touch x)', "o'clock", 'two\nlines', '', '--rm', 'naïve', '*'];
    writeFileSync(join(dir, 'input'), 'typed\n');
    const stdin = { kind: 'there', path: join(dir, 'input') } as const;
    const job = start('/bin/sh', ['-c', script, 'sh', ...args], { env, stdin });
    expect((await job.end()).how).toEqual({ kind: 'exited', code: 3 });
    const out = job.out();
    expect(out.startsWith(`${args.join('|')}|typed\n`)).toBe(true);
    expect(out).toContain('LINES=one\ntwo $(id) `id`\n');
    expect(out).toContain('PATH=/bin:/x y\n');
    expect(out).toContain(`QUOTES=${env.QUOTES}\n`);
    expect(out).toContain('EMPTY=\n');
    expect(out).toContain(`_CONDOR_SCRATCH_DIR=${job.work}\n`);
    expect(out).toContain(`GRYPHUS_KEY=${job.key}\n`);
    expect(out).not.toContain('CONTAINERS_STORAGE_CONF');
    expect(out.endsWith(`${job.work}\n${process.getuid?.()}\n`)).toBe(true);
    expect(job.err()).toBe('bad\n');
    expect(readFileSync(join(job.work, 'a file'), 'utf8')).toBe('made\n');
    expect(statSync(join(job.work, 'a file')).uid).toBe(process.getuid?.());
    expect(engine.containers()).toEqual([]);
  }, 60_000);

  const daemon = process.getuid?.() === 0 ? accountOf('daemon') : undefined;
  it.runIf(daemon)(
    'run under accounts of their own, stand still and are ended as others',
    async () => {
      startd.close();
      for (const dir of [home, engine.dir]) chmodSync(dir, 0o711);
      const execute = new ExecuteDir({ workerDir: dir, instance: 'w', fallback: join(home, 'execute') });
      const users = new JobUsers({
        runAs: () => 'daemon',
        isRoot: true,
        self: () => 'root',
        path: process.env['PATH'],
      });
      startd = worker(found, new Accounts(users, execute));
      const script = 'id -u; echo made > "a file"; ls ..; : > up; while :; do :; done';
      const job = start('/bin/sh', ['-c', script]);
      const path = join(execute.path, job.key);
      const early = job
        .end()
        .then(({ how }) => Promise.reject(new Error(JSON.stringify(how) + readFileSync(join(path, 'stderr'), 'utf8'))));
      await Promise.race([up(join(path, 'work')), early]);
      early.catch(() => undefined);
      startd.take({ t: 'suspend', key: job.key });
      const before = ticksOf(job.key);
      await new Promise((resume) => setTimeout(resume, 300));
      expect(ticksOf(job.key)).toBe(before);
      startd.take({ t: 'resume', key: job.key });
      await until('it to go on', () => ticksOf(job.key) > before || undefined);
      startd.take({ t: 'cancel', key: job.key, how: 'vacate', message: 'away' });
      expect((await job.end()).how).toMatchObject({ kind: 'by-site', cause: 'preempted' });
      expect(readFileSync(join(path, 'stdout'), 'utf8').split('\n')[0]).toBe(String(daemon?.uid));
      expect(statSync(join(path, 'work/a file')).uid).toBe(daemon?.uid);
      expect(processes(job.key)).toEqual([]);
      expect(engine.containers()).toEqual([]);
    },
    60_000,
  );

  it("end with their program's status, whatever the runtime's own statuses mean, or with its signal", async () => {
    const runs = [
      [start('/bin/sh', ['-c', 'exit 125']), { kind: 'exited', code: 125 }],
      [start('sh', ['-c', 'exit 127']), { kind: 'exited', code: 127 }],
      [start('/bin/sh', ['-c', 'kill -KILL $$']), { kind: 'signaled', signal: 9 }],
    ] as const;
    for (const [job, how] of runs) expect((await job.end()).how).toEqual(how);
    expect(engine.containers()).toEqual([]);
  }, 60_000);

  it("say in the runtime's words why they cannot be started, and are not taken for started", async () => {
    const missing = await start('/bin/no such', []).end();
    expect(missing.how).toMatchObject({ kind: 'by-site', cause: 'cannot-start' });
    expect(missing.how.kind === 'by-site' && missing.how.message).toMatch(/no such/);
    const image = { kind: 'registry', name: 'docker://localhost:1/not/there:1' } as const;
    const unreachable = await start('/bin/true', [], {}, { image }).end();
    expect(unreachable.how).toMatchObject({ kind: 'by-site', cause: 'no-image' });
    expect(unreachable.how.kind === 'by-site' && unreachable.how.message).toMatch(/localhost:1.*refused/);
    const nowhere = await start('/bin/true', [], {}, { image: { kind: 'there', path: '/not/there.tar' } }).end();
    expect(nowhere.how).toMatchObject({ cause: 'no-image', message: 'There is no image /not/there.tar on the node.' });
    expect(engine.containers()).toEqual([]);
  }, 60_000);

  /** A running program with a child that left its session and ignores requests to end. */
  const STUBBORN = `trap '' TERM; setsid sh -c 'trap "" TERM; echo $$ > away; sleep 600' & while ! [ -s away ]; do :; done; : > up; sleep 600`;
  const up = (work: string) => until(`${work}/up`, () => existsSync(join(work, 'up')) || undefined);
  const processes = (key: string) =>
    readdirSync('/proc').filter((pid) => {
      try {
        return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/environ`, 'latin1').includes(`GRYPHUS_KEY=${key}\0`);
      } catch {
        return false;
      }
    });

  it('are ended to the last child, and removed', async () => {
    // It counts how often it is asked.
    const counts = `n=0; trap 'echo asked; n=1' TERM; : > up; while [ $n -lt 9 ]; do sleep 0.1; n=$((n + (n > 0))); done; exit 9`;
    const polite = start('/bin/sh', ['-c', counts]);
    const stubborn = start('/bin/sh', ['-c', STUBBORN]);
    await up(polite.work);
    await up(stubborn.work);
    // A process that is just being replaced has no environment to see.
    await until('both processes', () => processes(stubborn.key).length > 1 || undefined);
    expect(engine.containers().length).toBe(2);
    for (const { key } of [polite, stubborn]) startd.take({ t: 'cancel', key, how: 'vacate', message: 'away' });
    expect((await polite.end()).how).toMatchObject({ kind: 'by-site', cause: 'preempted' });
    expect((await stubborn.end()).how).toMatchObject({ kind: 'by-site', cause: 'preempted' });
    expect(polite.out()).toBe('asked\n');
    expect(processes(stubborn.key)).toEqual([]);
    expect(engine.containers()).toEqual([]);
  }, 60_000);

  it('are ended when they hold more memory than their slot has', async () => {
    const job = start('/bin/sh', ['-c', 'held=$(head -c 60000000 /dev/zero | tr "\\0" x); while :; do sleep 1; done']);
    const { how, usage } = await job.end();
    expect(how).toMatchObject({ kind: 'by-site', cause: 'out-of-memory' });
    expect(usage?.maxRssKb).toBeGreaterThan(50_000);
    expect(engine.containers()).toEqual([]);
  }, 60_000);

  it('are stopped and continue', async () => {
    const job = start('/bin/sh', ['-c', 'while :; do echo x; sleep 0.05; done']);
    const grown = (from: number) =>
      until('output', () => (existsSync(join(job.path, 'stdout')) && job.out().length > from) || undefined);
    await grown(0);
    startd.take({ t: 'suspend', key: job.key });
    const states = () =>
      processes(job.key).map((pid) => readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1]?.[0]);
    // A child that was just being created may live a moment longer.
    await until('all to stop', () => states().every((state) => state === 'T') || undefined);
    expect(states()).not.toEqual([]);
    startd.take({ t: 'resume', key: job.key });
    await grown(job.out().length);
    startd.take({ t: 'cancel', key: job.key, how: 'remove', message: 'over' });
    await job.end();
  }, 60_000);

  it("run on while their worker is away, and their end is the next one's to tell", async () => {
    const ends = start('/bin/sh', ['-c', ': > up; while ! [ -e go ]; do sleep 0.1; done; exit 5']);
    const stays = start('/bin/sh', ['-c', STUBBORN]);
    await up(ends.work);
    await up(stays.work);
    startd.close();
    startd = worker(found);
    expect(startd.busy).toBe(2);
    writeFileSync(join(ends.work, 'go'), '');
    expect((await ends.end()).how).toEqual({ kind: 'exited', code: 5 });
    startd.take({ t: 'cancel', key: stays.key, how: 'remove', message: 'over' });
    expect((await stays.end()).how).toMatchObject({ cause: 'cancelled' });
    expect(processes(stays.key)).toEqual([]);
    expect(engine.containers()).toEqual([]);
  }, 60_000);

  it('leave nothing though their shells were killed; nor do workers that never came back', async () => {
    const job = start('/bin/sh', ['-c', STUBBORN]);
    await up(job.work);
    const { starter } = JSON.parse(readFileSync(join(job.path, 'starter'), 'utf8')) as { starter: { pid: number } };
    expect(starter.pid).toBeGreaterThan(1);
    process.kill(-starter.pid, 'SIGKILL');
    expect((await job.end()).how).toMatchObject({ kind: 'by-site', cause: 'vanished' });
    expect(engine.containers()).toEqual([]);
    if (!engine.keepsList) return;
    const lost = start('/bin/sh', ['-c', STUBBORN]);
    await up(lost.work);
    rmSync(lost.path, { recursive: true, force: true });
    await new Containers({ dir: home, env, environment: engine.env, log: () => undefined }).find();
    expect(engine.containers()).toEqual([]);
  }, 60_000);

  it('take images out of archives and directories', async () => {
    const here = { targetDir: '/srv/job' };
    if (engine.archive) {
      const tar = join(dir, 'tools.tar');
      engine.archive(tar);
      const image = { kind: 'there', path: tar } as const;
      const archive = start('/bin/sh', ['-c', 'pwd; echo yes > made'], {}, { ...here, image });
      expect((await archive.end()).how).toEqual({ kind: 'exited', code: 0 });
      expect(archive.out()).toBe('/srv/job\n');
      expect(readFileSync(join(archive.work, 'made'), 'utf8')).toBe('yes\n');
    }
    if (engine.root === undefined) return;
    const directory = start('/bin/sh', ['-c', 'pwd'], {}, { image: { kind: 'there', path: engine.root } });
    expect((await directory.end()).how).toEqual({ kind: 'exited', code: 0 });
    expect(directory.out()).toBe(`${directory.work}\n`);
    expect(existsSync(join(engine.root, home))).toBe(false);
  }, 60_000);

  it('of the docker universe keep the entry point of their image, if it is not to be overridden', async () => {
    if (!engine.greets) return;
    const greets = { docker: true, keepEntrypoint: true, image: engine.greets } as const;
    const kept = start('/bin/sh', ['-c', 'exit 3'], {}, greets);
    const alone = start('', ['you'], {}, greets);
    const taken = start('/bin/sh', ['-c', 'exit 3'], {}, { ...greets, keepEntrypoint: false });
    expect((await kept.end()).how).toEqual({ kind: 'exited', code: 0 });
    expect(kept.out()).toBe('hello /bin/sh -c exit 3\n');
    await alone.end();
    expect(alone.out()).toBe('hello you\n');
    expect((await taken.end()).how).toEqual({ kind: 'exited', code: 3 });
    expect(engine.containers()).toEqual([]);
  }, 60_000);
}
