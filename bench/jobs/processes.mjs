import { spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Our processes, by what they are. */
const PARTS = [
  ['Scheduler', /scheduler.main/],
  ['user logs', /writer-main/],
  ['GridManager', /gridmanager.main/],
  ['central manager', /central-manager-main/],
  ['Redis', /redis-server/],
  ['shells', /gryphus-starter|jobmanager|fork/],
  ['worker', /worker/],
];

/** The processes of the agent in this directory: process id and part. */
export function processesOf(home) {
  return readdirSync('/proc').flatMap((pid) => {
    if (!/^\d+$/.test(pid)) return [];
    try {
      const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8');
      const text = command + readFileSync(`/proc/${pid}/environ`, 'utf8') + readlinkSync(`/proc/${pid}/cwd`);
      const part = text.includes(home) ? PARTS.find(([, pattern]) => pattern.test(command))?.[0] : undefined;
      return part ? [{ pid, part }] : [];
    } catch {
      return [];
    }
  });
}

/**
 * Ms of processor time of everything on this machine since it started (proc(5), `stat`). On an otherwise idle machine the difference
 * also counts what ended: the shells of a fork site, and the jobs.
 */
export function machineMs() {
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0] = readFileSync('/proc/stat', 'utf8')
    .slice(4, 200)
    .trim()
    .split(/\s+/)
    .map(Number);
  return (user + nice + system + irq + softirq) * 10;
}

const NONE = { ms: 0, read: 0, written: 0, calls: 0 };

/**
 * What each part has used so far: ms of processor time; bytes that it read and wrote, whether files or connections, and its
 * calls of read and write (proc(5), `io`). `programs`: the ended children of shells.
 */
export function used(home) {
  const sums = Object.fromEntries([...PARTS.map(([name]) => name), 'programs'].map((name) => [name, { ...NONE }]));
  for (const { pid, part } of processesOf(home)) {
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
      // USER_HZ is 100.
      const times = stat
        .slice(stat.lastIndexOf(')') + 2)
        .split(' ')
        .slice(11, 15)
        .map((ticks) => Number(ticks) * 10);
      const io = Object.fromEntries(
        readFileSync(`/proc/${pid}/io`, 'utf8')
          .trim()
          .split('\n')
          .map((line) => line.split(': ')),
      );
      const sum = sums[part];
      sum.ms += times[0] + times[1];
      if (part === 'shells') sums.programs.ms += times[2] + times[3];
      sum.read += Number(io.rchar);
      sum.written += Number(io.wchar);
      sum.calls += Number(io.syscr) + Number(io.syscw);
    } catch {
      // It ended meanwhile.
    }
  }
  return sums;
}

/** The difference of two such answers, for each of so many jobs. */
export function each(before, after, jobs) {
  return Object.fromEntries(
    Object.keys(after).map((part) => [
      part,
      Object.fromEntries(Object.keys(NONE).map((what) => [what, (after[part][what] - before[part][what]) / jobs])),
    ]),
  );
}

/** Flushes, and what makes or removes a name. */
const COUNTED = ['fsync', 'fdatasync', 'openat', 'mkdir', 'rmdir', 'unlink', 'rename'];

/** Counts these calls of each part by strace, until the function that it returns is called. It slows the processes down. */
export async function counting(home) {
  const out = mkdtempSync(join(tmpdir(), 'gryphus-strace-'));
  const traced = processesOf(home).filter(({ part }) => part !== 'shells');
  const traces = traced.map(({ pid, part }) => ({
    part,
    file: join(out, pid),
    child: spawn('strace', ['-f', '-c', '-e', `trace=${COUNTED.join(',')}`, '-o', join(out, pid), '-p', pid], {
      stdio: ['ignore', 'ignore', 'pipe'],
    }),
  }));
  await Promise.all(traces.map(({ child }) => new Promise((resolve) => child.stderr.once('data', resolve))));
  return async () => {
    const counts = {};
    for (const { part, file, child } of traces) {
      const ended = new Promise((resolve) => child.once('close', resolve));
      child.kill('SIGINT');
      await ended;
      for (const line of readFileSync(file, 'utf8').split('\n')) {
        const words = line.trim().split(/\s+/);
        const name = words.at(-1);
        if (!COUNTED.includes(name)) continue;
        counts[part] ??= {};
        counts[part][name] = (counts[part][name] ?? 0) + Number(words[3]);
      }
    }
    rmSync(out, { recursive: true, force: true });
    return counts;
  };
}
