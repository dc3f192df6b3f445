import { spawn, spawnSync } from 'node:child_process';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { readExit } from '../../src/site/exit-record.ts';
import { until } from '../agent/agent.ts';

const SRC = join(import.meta.dirname, '../../src');
const FILES = ['wrapper', 'inputs', 'memory', 'records'].map((name) => `jobmanager/${name}.sh`);
const BOOT = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
const RESET = '--default-signal=INT,QUIT';
let dir: string;
let pids: number[];
beforeEach(() => {
  pids = [];
  dir = mkdtempSync(join(tmpdir(), 'gfw '));
  for (const name of ['bin', 'cache', 'jobs', 'events', 'tmp', 'fork/queue', 'fork/running'])
    mkdirSync(join(dir, name), { recursive: true });
  for (const name of [...FILES, 'util/ends.sh', 'backends/fork-worker.sh', 'backends/fork-start.sh'])
    copyFileSync(join(SRC, name), join(dir, 'bin', basename(name)));
});
afterEach(() => {
  for (const pid of pids) {
    try {
      process.kill(-pid, 'SIGKILL');
    } catch {
      // It has ended.
    }
  }
  rmSync(dir, { recursive: true });
});

/** Runs shell lines as the JobManager of this site would. */
function jobManager(lines: string): string {
  const head = `set -ufC; cd '${dir}'; ROOT='${dir}' BIN='${dir}/bin' T='${dir}/tmp' HOST='${hostname()}' BOOT=${BOOT} GRYPHUS_SLOTS=4
    NL='\n'; say() { printf '%s\\n' "$*"; }; tick() { :; }; . '${SRC}/backends/fork.sh'`;
  const { stdout, stderr } = spawnSync('sh', ['-c', `${head}\n${lines}`], { encoding: 'utf8' });
  expect(stderr).toBe('');
  return stdout;
}
const starter = () => jobManager('. "$BIN/fork-start.sh"; find_starter; printf %s "$START"');

/** Puts an attempt that runs these shell lines into the queue; its key. */
function queued(n: number, text: string): string {
  const key = `a.1.${n}.1`;
  mkdirSync(join(dir, 'jobs', key, 'work'), { recursive: true });
  writeFileSync(join(dir, 'jobs', key, 'intent.1'), '');
  const escaped = text.replaceAll('\\', '\\0134').replaceAll('\n', '\\0012');
  const lines = ['prepared 1', 'there /bin/sh', 'program', 'arg -c', `arg ${escaped}`, 'end', ''];
  writeFileSync(join(dir, 'jobs', key, 'spec'), lines.join('\n'));
  writeFileSync(join(dir, `fork/queue/${1000 + n}-${key}:1`), '');
  return key;
}
function worker(slot: number, start: string) {
  const words = [join(dir, 'bin/fork-worker.sh'), dir, join(dir, 'bin'), String(slot), hostname(), BOOT, RESET, start];
  const child = spawn('sh', words, { stdio: 'ignore', detached: true });
  if (child.pid !== undefined) pids.push(child.pid);
  return { pid: child.pid ?? 0, ended: new Promise<void>((done) => void child.once('close', () => done())) };
}
const line = (key: string) => readFileSync(join(dir, 'jobs', key, 'exit'), 'utf8').trimEnd();
const endOf = (key: string) => readExit(line(key))?.ending.how;
const LEFT = ['fork/queue', 'fork/running'];
const left = () => LEFT.flatMap((name) => readdirSync(join(dir, name)));

