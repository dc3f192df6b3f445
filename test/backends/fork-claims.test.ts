import { spawn, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

const FORK = join(import.meta.dirname, '../../src/backends/fork.sh');
let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'gfk-'));
  for (const name of ['fork/queue', 'fork/running', 'jobs']) mkdirSync(join(dir, name), { recursive: true });
});
afterEach(() => rmSync(dir, { recursive: true }));

/** What the queue reports for a claim with this line, in a JobManager of host `here` and boot `now`. */
function stateOf(line: string, disk = ''): string | undefined {
  mkdirSync(join(dir, 'jobs/a.1.0.1/run.lock.1'), { recursive: true });
  writeFileSync(join(dir, 'fork/running/7-a.1.0.1:1'), line);
  const script = `set -ufC; cd '${dir}'; say() { printf '%s\\n' "$*"; }; GRYPHUS_SLOTS=1 HOST=here BOOT=now DISK=${disk}; . '${FORK}'; backend_queue`;
  const { stdout } = spawnSync('sh', ['-c', script], { encoding: 'utf8' });
  return /^gryphus\.a\.1\.0\.1\.1 7 (\w+)$/m.exec(stdout)?.[1];
}

/** In /proc/PID/stat, the 20th field after the program's name. */
const startOf = (pid: number) =>
  readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /s, '')
    .split(' ')[19];

it('a claim says which process runs it, or that none does yet', () => {
  expect(stateOf(`${process.pid} ${startOf(process.pid)} now here\n`)).toBe('RUNNING');
  // A worker has taken it and has not started it yet: the line is still that of the waiting job.
  expect(stateOf('1795318441000131\n')).toBe('RUNNING');
  expect(stateOf('')).toBe('RUNNING');
  expect(stateOf(`${process.pid} 1 now elsewhere\n`)).toBe('RUNNING');
  expect(stateOf(`${process.pid} 1 now here\n`)).toBe('VANISHED');
  expect(stateOf(`${process.pid} ${startOf(process.pid)} before here\n`)).toBe('NODE_FAIL');
});

it('a claim of a machine that was rebooted under another name is over, unless other machines share its file system', () => {
  const claim = `${process.pid} ${startOf(process.pid)} before elsewhere\n`;
  expect(stateOf(claim)).toBe('NODE_FAIL');
  expect(stateOf(claim, 'nfs')).toBe('RUNNING');
  expect(stateOf(`${process.pid} 1 - elsewhere\n`)).toBe('RUNNING');
});

describe('a claim whose worker and wrapper were killed before it named the program', () => {
  const OWNER = (pid: number, boot: string) =>
    `1 host=here pid=${pid} pstart=${startOf(pid)} boot=${boot} start=1 id=7 .\n`;
  const claimed = (slotBoot: string, owner?: string): string | undefined => {
    mkdirSync(join(dir, 'jobs/a.1.0.1/run.lock.1'), { recursive: true });
    if (owner !== undefined) writeFileSync(join(dir, 'jobs/a.1.0.1/run.lock.1/owner'), owner);
    writeFileSync(join(dir, 'fork/slot.1'), `${process.pid} 1 ${slotBoot} here\n`);
    return stateOf('@1\n');
  };
  it('is over if its owner is', () => {
    expect(claimed('now', OWNER(process.pid, 'now'))).toBe('RUNNING');
    expect(claimed('before', OWNER(process.pid, 'before'))).toBe('NODE_FAIL');
    expect(claimed('now', OWNER(process.pid, 'now').replace(/pstart=\d+/, 'pstart=1'))).toBe('VANISHED');
  });
  it('is over after a reboot even if its owner was not written', () => {
    expect(claimed('now')).toBe('RUNNING');
    expect(claimed('before')).toBe('NODE_FAIL');
  });
  it('is not while its program runs', async () => {
    const job = spawn('sleep', ['600'], { env: { GRYPHUS_KEY: 'a.1.0.1' } });
    const ended = new Promise((done) => void job.once('close', done));
    try {
      expect(claimed('now', OWNER(process.pid, 'now').replace(/pstart=\d+/, 'pstart=1'))).toBe('RUNNING');
    } finally {
      job.kill('SIGKILL');
      await ended;
    }
  });
});

