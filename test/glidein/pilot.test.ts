import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createHash } from 'node:crypto';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { nodeArch, glibcOf, nodeFor } from '../../src/staging/node-package.ts';
import { shellQuote } from '../../src/util/shell-quote.ts';
import { SLOW } from '../slow.ts';

const PILOT = join(import.meta.dirname, '../../src/glidein/pilot.sh');

describe('a pilot', () => {
  let dir: string;
  let bin: string;
  beforeEach(() => {
    dir = mkdtempSync("/tmp/gry-pilot it's-");
    bin = join(dir, 'bin');
    mkdirSync(bin);
    mkdirSync(join(dir, 'work'));
    writeFileSync(join(dir, 'work/worker.mjs'), '');
    writeFileSync(join(dir, 'work/pilot-0.json'), '{"token":"t","endsAt":"@ENDS@"}', { mode: 0o600 });
    // In place of Node: it prints its version, and, when run as a worker, shows its input.
    program(
      join(dir, 'work/node'),
      'case $1 in --version) echo v20.0.0 ;; *) cat "$2" >seen; ls -ld "$2" >>seen ;; esac',
    );
  });
  afterEach(() => rmSync(dir, { recursive: true, force: true }));

  function program(path: string, text: string): void {
    writeFileSync(path, `#!/bin/sh\n${text}\n`);
    chmodSync(path, 0o755);
  }
  function fly(need: Readonly<Record<string, string | number>> = {}, env: NodeJS.ProcessEnv = {}) {
    const all = { 'disk-kb': 1, 'memory-kb': 1, glibc: '2.17', arch: archHere(), made: 1, walltime: 3600, ...need };
    const lines = Object.entries(all).map(([name, value]) => `${name} ${value}\n`);
    writeFileSync(join(dir, 'work/need'), lines.join(''));
    const { status, stderr } = spawnSync('sh', [PILOT, 'pilot-0.json'], {
      cwd: join(dir, 'work'),
      encoding: 'utf8',
      env: { ...process.env, PATH: `${bin}:${process.env['PATH'] ?? ''}`, TMPDIR: '', ...env },
    });
    return { status, stderr };
  }
  const archHere = () => nodeArch(execFileSync('uname', ['-m'], { encoding: 'utf8' }).trim());

  it('gives the worker the end of its allocation, in a file of its own, and cleans up', () => {
    const { status, stderr } = fly();
    expect({ status, stderr }).toMatchObject({ status: 0, stderr: expect.stringMatching(/^pilot: on \S+, node v20/) });
    const seen = readFileSync(join(dir, 'work/seen'), 'utf8');
    const ends = Number(/"endsAt":(\d+)/.exec(seen)?.[1]);
    expect(Math.abs(ends - Date.now() / 1000 - 3600)).toBeLessThan(60);
    expect(seen).toContain('-rw-------');
    expect(existsSync(join(dir, 'work/pilot-0.json'))).toBe(false);
    expect(readdirSync(join(dir, 'work')).filter((name) => name.startsWith('gryphus-worker'))).toEqual([]);
  });

  it("works in the node's own scratch directory if there is one, and says which has no space", () => {
    const scratch = join(dir, 'scratch "$(x)" of the node');
    mkdirSync(scratch);
    expect(fly({ scratch: '$TMPDIR' }, { TMPDIR: scratch }).stderr).toContain(`in ${scratch}/gryphus-worker.`);
    expect(readdirSync(scratch)).toEqual([]);
    expect(fly({ 'disk-kb': 1e15 })).toMatchObject({
      status: 65,
      stderr: expect.stringContaining('too little disk space'),
    });
  });

  it.each([
    [
      'its processor is',
      { arch: 'arm64' },
      'uname',
      'case $1 in -m) echo x86_64 ;; -s) echo Linux ;; *) echo n ;; esac',
    ],
    ['its glibc is 2.12, but Node needs 2.28', { glibc: '2.28' }, 'getconf', 'echo glibc 2.12'],
    ['it has no GNU C library', { glibc: '2.28' }, 'getconf', 'exit 1'],
    ['it runs SunOS', {}, 'uname', 'echo SunOS'],
    ['hours behind', { made: Math.floor(Date.now() / 1000) + 500_000 }, 'unused', ''],
    ['KB of free memory', { 'memory-kb': 1e15 }, 'unused', ''],
  ])('says why it cannot run: %s', (message, need, name, text) => {
    program(join(bin, name), text);
    const { status, stderr } = fly(need);
    expect(status).toBe(65);
    expect(stderr).toMatch(/^pilot: cannot run on .*\n$/);
    expect(stderr).toContain(message);
  });

  it('says what Node says that does not run there', () => {
    program(join(dir, 'work/node'), "echo './node: version GLIBC_2.28 not found' >&2; exit 1");
    expect(fly()).toMatchObject({ status: 65, stderr: expect.stringContaining('GLIBC_2.28 not found') });
  });

  it('runs only what was sent, and has the site keep no copy that is something else', () => {
    mkdirSync(join(dir, 'root/jobs/key'), { recursive: true });
    mkdirSync(join(dir, 'root/cache'));
    renameSync(join(dir, 'work'), join(dir, 'root/jobs/key/work'));
    symlinkSync(join(dir, 'root/jobs/key/work'), join(dir, 'work'));
    const hash = (text: string) => createHash('sha256').update(text).digest('hex');
    const [node, worker] = [hash(readFileSync(join(dir, 'work/node'), 'utf8')), hash('')];
    const kept = () => readdirSync(join(dir, 'root/cache')).sort();
    for (const name of [node, `${worker}.x`, worker]) writeFileSync(join(dir, 'root/cache', name), '');
    expect(fly({ 'node-sha256': node, 'worker-sha256': worker }).status).toBe(0);
    writeFileSync(join(dir, 'work/pilot-0.json'), '{}', { mode: 0o600 });
    writeFileSync(join(dir, 'work/worker.mjs'), 'changed');
    expect(fly({ 'node-sha256': node, 'worker-sha256': worker })).toMatchObject({
      status: 65,
      stderr: expect.stringContaining(`its worker.mjs is not what was sent: its SHA-256 is ${hash('changed')}.`),
    });
    expect(kept()).toEqual([node]);
  });

  it('says of a worker that failed that it did, and not of one that ended in order', () => {
    const ends = (how: string) => {
      writeFileSync(join(dir, 'work/pilot-0.json'), '{}', { mode: 0o600 });
      program(join(dir, 'work/node'), `case $1 in --version) echo v20 ;; *) ${how} ;; esac`);
      return fly();
    };
    expect(ends('exit 3')).toMatchObject({
      status: 3,
      stderr: expect.stringMatching(/\npilot: the worker failed on \S+: it exited with status 3\n$/),
    });
    for (const status of [0, 75, 77]) {
      expect(ends(`exit ${status}`)).toMatchObject({ status, stderr: expect.not.stringContaining('failed') });
    }
    // The batch system told it to end.
    expect(ends('kill -TERM $PPID; sleep 0.2; exit 9')).toMatchObject({
      stderr: expect.not.stringContaining('failed'),
    });
  });

  it('starts a worker again that was killed, and not one that ended', () => {
    program(
      join(dir, 'work/node'),
      'case $1 in --version) echo v20 ;; *) echo x >>times; [ "$(wc -l <times)" -ge 3 ] || kill -KILL $$ ;; esac',
    );
    const { status, stderr } = fly();
    expect(status).toBe(0);
    expect(stderr.match(/restarting it/g)).toHaveLength(2);
    expect(readFileSync(join(dir, 'work/times'), 'utf8')).toBe('x\nx\nx\n');
    writeFileSync(join(dir, 'work/pilot-0.json'), '{}', { mode: 0o600 });
    program(join(dir, 'work/node'), 'case $1 in --version) echo v20 ;; *) exit 77 ;; esac');
    expect(fly()).toMatchObject({ status: 77, stderr: expect.not.stringContaining('again') });
  });

  it('gives up a worker that dies at once again and again, and none that is killed now and then', () => {
    const dies = (times: number, first = ':') => {
      writeFileSync(join(dir, 'work/times'), '');
      writeFileSync(join(dir, 'work/pilot-0.json'), '{}', { mode: 0o600 });
      const until = `[ "$(wc -l <times)" -gt ${times} ] || kill -KILL $$`;
      program(
        join(dir, 'work/node'),
        `case $1 in --version) echo v20 ;; *) ${first}; echo x >>times; ${until} ;; esac`,
      );
      const { status } = fly();
      return { status, times: readFileSync(join(dir, 'work/times'), 'utf8').length / 2 };
    };
    expect(dies(30)).toEqual({ status: 137, times: 21 });
    // One that has jobs, whose results would be lost, is tried for longer, with pauses.
    program(join(bin, 'sleep'), `echo "$1" >>${shellQuote(join(dir, 'pauses'))}`);
    expect(dies(30, 'mkdir -p "${2%/*}/jobs/a.1.0.1"')).toEqual({ status: 0, times: 31 });
    expect(readFileSync(join(dir, 'pauses'), 'utf8')).toBe('30\n'.repeat(10));
    expect(dies(200, 'mkdir -p "${2%/*}/jobs/a.1.0.1"')).toEqual({ status: 137, times: 121 });
    // A clock that goes on by a minute at each look.
    program(
      join(bin, 'date'),
      `echo x >>${shellQuote(join(dir, 'looks'))}; echo $((2000000000 + 60 * $(wc -l <${shellQuote(join(dir, 'looks'))})))`,
    );
    expect(dies(30)).toEqual({ status: 0, times: 31 });
  });

  it('removes what a killed pilot left on this machine, and nothing that may be in use', async () => {
    const work = join(dir, 'work');
    const left = () =>
      readdirSync(work)
        .filter((name) => name.startsWith('gryphus-worker'))
        .sort();
    const scene = (name: string, lives: string) => {
      mkdirSync(join(work, `gryphus-worker.${name}`, 'jobs/1'), { recursive: true });
      writeFileSync(join(work, `gryphus-worker.${name}/lives`), lives);
    };
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    const started = (pid: number) => readFileSync(`/proc/${pid}/stat`, 'utf8').replace(/.*\) /s, '').split(' ')[19];
    const alive = `${hostname()} ${boot} ${process.pid} ${started(process.pid)}\n`;
    const dead = `${hostname()} ${boot} ${process.pid} 1\n`;
    scene('alive', dead + alive);
    scene('dead', dead + dead);
    scene('elsewhere', `another ${boot} 1 1\n`);
    scene('of an earlier boot', alive.replace(boot, 'b'));
    scene('with a job', dead);
    scene('unknown', '');
    const job = spawn('sleep', ['60'], { cwd: join(work, 'gryphus-worker.with a job/jobs/1') });
    await once(job, 'spawn');
    fly();
    expect(left()).toEqual(['alive', 'elsewhere', 'unknown', 'with a job'].map((name) => `gryphus-worker.${name}`));
    const ended = once(job, 'exit');
    job.kill();
    await ended;
    writeFileSync(join(work, 'pilot-0.json'), '{}', { mode: 0o600 });
    fly();
    expect(left()).toEqual(['alive', 'elsewhere', 'unknown'].map((name) => `gryphus-worker.${name}`));
  });
});

