import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { dumped, HELPER } from './mover.ts';

const HAS = (program: string) => spawnSync('sh', ['-c', `command -v ${program}`]).status === 0;

/** A process and its child with locks of all three kinds; when there is `go`, they are given up, and others taken. */
const HOLDER = `import fcntl, os, struct, time
def lock(kind, start, length): return struct.pack('hhqqi4x', kind, 0, start, length, 0)
a, b, c, d = (open(n, 'w+') for n in ('a', 'b', 'c', 'd'))
if os.fork() == 0:
  fcntl.lockf(d, fcntl.LOCK_EX, 1, 7)
  while not os.path.exists('over'): time.sleep(0.01)
  os._exit(0)
fcntl.flock(a, fcntl.LOCK_EX)
fcntl.lockf(b, fcntl.LOCK_EX, 10, 5)
fcntl.lockf(b, fcntl.LOCK_SH, 0, 100)
fcntl.fcntl(c, fcntl.F_OFD_SETLK, lock(fcntl.F_RDLCK, 3, 4))
open('up', 'w').close()
while not os.path.exists('go'): time.sleep(0.01)
fcntl.flock(a, fcntl.LOCK_SH); fcntl.lockf(b, fcntl.LOCK_UN); fcntl.fcntl(c, fcntl.F_OFD_SETLK, lock(fcntl.F_WRLCK, 0, 1))
open('gone', 'w').close()
while not os.path.exists('over'): time.sleep(0.01)
os.wait(); print('ended')`;

/** Prints which locks another process may take now. */
const TRIES = `import fcntl, sys
def may(name, how, *where):
  f = open(name, 'r+')
  try: (fcntl.lockf if where else fcntl.flock)(f, how | fcntl.LOCK_NB, *where)
  except BlockingIOError: return '-'
  return '+'
X, S = fcntl.LOCK_EX, fcntl.LOCK_SH
print(may('a', S), may('a', X), '|', may('b', X, 5, 5), may('b', S, 5, 5), may('b', X, 1, 50), may('b', X, 1, 100), may('b', S, 1, 200), '|',
  may('c', X, 3, 0), may('c', X, 1, 3), may('c', S, 7, 0), may('c', S, 1, 0), may('c', X, 1, 7), '|', may('d', S, 7, 0), may('d', S, 1, 7), may('d', X, 1, 8))`;