describe('a claim of an older version, or under another name of the machine,', () => {
  const run = (lines: string) => {
    const script = `set -ufC; cd '${dir}'; ROOT='${dir}'; say() { printf '%s\\n' "$*"; }; GRYPHUS_SLOTS=1 HOST=here BOOT=now; . '${FORK}'; ${lines}`;
    const { stdout, stderr } = spawnSync('sh', ['-c', script], { encoding: 'utf8' });
    expect(stderr).toBe('');
    return stdout;
  };
  it('is cancelled also after its machine got another name', async () => {
    const job = spawn('sleep', ['600'], { detached: true });
    const ended = new Promise((done) => void job.once('close', (_, signal) => done(signal)));
    const pid = job.pid ?? 0;
    writeFileSync(join(dir, 'fork/running/7-a.1.0.1:1'), `${pid} ${startOf(pid)} now before\n`);
    run('backend_cancel TERM gryphus.a.1.0.1.1');
    expect(await ended).toBe('SIGTERM');
  });

  const held = (name: string) => readdirSync(join(dir, 'fork', name));

  it('is followed, and its job can be cancelled', async () => {
    mkdirSync(join(dir, 'jobs/a.1.0.1/run.lock.1'), { recursive: true });
    const job = spawn('sleep', ['600'], { detached: true });
    const ended = new Promise((done) => void job.once('close', (_, signal) => done(signal)));
    const pid = job.pid ?? 0;
    writeFileSync(join(dir, 'fork/running/7-a.1.0.1:1@1'), `${pid} ${startOf(pid)} now here\n`);
    expect(run('fork_repair; fork_kick() { :; }; backend_queue')).toBe('TAG\ngryphus.a.1.0.1.1 7 RUNNING\n');
    run('backend_cancel TERM gryphus.a.1.0.1.1');
    expect(await ended).toBe('SIGTERM');
    writeFileSync(join(dir, 'jobs/a.1.0.1/exit'), '');
    run('fork_repair');
    expect(held('running')).toEqual([]);
  });

  it('is given back if its worker died before the job began, and is left to a worker that lives', () => {
    mkdirSync(join(dir, 'jobs/a.1.0.1'));
    writeFileSync(join(dir, 'fork/running/7-a.1.0.1:1@1'), '7\n');
    writeFileSync(join(dir, 'fork/slot.1'), `${process.pid} ${startOf(process.pid)} now here\n`);
    run('fork_repair');
    expect(held('running')).toEqual(['7-a.1.0.1:1@1']);
    writeFileSync(join(dir, 'fork/slot.1'), `${process.pid} 1 now here\n`);
    run('fork_repair');
    expect([held('queue'), held('running')]).toEqual([['7-a.1.0.1:1'], []]);
  });
});

it('the claims of all jobs that have ended are removed by one process', () => {
  for (const n of [1, 2, 3]) writeFileSync(join(dir, `fork/running/${n}-a.1.${n}.1:1`), `${process.pid} 1 now here\n`);
  const script = `set -ufC; cd '${dir}'; rm() { echo rm >>rms; command rm "$@"; }; HOST=here BOOT=now; . '${FORK}'; fork_repair`;
  expect(spawnSync('sh', ['-c', script], { encoding: 'utf8' }).stderr).toBe('');
  expect(readFileSync(join(dir, 'rms'), 'utf8')).toBe('rm\n');
  expect(readdirSync(join(dir, 'fork/running'))).toEqual([]);
});

it('a worker tells each job the time, and leaves no claim of a job that has ended', () => {
  const bin = join(dir, 'bin');
  mkdirSync(bin);
  writeFileSync(join(bin, 'memory.sh'), '');
  // In the place of the wrapper: notes the time by its clock, and which claims there are. The second leaves no record.
  const wrapper = `cd "$1" || exit
    IFS=' .' read -r up part _ </proc/uptime
    echo "$((($7 + up * 100 + 1$part - 100) / 100)) $(date +%s)" >>times
    ls fork/running | tr '\\n' ' ' >>claims
    echo >>claims
    [ "$2" = a.1.2.1 ] || echo >"jobs/$2/exit"
  `;
  writeFileSync(join(bin, 'wrapper.sh'), wrapper);
  for (const n of [1, 2, 3, 4]) {
    mkdirSync(join(dir, `jobs/a.1.${n}.1`));
    writeFileSync(join(dir, `fork/queue/${n}-a.1.${n}.1:1`), `${n}\n`);
  }
  const worker = join(import.meta.dirname, '../../src/backends/fork-worker.sh');
  const { stderr } = spawnSync('sh', [worker, dir, bin, '1', 'here', 'now', ''], { encoding: 'utf8' });
  expect(stderr).toBe('');
  const lines = (name: string) => readFileSync(join(dir, name), 'utf8').trim().split('\n');
  for (const line of lines('times')) {
    const [told = 0, now = 0] = line.split(' ').map(Number);
    expect(told).toBeLessThanOrEqual(now);
    expect(now - told).toBeLessThan(3);
  }
  expect(lines('claims').map((line) => line.trim())).toEqual([
    '1-a.1.1.1:1',
    '1-a.1.1.1:1 2-a.1.2.1:1',
    '3-a.1.3.1:1',
    '3-a.1.3.1:1 4-a.1.4.1:1',
  ]);
  expect(readdirSync(join(dir, 'fork/running'))).toEqual([]);
  expect(readdirSync(join(dir, 'fork')).sort()).toEqual(['queue', 'running']);
});
