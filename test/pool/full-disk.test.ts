import { createHash } from 'node:crypto';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { AttemptKey } from '../../src/job/ids.ts';
import { Containers } from '../../src/pool/worker/containers.ts';
import { NO_SPACE } from '../../src/pool/host/full-disk.ts';
import { Startd } from '../../src/pool/worker/startd.ts';
import type { FromWorker, RunSpec } from '../../src/pool/wire/wire.ts';
import { until } from '../agent/agent.ts';
import { CAN_MOUNT, type SmallDisk, smallDisk } from './small-disk.ts';
import { SCRIPTS } from './scripts.ts';

const SIZE = { cpus: 1, memoryMb: 50, diskKb: 0, gpus: 0 };

describe.runIf(CAN_MOUNT)("a worker's full disk", () => {
  let dir: string;
  let disk: SmallDisk;
  let startd: Startd;
  let said: FromWorker[];
  let content: Buffer;
  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), 'gryphus full '));
    disk = smallDisk(join(dir, "disk's"), 8192);
    content = Buffer.alloc(0);
    open();
  });
  afterEach(() => {
    startd.close();
    disk.unmount();
    rmSync(dir, { recursive: true, force: true });
  });

  function open(sharesHome = true): void {
    const mine: FromWorker[] = [];
    said = mine;
    startd = new Startd({
      dir: disk.dir,
      machine: {
        size: { cpus: 4, memoryMb: 4000, diskKb: 8192, gpus: 0 },
        ad: { Requirements: 'true' },
        limitMemory: false,
      },
      env: { PATH: process.env['PATH'] },
      scripts: SCRIPTS,
      sharesHome,
      containers: new Containers({ dir: disk.dir, env: {}, environment: {}, log: () => undefined }),
      pull: () => (_, offset, bytes) => Promise.resolve(content.subarray(offset, offset + bytes)),
      proxyOf: (name) => name,
      say: (message) => mine.push(message),
      log: () => undefined,
    });
    startd.take({ t: 'kind', id: 'k', ad: { Requirements: 'true' } });
  }

  const spec = (command: string, more: Partial<RunSpec> = {}): RunSpec => ({
    executable: { kind: 'there', path: '/bin/sh' },
    args: ['-c', command],
    env: {},
    inputs: [],
    joinStderr: false,
    ...more,
  });
  function start(key: AttemptKey, run: RunSpec, claim: string = key): void {
    startd.take({ t: 'start', key, claim, kind: 'k', size: SIZE, spec: run, lease: 60 });
  }
  function task(key: AttemptKey, args: readonly string[], claim: string): void {
    startd.take({ t: 'start', key, claim, kind: 'k', size: SIZE, spec: { base: 'b', args }, lease: 60 });
  }
  const word = <T extends 'ended' | 'gone'>(t: T, key: AttemptKey) =>
    until(`${t} of ${key}`, () =>
      said.find((one): one is Extract<FromWorker, { t: T }> => one.t === t && 'key' in one && one.key === key),
    );
  const cached = () => readdirSync(join(disk.dir, 'cache'));

  it('costs a program that fills it neither its exit status nor its times', async () => {
    start('full.1.0.1', spec('cat /dev/zero >fat 2>/dev/null; exit 5'));
    expect((await word('ended', 'full.1.0.1')).ending).toMatchObject({ how: { kind: 'exited', code: 5 } });
  }, 60_000);

  it.each(['has all that it needs itself', 'is sent its inputs'])(
    'turns a job away whose inputs do not fit, keeps nothing of them, and takes it when they fit: one that %s',
    async (how) => {
      startd.close();
      open(how.startsWith('has'));
      content = Buffer.alloc(3 << 20, 7);
      const path = join(dir, 'large');
      writeFileSync(path, content);
      const blob = { sha256: createHash('sha256').update(content).digest('hex'), bytes: content.length, path };
      const file = { kind: 'file', name: 'in', file: { kind: 'blob', blob }, executable: false } as const;
      disk.fill(2048);
      start('full.1.0.1', spec('cat in', { inputs: [file] }));
      expect(await word('gone', 'full.1.0.1')).toMatchObject({ why: 'claim', message: NO_SPACE });
      expect(cached()).toEqual([]);
      expect(startd.held()).toEqual([]);
      disk.free();
      start('full.1.0.1', spec('wc -c <in', { inputs: [file] }));
      const { ending } = await word('ended', 'full.1.0.1');
      expect(ending).toMatchObject({ how: { kind: 'exited', code: 0 } });
    },
    60_000,
  );

  it('begins nothing, says so, and begins again when there is space', async () => {
    disk.fill();
    startd.space.look(() => undefined);
    await until('it to be seen', () => startd.space.kb < 100 || undefined);
    start('full.1.0.1', spec('true'));
    expect(said).toMatchObject([{ t: 'gone', key: 'full.1.0.1', why: 'claim', message: NO_SPACE }]);
    expect(Number(startd.space.ad()['FreeDiskKb'])).toBeLessThan(100);
    disk.free();
    let news = 0;
    await until('it to be news', () => {
      startd.space.look(() => (news += 1));
      return news > 0 || undefined;
    });
    start('full.1.0.1', spec('true'));
    await word('ended', 'full.1.0.1');
  }, 60_000);

  it('that is suddenly full starts nothing that could not be recorded', async () => {
    disk.fill();
    // It does not know yet.
    start('full.1.0.1', spec(`: >'${dir}/ran'`));
    expect(await word('gone', 'full.1.0.1')).toMatchObject({ why: 'claim', message: NO_SPACE });
    expect(existsSync(join(dir, 'ran'))).toBe(false);
    expect(readdirSync(join(disk.dir, 'jobs'))).toEqual([]);
  }, 60_000);

  it('costs a task of a task runner nothing: it is whole in the journal, or not begun; another worker finds its end', async () => {
    const ledger = join(dir, 'ledger');
    const tasks = spec('', { shared: { cwd: dir, executable: '/bin/sh' } });
    startd.take({ t: 'base', id: 'b', spec: tasks });
    const long = 'x'.repeat(3000);
    const line = (n: number, more = '') => ['-c', `echo ${n} >>ledger; ${more}`, long];
    task('full.1.0.1', line(1), 'c');
    await word('ended', 'full.1.0.1');
    disk.fill();
    const keys: AttemptKey[] = [];
    for (let n = 2; n < 8; n++) {
      const key: AttemptKey = `full.${n}.0.1`;
      keys.push(key);
      task(key, line(n), 'c');
      await until(
        `an answer for ${key}`,
        () => said.some((one) => (one.t === 'ended' || one.t === 'gone') && one.key === key) || undefined,
      );
    }
    const gone = keys.filter((key) => said.some((one) => one.t === 'gone' && one.key === key));
    expect(gone.length).toBeGreaterThan(0);
    for (const one of said) if (one.t === 'gone') expect(one).toMatchObject({ why: 'claim', message: NO_SPACE });
    const ran = readFileSync(ledger, 'utf8').trim().split('\n');
    expect(ran).toEqual(['1', ...keys.filter((key) => !gone.includes(key)).map((key) => key.split('.')[1])]);
    disk.free();
    startd.space.now();

    // It ends on a full disk while its worker is not connected.
    task('full.9.0.1', line(9, 'while ! [ -e go ]; do sleep 0.02; done; exit 3'), 'c');
    await until('it to run', () => readFileSync(ledger, 'utf8').includes('9') || undefined);
    startd.close();
    // To the last byte of the log's own block.
    disk.fill();
    for (const name of readdirSync(join(disk.dir, 'task-runners'))) {
      const file = join(disk.dir, 'task-runners', name, 'log');
      const size = readFileSync(file).length;
      writeFileSync(file, '\n'.repeat(4096 - (size % 4096)), { flag: 'a' });
    }
    writeFileSync(join(dir, 'go'), '');
    open();
    expect((await word('ended', 'full.9.0.1')).ending).toMatchObject({ how: { kind: 'exited', code: 3 } });
  }, 60_000);
});
