import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, openSync, closeSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { AttemptKey } from '../../src/job/ids.ts';
import { AttemptDir } from '../../src/pool/worker/attempt-dir.ts';
import { Containers } from '../../src/pool/worker/containers.ts';
import { childrenOf } from '../../src/pool/host/processes.ts';
import { Startd } from '../../src/pool/worker/startd.ts';
import type { FromWorker, RunSpec } from '../../src/pool/wire/wire.ts';
import { evicted } from '../../src/pool/worker/stopping.ts';
import { isAlive, type ProcessIdentity, processIdentity } from '../../src/util/process-identity.ts';
import { until } from '../agent/agent.ts';
import { SCRIPTS } from './scripts.ts';

const SIZE = { cpus: 4, memoryMb: 4000, diskKb: 1e6, gpus: 0 };
const KEY = 'shells.1.0.1' as AttemptKey;

/**
 * A run that is reported as over may be started elsewhere: by then none of its processes may live, whatever was killed.
 */
describe('a run whose shell is killed', () => {
  let dir: string;
  let startd: Startd;
  let said: FromWorker[];
  const left: ProcessIdentity[] = [];
  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), 'gryphus killed '));
    open();
  });
  afterEach(() => {
    startd.close();
    for (const one of left.splice(0)) if (isAlive(one)) process.kill(one.pid, 'SIGKILL');
    rmSync(dir, { recursive: true, force: true });
  });

  /** Like the next worker on the directory. */
  function open(): void {
    const mine: FromWorker[] = [];
    said = mine;
    startd = new Startd({
      dir,
      machine: { size: SIZE, ad: { Requirements: 'true' }, limitMemory: false },
      env: { PATH: process.env['PATH'] },
      scripts: SCRIPTS,
      sharesHome: true,
      containers: new Containers({ dir, env: {}, environment: {}, log: () => undefined }),
      pull: () => () => Promise.reject(new Error('nothing is to be fetched')),
      proxyOf: (name) => join(dir, name),
      say: (message) => mine.push(message),
      log: () => undefined,
    });
    startd.take({ t: 'kind', id: 'k', ad: { Requirements: 'true' } });
  }

  function start(script: string, shared: Partial<RunSpec['shared']> = {}, task = false, key = KEY): void {
    const spec: RunSpec = {
      executable: { kind: 'there', path: '/bin/sh' },
      args: ['-c', script],
      env: {},
      inputs: [],
      joinStderr: false,
      shared: { cwd: dir, executable: '/bin/sh', ...shared },
    };
    const size = { cpus: 1, memoryMb: 50, diskKb: 0, gpus: 0 };
    if (task) startd.take({ t: 'base', id: 'b', spec });
    startd.take({
      t: 'start',
      key,
      claim: 'c',
      kind: 'k',
      size,
      spec: task ? { base: 'b', args: spec.args } : spec,
      lease: 60,
    });
  }

  const read = (name: string) => (existsSync(join(dir, name)) ? readFileSync(join(dir, name), 'utf8').trim() : '');
  /** The process whose id the script wrote there. */
  const noted = async (name: string) => {
    const one = processIdentity(Number(await until(name, () => read(name) || undefined)));
    left.push(one);
    return one;
  };
  const parentOf = (pid: number) =>
    processIdentity(Number(execFileSync('ps', ['-o', 'ppid=', '-p', String(pid)], { encoding: 'utf8' })));
  const kill = async (...all: ProcessIdentity[]) => {
    for (const { pid } of all) process.kill(pid, 'SIGKILL');
    for (const one of all) await until('its death', () => !isAlive(one) || undefined);
  };
  const over = () => until('what became of it', () => said.find(({ t }) => t === 'ended' || t === 'gone'), 20_000);

  it.each([
    ['a job', false, false],
    ['a job, and with it the worker', false, true],
    ['a task of a map', true, false],
    ['a task of a map, and with it the worker', true, true],
  ])(
    'runs on, and its end is reported: %s',
    async (_, task, worker) => {
      start('echo $$ >program; while ! [ -e go ]; do sleep 0.05; done; exit 130', {}, task);
      const program = await noted('program');
      const waiter = parentOf(program.pid);
      await kill(parentOf(waiter.pid));
      if (worker) {
        startd.close();
        open();
      }
      await new Promise((resolve) => setTimeout(resolve, 600));
      expect([isAlive(program), said.filter(({ t }) => t !== 'started')]).toEqual([true, []]);
      expect(startd.held()).toMatchObject([{ key: KEY, is: 'running' }]);
      writeFileSync(join(dir, 'go'), '');
      expect(await over()).toMatchObject({ t: 'ended', ending: { how: { kind: 'exited', code: 130 } } });
    },
    60_000,
  );

  it.each(['suspended', 'cancelled', 'already told to end'])(
    'runs on when the attempt before it in its shell is %s, which the next worker finds over',
    async (how) => {
      const next: AttemptKey = 'shells.1.1.1';
      const first = new AttemptDir(join(dir, 'jobs'), KEY);
      start('echo $$ >first');
      await until('its end', () => said.find(({ t }) => t === 'ended'));
      // Of another kind, so that it is no task of a runner; in the same shell.
      start(
        `cd '${dir}'; echo $$ >program; while ! [ -e go ]; do sleep 0.05; done; exit 13`,
        { cwd: '/' },
        false,
        next,
      );
      const program = await noted('program');
      if (how === 'already told to end') first.decide(evicted('for its owner', 'owner'));
      startd.close();
      open();
      if (how === 'suspended') startd.take({ t: 'suspend', key: KEY });
      if (how === 'cancelled') startd.take({ t: 'cancel', key: KEY, how: 'remove', message: 'go' });
      await until('the end of the first', () => said.find((one) => 'key' in one && one.key === KEY));
      writeFileSync(join(dir, 'go'), '');
      const ended = await until('the end of the other', () =>
        said.find((one) => 'key' in one && one.key === next && one.t === 'ended'),
      );
      expect(ended).toMatchObject({ ending: { how: { kind: 'exited', code: 13 } } });
      expect(isAlive(program)).toBe(false);
    },
    60_000,
  );

  it.each([
    ['the worker sees it', false],
    ['the next worker finds it', true],
  ])(
    'is over when nothing of it lives any more: %s',
    async (_, worker) => {
      start(
        'echo $$ >program; setsid sh -c "trap : TERM HUP; echo \\$\\$ >away; while :; do sleep 1; done" & sleep 60',
      );
      const [program, away] = [await noted('program'), await noted('away')];
      const waiter = parentOf(program.pid);
      const starter = parentOf(waiter.pid);
      if (worker) startd.close();
      await kill(starter, waiter, program);
      if (worker) {
        expect(isAlive(away)).toBe(true);
        open();
      }
      expect(await over()).toMatchObject({ t: 'ended', ending: { how: { kind: 'by-site', cause: 'vanished' } } });
      expect(isAlive(away)).toBe(false);
    },
    60_000,
  );

  it('is not given up while a copy of that shell may still begin it', async () => {
    const fifo = join(dir, 'input');
    execFileSync('mkfifo', [fifo]);
    start(': >begun', { stdin: fifo });
    const starterFile = join(dir, 'jobs', KEY, 'starter');
    await until('its shell', () => existsSync(starterFile) || undefined);
    const { starter } = JSON.parse(readFileSync(starterFile, 'utf8')) as { starter: ProcessIdentity };
    const [inside = 0] = await until('what waits for its input', () => {
      const children = childrenOf(starter.pid);
      return children.length > 0 ? children : undefined;
    });
    const copy = processIdentity(inside);
    left.push(copy);
    await kill(starter);
    await new Promise((resolve) => setTimeout(resolve, 600));
    expect([isAlive(copy), said.filter(({ t }) => t !== 'started')]).toEqual([true, []]);
    closeSync(openSync(fifo, 'r+'));
    expect(await over()).toMatchObject({ t: 'ended', ending: { how: { kind: 'exited', code: 0 } } });
    expect(existsSync(join(dir, 'begun'))).toBe(true);
  }, 60_000);

  it('ends when it is asked to, though its shell is gone', async () => {
    start('trap "echo asked >asked; exit 7" TERM; echo $$ >program; while :; do sleep 0.05; done');
    const program = await noted('program');
    await kill(parentOf(parentOf(program.pid).pid));
    startd.take({ t: 'cancel', key: KEY, how: 'vacate', message: 'it moves' });
    expect(await over()).toMatchObject({ t: 'ended', ending: { how: { kind: 'by-site', cause: 'preempted' } } });
    expect([isAlive(program), read('asked')]).toEqual([false, 'asked']);
  }, 60_000);
});
