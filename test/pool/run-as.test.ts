import { spawn } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { AttemptKey } from '../../src/job/ids.ts';
import { type Account, accountOf } from '../../src/pool/host/accounts.ts';
import { isStopped, processesOfAccount } from '../../src/pool/host/processes.ts';
import type { FromWorker, RunSpec } from '../../src/pool/wire/wire.ts';
import { Accounts } from '../../src/pool/worker/accounts.ts';
import { Cgroups } from '../../src/pool/worker/cgroups.ts';
import { Containers } from '../../src/pool/worker/containers.ts';
import { ExecuteDir } from '../../src/pool/worker/execute-dir.ts';
import { JobUsers } from '../../src/pool/worker/job-users.ts';
import { SlotAccounts } from '../../src/pool/worker/slot-accounts.ts';
import { Startd } from '../../src/pool/worker/startd.ts';
import { processIdentity } from '../../src/util/process-identity.ts';
import { until } from '../agent/agent.ts';
import { SCRIPTS } from './scripts.ts';

const isRoot = process.getuid?.() === 0;
if (!isRoot) process.stderr.write('Tests of jobs under other accounts are left out: they need root.\n');

/** Accounts that need not exist on the machine. */
const SLOT: Account = { name: 'slot1_1', uid: 54_321, gid: 54_321, home: '/nonexistent' };
/** Nothing else on the machine runs as this one. */
const OTHER: Account = { name: 'other', uid: 54_322, gid: 54_322, home: '/nonexistent' };
const find = (name: string) => [SLOT, OTHER].find((one) => one.name === name) ?? accountOf(name);

describe('the account of a job', () => {
  const users = (runAs: string, more: Partial<ConstructorParameters<typeof JobUsers>[0]> = {}) =>
    new JobUsers({
      runAs: () => runAs,
      isRoot: true,
      self: () => 'somebody',
      path: process.env['PATH'],
      find,
      ...more,
    });
  const chosen = (runAs: string, owner?: string, used: readonly number[] = []) => {
    const choice = users(runAs).choose(owner, new Set(used));
    return 'refusal' in choice ? choice.refusal : choice.user?.name;
  };

  it('is its owner’s, if there is one and it is not root’s, or else a free slot’s or nobody’s', () => {
    expect(chosen('owner', 'daemon')).toBe('daemon');
    for (const none of ['root', 'no-such-account', undefined, '--help', '0', '']) {
      expect(chosen('owner', none)).toBe('slot1_1');
      expect(chosen('owner', none, [SLOT.uid])).toBe('nobody');
    }
  });

  it('is what the setting says, and root’s only if that says so', () => {
    expect(chosen('root', 'daemon')).toBeUndefined();
    expect(chosen('nobody', 'daemon')).toBe('nobody');
    expect(chosen('daemon', 'nobody')).toBe('daemon');
    expect(chosen('slot', 'daemon')).toBe('slot1_1');
    expect(chosen('slot', 'daemon', [SLOT.uid])).toMatch(/no account slot1_1, .* is free/);
    expect(chosen('no-such-account')).toMatch(/no account 'no-such-account'/);
    const other = { name: 'toor', uid: 0, gid: 0, home: '/root' };
    expect(
      users('owner', { find: (name) => (name === 'toor' ? other : find(name)) }).choose('toor', new Set()),
    ).toMatchObject({ user: { name: 'slot1_1' } });
  });

  it('is the worker’s own for the agent’s own user, unless another is named', () => {
    expect(users('owner', { self: () => 'root' }).choose('root', new Set())).toEqual({});
    expect(users('owner', { self: () => 'root' }).choose('daemon', new Set())).toMatchObject({
      user: { name: 'daemon' },
    });
    expect(users('nobody', { self: () => 'root' }).choose('root', new Set())).toMatchObject({
      user: { name: 'nobody' },
    });
  });

  it('is the worker’s own by the name that the worker has now, never by a former one, which may be another’s by then', () => {
    let self = 'daemon';
    const renamed = users('owner', { self: () => self });
    expect(renamed.choose('daemon', new Set())).toEqual({});
    self = 'bella';
    expect(renamed.choose('bella', new Set())).toEqual({});
    expect(renamed.choose('daemon', new Set())).toMatchObject({ user: { name: 'daemon' } });
  });

  it('is the worker’s own where it is not root, and none where root cannot change it', () => {
    expect(users('owner', { isRoot: false }).choose('daemon', new Set())).toEqual({});
    expect(users('owner', { path: '/nonexistent' }).choose('daemon', new Set())).toMatchObject({
      refusal: expect.stringMatching(/setpriv/),
    });
  });
});

