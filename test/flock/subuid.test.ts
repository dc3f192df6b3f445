import { execFileSync, spawnSync } from 'node:child_process';
import { chownSync, existsSync, mkdtempSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { buildSync } from 'esbuild';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { accountOf } from '../../src/pool/host/accounts.ts';
import type { StrangersEnd } from './stranger-worker.ts';

const canRun =
  process.getuid?.() === 0 &&
  ['newuidmap', 'useradd', 'ipcmk'].every((name) => spawnSync('which', [name]).status === 0);
if (!canRun)
  process.stderr.write('Tests of strangers with subordinate user ids are left out: they need root and newuidmap.\n');

/** What a job leaves wherever it can. Its user id is the first that the worker's user has. */
const LEAVE = `umask 0; echo $(id -u)
for dir in . /tmp /var/tmp /dev/shm; do echo left >$dir/left || echo "cannot write to $dir"; chmod 4777 $dir/left; done
mkdir shut; echo mine >shut/mine; chmod 0 shut
ipcmk -M 1000 >/dev/null
env -i setsid -f sleep 7265; env -i setsid -f sh -c 'trap : TERM HUP; sleep 7265'; sleep 0.2`;
/** What the next finds of that, or of another job at the same time. */
const FIND = `echo $(id -u); sleep 0.3
find . /tmp /var/tmp /dev/shm ../.. -name left -o -name mine -o -name secret 2>/dev/null; ipcs -m | grep '^0x'
cat /proc/[0-9]*/comm | grep sleep; kill -9 -1 2>/dev/null && echo 'somebody else'
exit 0`;
const BESIDE = 'echo $(id -u); echo secret >secret; sleep 1; cat secret';

describe.runIf(canRun)('jobs of strangers under subordinate user ids', () => {
  const user = `sub${process.pid}`;
  let dir = '';
  beforeAll(() => {
    dir = mkdtempSync('/var/tmp/subuid-');
    execFileSync('useradd', ['--no-create-home', user]);
    const { uid = 0, gid = 0 } = accountOf(user) ?? {};
    chownSync(dir, uid, gid);
  });
  afterAll(() => {
    spawnSync('userdel', [user]);
    rmSync(dir, { recursive: true, force: true });
  });

  function run(what: 'after' | 'path' | 'die' | 'again', ...scripts: string[]): readonly StrangersEnd[] {
    const { uid, gid } = accountOf(user) ?? { uid: -1, gid: -1 };
    const bundle = join(dir, 'jobs.mjs');
    buildSync({
      entryPoints: [join(import.meta.dirname, 'subuid-jobs.ts')],
      bundle: true,
      platform: 'node',
      format: 'esm',
      outfile: bundle,
      define: { 'import.meta.dirname': JSON.stringify(join(import.meta.dirname, '../pool')) },
      banner: { js: "import { createRequire } from 'node:module'; const require = createRequire('/');" },
      logLevel: 'error',
    });
    execFileSync('chmod', ['755', dir]);
    const become = [`--reuid=${uid}`, `--regid=${gid}`, '--clear-groups', '--'];
    const words = [...become, process.execPath, bundle, dir, what, ...scripts];
    const { stdout, stderr, signal } = spawnSync('setpriv', words, {
      encoding: 'utf8',
      env: { PATH: process.env['PATH'] },
    });
    if (what === 'die') expect(signal).toBe('SIGKILL');
    try {
      return what === 'die' ? [] : (JSON.parse(stdout) as readonly StrangersEnd[]);
    } catch {
      throw new Error(stderr);
    }
  }

  it('leave nothing to the next one of the same id, and see nothing of one at the same time', () => {
    const [left, found, beside] = run('after', LEAVE, FIND, BESIDE);
    expect(left).toMatchObject({ how: { kind: 'exited', code: 0 }, stdout: '1\n', stderr: '' });
    expect(found).toMatchObject({ how: { kind: 'exited', code: 0 }, stdout: '1\n' });
    expect(beside).toMatchObject({ how: { kind: 'exited', code: 0 }, stdout: '2\nsecret\n', stderr: '' });
    // What they left in their sandboxes was taken back and deleted.
    expect(readdirSync(join(dir, 'execute', 'one'))).toEqual(['worker']);
  }, 30_000);

  it('do not choose which programs prepare their surroundings', () => {
    const theirs = join(dir, 'theirs');
    mkdirSync(theirs);
    const trap = `#!/bin/sh\n/usr/bin/id -u >>${dir}/$(/usr/bin/basename "$0")-ran\nexit 1\n`;
    const names = ['newuidmap', 'newgidmap', 'mount', 'setpriv', 'env', 'sh', 'rm', 'mkdir'];
    for (const name of names) writeFileSync(join(theirs, name), trap, { mode: 0o755 });
    const [end] = run('path', 'echo "$PATH"', theirs);
    expect(names.filter((name) => existsSync(join(dir, `${name}-ran`)))).toEqual([]);
    expect(end).toMatchObject({ how: { kind: 'exited', code: 0 }, stdout: `${theirs}\n` });
  }, 30_000);

  it('go on if the worker dies after an earlier one of the same id has ended', () => {
    run('die', 'echo $(id -u)', 'echo $(id -u); sleep 2; echo over');
    const [end] = run('again');
    expect(end).toMatchObject({ how: { kind: 'exited', code: 0 }, stdout: '1\nover\n' });
  }, 30_000);
});
