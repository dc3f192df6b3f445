import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';

const FORK = join(import.meta.dirname, '../../src/backends/fork.sh');
let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'gfk-'));
  for (const name of ['fork/queue', 'fork/running', 'jobs']) mkdirSync(join(dir, name), { recursive: true });
});
afterEach(() => rmSync(dir, { recursive: true }));

/** What the queue reports for a claim with this line, in a JobManager of host `here` and boot `now`. */
function stateOf(line: string): string | undefined {
  mkdirSync(join(dir, 'jobs/a.1.0.1/run.lock.1'), { recursive: true });
  writeFileSync(join(dir, 'fork/running/7-a.1.0.1:1@1'), line);
  const script = `set -ufC; cd '${dir}'; say() { printf '%s\\n' "$*"; }; GRYPHUS_SLOTS=0 HOST=here BOOT=now; . '${FORK}'; backend_queue`;
  const { stdout } = spawnSync('sh', ['-c', script], { encoding: 'utf8' });
  return /^gryphus\.a\.1\.0\.1\.1 7 (\w+)$/m.exec(stdout)?.[1];
}

/** In /proc/PID/stat, the 20th field after the program's name. */
const startOf = (pid: number) =>
  readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /s, '')
    .split(' ')[19];

it('a claim tells who runs it, or that nobody does yet', () => {
  expect(stateOf(`${process.pid} ${startOf(process.pid)} now here\n`)).toBe('RUNNING');
  // A worker has taken it and has not started it yet: the line is still that of the waiting job.
  expect(stateOf('1795318441000131\n')).toBe('RUNNING');
  expect(stateOf('')).toBe('RUNNING');
  expect(stateOf(`${process.pid} 1 now elsewhere\n`)).toBe('RUNNING');
  expect(stateOf(`${process.pid} 1 now here\n`)).toBe('VANISHED');
  expect(stateOf(`${process.pid} ${startOf(process.pid)} before here\n`)).toBe('NODE_FAIL');
});
