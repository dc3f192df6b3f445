import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { HELPER } from './mover.ts';

/** In a namespace of its own, where it may say which number the next process gets. */
const ALONE = ['--user', '--map-root-user', '--pid', '--fork', '--mount-proc', '--kill-child'];
const isPermitted = spawnSync('unshare', [...ALONE, 'sh', '-c', 'echo 100 >/proc/sys/kernel/ns_last_pid']).status === 0;

/** The program has one of the last numbers, its threads the last and low ones. It is moved once. */
const MOVE = `set -e
cd "$1"
mkdir before after
last=$(cat /proc/sys/kernel/pid_max)
echo $((last - 3)) >/proc/sys/kernel/ns_last_pid
(cd before && exec "$2" run ../threads 60000 >../before.out 2>/dev/null) &
program=$!
until [ "$(ls /proc/$program/task | wc -l)" = 5 ]; do sleep 0.01; done
echo $last $program $(ls /proc/$program/task)
"$2" dump --pid $program --sandbox "$PWD/before" --to image --stdout before.out --kill >/dev/null
wait $program 2>/dev/null || true
cd after
code=0
"$2" restore --from ../image --sandbox "$PWD" >../after.out || code=$?
cat ../before.out ../after.out
exit $code
`;

describe.skipIf(!existsSync(HELPER) || !isPermitted)('a program of several threads', () => {
  const root = mkdtempSync(join(tmpdir(), 'gryphus numbers '));
  afterAll(() => rmSync(root, { recursive: true, force: true }));

  it('goes on if its threads have lower numbers than itself', () => {
    execFileSync('gcc', ['-O2', '-o', join(root, 'threads'), join(import.meta.dirname, 'threads.c'), '-lpthread']);
    const alone = spawnSync(join(root, 'threads'), ['60000'], { encoding: 'utf8' });
    const moved = spawnSync('unshare', [...ALONE, 'sh', '-c', MOVE, 'sh', root, HELPER], { encoding: 'utf8' });
    const [numbers = '', ...out] = moved.stdout.split('\n');
    const [last = 0, program = 0, ...tasks] = numbers.split(' ').map(Number);
    expect({ program, isLowest: program === Math.min(...tasks) }).toEqual({ program: last - 2, isLowest: false });
    expect({ ...moved, stdout: out.join('\n') }).toMatchObject({ status: 7, stderr: '', stdout: alone.stdout });
  }, 60_000);
});