describe.skipIf(!existsSync(HELPER))('the locks of a job', () => {
  const root = mkdtempSync(join(tmpdir(), 'gryphus-locks-'));
  afterAll(() => rmSync(root, { recursive: true, force: true }));
  let turn = 0;
  let box = '';
  let out = '';
  let running: ChildProcess | undefined;
  beforeEach(() => {
    box = join(root, `box${turn}`);
    out = join(root, `out${turn++}`);
    mkdirSync(box);
  });
  afterEach(() => {
    // With its children, if something went wrong.
    spawnSync('kill', ['-9', '--', `-${running?.pid}`]);
  });

  const start = (words: readonly string[]) => {
    const stream = openSync(out, 'a');
    running = spawn(HELPER, words, { cwd: box, stdio: ['ignore', stream, stream], detached: true });
    return running;
  };
  const there = async (name: string) => {
    while (!existsSync(join(box, name))) await sleep(10);
  };
  const python = (text: string) => spawnSync('python3', ['-c', text], { cwd: box, encoding: 'utf8' }).stdout.trim();
  /** Moves it into another sandbox. */
  const move = async (child: ChildProcess) => {
    const image = join(root, `image${turn}`);
    const dump = [
      'dump',
      '--pid',
      String(child.pid),
      '--sandbox',
      box,
      '--to',
      image,
      '--stdout',
      out,
      '--stderr',
      out,
    ];
    expect(await dumped(child, [...dump, '--kill'])).toBe('');
    rmSync(box, { recursive: true });
    box = `${box}.moved`;
    mkdirSync(box);
    const report = join(root, `report${turn}`);
    const restored = start(['restore', '--from', image, '--sandbox', box, '--report', report]);
    while (!existsSync(report) || readFileSync(report, 'utf8') === '') await sleep(10);
    expect(readFileSync(report, 'utf8')).toBe('restored\n');
    return restored;
  };
  const end = (child: ChildProcess) => new Promise((resolve) => child.once('close', resolve));

  it.runIf(HAS('python3'))('are held after a move as before it, and given up when the job does so', async () => {
    const child = start(['run', 'python3', '-c', HOLDER]);
    await there('up');
    const before = '- - | - - + - + | + - + + + | + - +';
    expect(python(TRIES)).toBe(before);
    const restored = await move(child);
    expect(python(TRIES)).toBe(before);
    writeFileSync(join(box, 'go'), '');
    await there('gone');
    expect(python(TRIES)).toBe('+ - | + + + + + | - - - - + | + - +');
    const ended = end(restored);
    writeFileSync(join(box, 'over'), '');
    expect(await ended).toBe(0);
    expect(readFileSync(out, 'utf8')).toBe('ended\n');
    expect(python(TRIES)).not.toContain('-');
  });

  it.runIf(HAS('flock'))('are those of flock(1) and the command that it runs', async () => {
    const child = start(['run', 'flock', 'l', 'sh', '-c', 'touch up; until [ -e over ]; do sleep 0.02; done; exit 5']);
    await there('up');
    const restored = await move(child);
    const isFree = () => spawnSync('flock', ['-n', 'l', 'true'], { cwd: box }).status === 0;
    expect(isFree()).toBe(false);
    const ended = end(restored);
    writeFileSync(join(box, 'over'), '');
    expect(await ended).toBe(5);
    expect(isFree()).toBe(true);
  });

  it.runIf(HAS('sqlite3'))('let SQLite go on with what it reads', async () => {
    const sql =
      'create table t(a); with recursive n(i) as (select 1 union all select i + 1 from n where i < 5000) insert into t select i from n';
    spawnSync('sqlite3', ['db', sql], { cwd: box });
    // Some seconds of work, so that a fast machine has not done it before it is moved.
    const child = start(['run', 'sqlite3', 'db', 'select sum(x.a * y.a % 7) from t x, t y']);
    const isRead = () =>
      new RegExp(`READ +${child.pid} `).test(readFileSync('/proc/locks', 'latin1')) || !isAlive(child);
    while (!isRead()) await sleep(5);
    const restored = await move(child);
    expect(spawnSync('sqlite3', ['db', 'begin exclusive'], { cwd: box, encoding: 'utf8' }).stderr).toContain('locked');
    expect(await end(restored)).toBe(0);
    expect(readFileSync(out, 'utf8')).toBe('64294281\n');
  });

  it.runIf(HAS('python3'))(
    'are the reason why there is no checkpoint if they are outside of the sandbox, or leases',
    async () => {
      const other = join(root, 'other');
      const text = `import fcntl, sys, time
f = open(sys.argv[1], sys.argv[2]); fcntl.flock(f, fcntl.LOCK_SH) if sys.argv[3] == 'lock' else fcntl.fcntl(f, fcntl.F_SETLEASE, fcntl.F_RDLCK)
open('up', 'w').close(); time.sleep(60)`;
      for (const name of [other, join(box, 'mine')]) writeFileSync(name, '');
      const why = async (...words: readonly string[]) => {
        const child = start(['run', 'python3', '-c', text, ...words]);
        await there('up');
        rmSync(join(box, 'up'));
        const check = ['check', '--pid', String(child.pid), '--sandbox', box, '--stdout', out, '--stderr', out];
        const said = spawnSync(HELPER, check, { encoding: 'utf8' }).stdout;
        child.kill('SIGKILL');
        return said;
      };
      expect(await why(other, 'r', 'lock')).toBe(`file descriptor 3 holds a lock outside of the sandbox (${other})\n`);
      expect(await why('mine', 'r', 'lease')).toBe(`file descriptor 3 holds a lease (${join(box, 'mine')})\n`);
    },
  );
});

const isAlive = (child: ChildProcess) => child.exitCode === null && child.signalCode === null;