describe.runIf(isRoot)("a worker of root's runs", () => {
  let dir: string;
  let startd: Startd;
  let said: FromWorker[];
  let execute: ExecuteDir;

  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), 'run-as-'));
    chmodSync(dir, 0o711);
    open();
  });
  afterEach(() => {
    startd.close();
    rmSync(dir, { recursive: true, force: true });
  });

  function open(runAs = 'owner', slots = true, groups?: Cgroups): void {
    const mine: FromWorker[] = [];
    said = mine;
    const worker = join(dir, 'worker');
    if (!existsSync(worker)) mkdirSync(worker, { mode: 0o700 });
    execute = new ExecuteDir({ workerDir: worker, instance: 'w', fallback: join(dir, 'execute') });
    startd = new Startd({
      dir: worker,
      machine: {
        size: { cpus: 4, memoryMb: 4000, diskKb: 1e6, gpus: 0 },
        ad: { Requirements: 'true' },
        limitMemory: false,
      },
      env: { PATH: process.env['PATH'] },
      scripts: SCRIPTS,
      sharesHome: true,
      ...(groups ? { groups } : {}),
      accounts: new Accounts(
        new JobUsers({
          runAs: () => runAs,
          isRoot: true,
          self: () => 'somebody',
          path: process.env['PATH'],
          find: slots ? find : accountOf,
        }),
        execute,
      ),
      containers: new Containers({ dir: worker, env: {}, environment: {}, log: () => undefined }),
      pull: () => () => Promise.reject(new Error('nothing is to be fetched')),
      proxyOf: (name) => join(dir, name),
      say: (message) => mine.push(message),
      log: () => undefined,
    });
  }

  function start(
    key: AttemptKey,
    text: string,
    owner = 'root',
    more: Partial<RunSpec> = {},
    claim: string = key,
  ): void {
    const spec: RunSpec = {
      executable: { kind: 'there', path: '/bin/sh' },
      args: ['-c', text],
      env: {},
      inputs: [],
      joinStderr: false,
      shared: { cwd: dir, executable: '/bin/sh' },
      vacateSeconds: 20,
      ...more,
    };
    const size = { cpus: 1, memoryMb: 50, diskKb: 0, gpus: 0 };
    startd.take({ t: 'kind', id: owner, ad: { Requirements: 'true', Owner: JSON.stringify(owner) } });
    startd.take({ t: 'start', key, claim, kind: owner, size, spec, lease: 60 });
  }

  const end = (key: AttemptKey) =>
    until(`the end of ${key}`, () => {
      const ended = said.find((message) => message.t === 'ended' && message.key === key);
      return ended?.t === 'ended' ? ended.ending : undefined;
    });
  const output = (key: AttemptKey) => readFileSync(join(execute.path, key, 'stdout'), 'utf8');
  const started = (key: AttemptKey, text: string) =>
    until(`${key} to say ${text}`, () => existsSync(join(execute.path, key, 'stdout')) && output(key).includes(text));

  it('run as their owners, in a directory of their own that only they can read', async () => {
    start('runas.1.0.1', 'id -un; echo $USER; pwd; stat -c "%U %a" .; head -c 1 ../record || echo no', 'daemon');
    expect((await end('runas.1.0.1')).how).toEqual({ kind: 'exited', code: 0 });
    expect(output('runas.1.0.1').split('\n')).toEqual([
      'daemon',
      'daemon',
      join(execute.path, 'runas.1.0.1', 'work'),
      'daemon 700',
      'no',
      '',
    ]);
    startd.take({ t: 'forget', keys: ['runas.1.0.1'] });
    expect(readdirSync(execute.path)).toEqual([]);
  }, 30_000);

  it('cannot read what a former job of their account left, once that has ended', async () => {
    start('runas.1.0.1', 'echo secret >secret; chmod -R a+rwX .; cat secret', 'daemon');
    await end('runas.1.0.1');
    const before = join(execute.path, 'runas.1.0.1');
    start('runas.2.0.1', `cat ${before}/stdout ${before}/work/secret; echo over; id -un`, 'daemon');
    await end('runas.2.0.1');
    expect(output('runas.1.0.1')).toBe('secret\n');
    expect(output('runas.2.0.1')).toBe('over\ndaemon\n');
  }, 30_000);

  it('never run in the shell that ran jobs of another account, under the same claim either', async () => {
    const who = join(dir, 'who');
    writeFileSync(who, '');
    chmodSync(who, 0o666);
    const pids: string[] = [];
    for (const [n, owner] of ['somebody', 'somebody', 'daemon', 'daemon', 'nobody', 'somebody'].entries()) {
      const key = `runas.${n + 1}.0.1` as const;
      start(key, `echo $(id -un) $PPID >${who}`, owner, {}, 'claim');
      await end(key);
      const [name = '', pid = ''] = readFileSync(who, 'utf8').trim().split(' ');
      expect(name).toBe(owner === 'somebody' ? 'root' : owner);
      // Jobs of the worker's own account may share one.
      if (owner !== 'somebody') expect(pids).not.toContain(pid);
      pids.push(pid);
    }
  }, 30_000);

  it('leave nothing running: whatever uses the account of their slot dies with them', async () => {
    const hide = 'for i in 1 2 3; do env -i setsid sh -c "env -i sleep 600 & exec env -i sleep 600" & done; sleep 0.3';
    start('runas.1.0.1', hide);
    await end('runas.1.0.1');
    expect(processesOfAccount(SLOT.uid)).toEqual([]);
    start('runas.2.0.1', `${hide}; echo up; sleep 600`);
    await started('runas.2.0.1', 'up');
    startd.take({ t: 'cancel', key: 'runas.2.0.1', how: 'remove', message: 'over' });
    await end('runas.2.0.1');
    expect(processesOfAccount(SLOT.uid)).toEqual([]);
  }, 30_000);

  it('are suspended, resumed and asked to end as others are', async () => {
    start('runas.1.0.1', "trap 'echo saved >state; exit 3' TERM; echo up; while :; do sleep 0.05; done", 'daemon');
    await started('runas.1.0.1', 'up');
    startd.take({ t: 'suspend', key: 'runas.1.0.1' });
    expect(said.at(-1)).toMatchObject({ t: 'suspended' });
    startd.take({ t: 'resume', key: 'runas.1.0.1' });
    startd.take({ t: 'cancel', key: 'runas.1.0.1', how: 'vacate', message: 'over' });
    const { how } = await end('runas.1.0.1');
    expect(how).toMatchObject({ kind: 'by-site', cause: 'preempted', yielded: true });
    expect(readFileSync(join(execute.path, 'runas.1.0.1/work/state'), 'utf8')).toBe('saved\n');
  }, 30_000);

  it('are suspended with whatever uses the account of their slot', async () => {
    start('runas.1.0.1', 'env -i setsid sh -c "echo up; while :; do :; done" & while :; do :; done');
    await started('runas.1.0.1', 'up');
    const running = () => processesOfAccount(SLOT.uid).filter((pid) => !isStopped(pid)).length;
    expect(running()).toBeGreaterThan(1);
    startd.take({ t: 'suspend', key: 'runas.1.0.1' });
    expect(running()).toBe(0);
    startd.take({ t: 'resume', key: 'runas.1.0.1' });
    expect(running()).toBeGreaterThan(1);
    startd.take({ t: 'cancel', key: 'runas.1.0.1', how: 'remove', message: 'over' });
    await end('runas.1.0.1');
  }, 30_000);

  it('are in control groups as others are, from their first moment', async () => {
    const groups = Cgroups.open({ policy: 'auto', name: `gryphus-runas-${process.pid}`, limitMemory: false });
    if (!groups) return;
    startd.close();
    open('owner', true, groups);
    start(
      'runas.1.0.1',
      'cat /proc/self/cgroup; id -u; env -i setsid sh -c "while :; do :; done" & sleep 600',
      'other',
    );
    await started('runas.1.0.1', String(OTHER.uid));
    expect(output('runas.1.0.1')).toContain('/runas.1.0.1\n');
    const busy = () => processesOfAccount(OTHER.uid).length;
    await until('both', () => busy() >= 2 || undefined);
    startd.take({ t: 'suspend', key: 'runas.1.0.1' });
    expect(said.at(-1)).toMatchObject({ t: 'suspended' });
    startd.take({ t: 'cancel', key: 'runas.1.0.1', how: 'remove', message: 'over' });
    await end('runas.1.0.1');
    await until('none to be left', () => busy() === 0 || undefined);
    groups.close();
  }, 30_000);

  it('are found by the next worker, whatever that does with new ones', async () => {
    start('runas.1.0.1', 'while ! [ -e go ]; do sleep 0.05; done; id -un', 'daemon');
    await until('its start', () => said.some(({ t }) => t === 'started') || undefined);
    startd.close();
    const before = execute.path;
    chmodSync(dir, 0o700);
    open('root');
    expect(execute.path).not.toBe(before);
    expect(startd.held()).toMatchObject([{ key: 'runas.1.0.1', is: 'running' }]);
    chmodSync(dir, 0o711);
    writeFileSync(join(before, 'runas.1.0.1/work/go'), '');
    await end('runas.1.0.1');
    expect(readFileSync(join(before, 'runas.1.0.1/stdout'), 'utf8')).toBe('daemon\n');
    start('runas.2.0.1', 'id -un >who', 'daemon');
    await end('runas.2.0.1');
    expect(readFileSync(join(dir, 'who'), 'utf8')).toBe('root\n');
  }, 30_000);

  it('have a copy of their proxy, which follows the worker’s', async () => {
    writeFileSync(join(dir, 'p'), 'first', { mode: 0o600 });
    const text = 'cat $X509_USER_PROXY; until grep -q second $X509_USER_PROXY; do sleep 0.1; done; echo then second';
    start('runas.1.0.1', text, 'daemon', { proxy: 'p' });
    await started('runas.1.0.1', 'first');
    writeFileSync(join(dir, 'p'), 'second');
    expect((await end('runas.1.0.1')).how).toEqual({ kind: 'exited', code: 0 });
    expect(output('runas.1.0.1')).toMatch(/^first/);
  }, 30_000);

  it('die with what waits for them', async () => {
    start('runas.1.0.1', 'echo $PPID; exec sleep 600');
    await started('runas.1.0.1', '\n');
    process.kill(Number(output('runas.1.0.1')), 'SIGKILL');
    expect((await end('runas.1.0.1')).how).toEqual({ kind: 'signaled', signal: 9 });
    expect(processesOfAccount(SLOT.uid)).toEqual([]);
  }, 30_000);

  it('do not share the account of a slot with jobs of another worker', () => {
    const accounts = join(dir, 'accounts');
    const users = (worker: string) => {
      const workerDir = join(dir, worker);
      mkdirSync(workerDir, { recursive: true });
      const slots = new SlotAccounts(workerDir, accounts);
      const isRoot = true;
      return new JobUsers({ runAs: () => 'slot', isRoot, self: () => 'root', path: process.env['PATH'], find, slots });
    };
    const [one, two] = [users('one'), users('two')];
    for (const name of ['one', 'two']) writeFileSync(join(dir, name, 'worker.pid'), JSON.stringify(processIdentity()));
    const has = (from: JobUsers, used: readonly number[] = []) => 'user' in from.choose('root', new Set(used));
    expect([has(one), has(two)]).toEqual([true, false]);
    expect(has(one)).toBe(true);
    // Nothing is left to use it.
    one.close();
    expect([has(two), has(one)]).toEqual([true, false]);
    // The other worker died, and nothing of its job is left.
    rmSync(join(dir, 'two', 'worker.pid'));
    expect(has(users('three'))).toBe(true);
    const left = spawn('sleep', ['600'], { uid: SLOT.uid, gid: SLOT.gid, stdio: 'ignore' });
    expect(has(users('four'))).toBe(false);
    left.kill('SIGKILL');
    expect(readdirSync(accounts)).toEqual(['slot1_1']);
  });

  it('are refused where their accounts could not reach them', () => {
    startd.close();
    chmodSync(dir, 0o700);
    const configured = join(dir, 'execute');
    const there = new ExecuteDir({ configured, workerDir: join(dir, 'worker'), instance: 'w' });
    expect(() => there.open()).toThrow(/cannot be reached/);
    chmodSync(dir, 0o711);
    there.open();
    expect(readdirSync(there.path)).toEqual(['worker']);
    there.close();
    expect(existsSync(configured)).toBe(false);
  });
});