describe.each(['with its starter', 'without it'])('the workers of a fork site, %s', (which) => {
  const start = () => (which === 'without it' ? '' : starter());

  it('share the queue, run each job once, and tell how it ended', async () => {
    const [ledger, by] = [join(dir, 'ledger'), start()];
    const ends = ['exit 0', 'exit 7', 'exit 130', 'kill -INT $$', 'kill -TERM $$', 'kill -KILL $$'];
    const keys = Array.from({ length: 60 }, (_, n) => queued(n, `echo $GRYPHUS_KEY >>"${ledger}"; ${ends[n % 6]}`));
    await Promise.all([1, 2, 3, 4].map((slot) => worker(slot, by).ended));
    const ran = readFileSync(ledger, 'utf8').trim().split('\n');
    expect(ran.sort()).toEqual([...keys].sort());
    const hows = [
      ...[0, 7, 130].map((code) => ({ kind: 'exited', code })),
      ...[2, 15, 9].map((signal) => ({ kind: 'signaled', signal })),
    ];
    expect(keys.map(endOf)).toEqual(keys.map((_, n) => hows[n % 6]));
    expect(left()).toEqual([]);
    expect(readdirSync(join(dir, 'events'))).toHaveLength(120);
  }, 120_000);

  it('end what a program left running in its process group, and go on after one that was told to end', async () => {
    const by = start();
    const rest = join(dir, 'rest');
    const slow = queued(1, `sleep 1000 & echo $! >"${rest}"; exec sleep 1000`);
    const next = queued(2, 'exit 4');
    const { ended } = worker(1, by);
    await until('the program runs, or is gone', () => existsSync(rest) && readFileSync(rest, 'utf8').endsWith('\n'));
    expect(jobManager('fork_kick() { :; }; backend_queue')).toContain(`gryphus.${slow}.1 1001 RUNNING\n`);
    jobManager(`backend_cancel TERM gryphus.${slow}.1`);
    await ended;
    expect(endOf(slow)).toEqual({ kind: 'signaled', signal: 15 });
    expect(line(slow)).toContain(' got=TERM ');
    expect(endOf(next)).toEqual({ kind: 'exited', code: 4 });
    const pid = Number(readFileSync(rest, 'utf8'));
    await until(
      'the program runs, or is gone',
      () => !existsSync(`/proc/${pid}`) || / Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8')),
    );
    expect(left()).toEqual([]);
  }, 120_000);
});

it('a job that a worker took and could not start goes back into the queue, and one that ended leaves it', () => {
  const [taken, empty, begun, over] = [1, 2, 3, 4].map((n) => queued(n, 'exit 0'));
  const claim = (n: number, text: string) => writeFileSync(join(dir, `fork/running/${1000 + n}-a.1.${n}.1:1`), text);
  claim(1, '@1\n');
  claim(2, '');
  claim(3, '@1\n');
  mkdirSync(join(dir, `jobs/${begun}/run.lock.1`));
  claim(4, '1 1 before elsewhere-not\n'.replace('elsewhere-not', hostname()));
  writeFileSync(join(dir, `jobs/${over}/exit`), '');
  // Slot 1 is held by a process that lives: this one.
  const start = readFileSync(`/proc/${process.pid}/stat`, 'utf8')
    .replace(/^.*\) /s, '')
    .split(' ')[19];
  writeFileSync(join(dir, 'fork/slot.1'), `${process.pid} ${start} ${BOOT} ${hostname()}\n`);
  const kick = 'fork_kick() { :; }; backend_queue';
  const said = (key: string | undefined, words: string) => `gryphus.${key}.1 ${words}`;
  expect(jobManager(kick).trim().split('\n').slice(1)).toEqual([
    said(taken, '1001 RUNNING'),
    said(empty, '1002 RUNNING'),
    said(begun, '1003 RUNNING'),
  ]);
  rmSync(join(dir, 'fork/slot.1'));
  expect(jobManager(kick).trim().split('\n').slice(1)).toEqual([
    said(taken, '1001 PENDING'),
    said(empty, '1002 PENDING'),
    // It may run, so it is not run again.
    said(begun, '1003 RUNNING'),
  ]);
});

it('a worker leaves alone what was withdrawn between its look and its claim', () => {
  queued(1, 'exit 0');
  const lines = `set +f; SLOT=1 STUCK=''; ${takeOf()}
    take 1001-a.1.1.1:1 && echo taken; take 1001-a.1.1.1:1 || echo once
    rm fork/queue/* fork/running/*; take 1001-a.1.1.1:1 || echo none; ls fork/running`;
  expect(jobManager(lines)).toBe('taken\nonce\nnone\n');
});

/** The function `take` of the worker. */
function takeOf(): string {
  const text = readFileSync(join(SRC, 'backends/fork-worker.sh'), 'utf8');
  return /^take\(\) \{.*?^\}[^\n]*$/ms.exec(text)?.[0] ?? '';
}