describe("the pilots' Node", () => {
  it('is ours where that is wanted, and says what C library it needs', async () => {
    const repository = mkdtempSync('/tmp/gry-repo-');
    const arch = nodeArch(process.arch === 'x64' ? 'x86_64' : 'aarch64');
    const node = await nodeFor(arch, { repository, from: 'own', log: () => undefined });
    expect(execFileSync(node.path, ['--version'], { encoding: 'utf8' }).trim()).toBe(process.version);
    expect(node.glibc).toMatch(/^2\.\d+$/);
    expect(await nodeFor(arch, { repository, from: 'own', log: () => undefined })).toEqual(node);
    rmSync(repository, { recursive: true });
    expect(glibcOf(Buffer.from('..GLIBC_2.4\0GLIBC_2.28\0GLIBC_2.17\0'))).toBe('2.28');
    expect(() => nodeArch('riscv64')).toThrow('There is no worker build for the processor riscv64.');
  });

  it.skipIf(!SLOW)(
    "is npm's package of the official one, whose checksum is known",
    async () => {
      const repository = mkdtempSync('/tmp/gry-repo-');
      for (const arch of ['x64', 'arm64'] as const) {
        const node = await nodeFor(arch, { repository, from: 'npm', log: () => undefined });
        expect(node.glibc).toBe(arch === 'x64' ? '2.28' : '2.28');
      }
      rmSync(repository, { recursive: true });
    },
    300_000,
  );
});
