// A whole agent in a directory of its own, for benchmarks: its command line, its processes, and what they cost.
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

/** By what a process runs. */
const PARTS = [
  ['Scheduler', /scheduler.main/],
  ['user logs', /writer-main/],
  ['GridManager', /gridmanager.main/],
  ['central manager', /central-manager-main/],
  ['worker', /worker\.mjs/],
  ['Redis', /redis-server/],
  ['web', /web-server/],
];

export class Agent {
  home = mkdtempSync(join(tmpdir(), 'gryphus-scale-'));
  cli = join(resolve(process.env.GRYPHUS_DIST ?? join(import.meta.dirname, '../../dist')), 'bin/gryphus.js');
  env = { ...process.env, GRYPHUS_HOME: join(this.home, 'g') };

  constructor(config = '') {
    mkdirSync(this.env.GRYPHUS_HOME, { mode: 0o700 });
    this.file('g/config.toml', config);
  }

  file(name, text) {
    writeFileSync(join(this.home, name), text);
    return name;
  }

  /** Seconds of the whole command by the clock and of its own processor time, and what it printed. */
  run(...args) {
    const before = process.resourceUsage();
    const began = performance.now();
    const { status, stdout, stderr } = spawnSync(
      '/usr/bin/env',
      ['sh', '-c', 'exec 3>&1; "$@"; s=$?; times >&2; exit $s', 'sh', process.execPath, this.cli, ...args],
      {
        env: this.env,
        cwd: this.home,
        encoding: 'utf8',
        maxBuffer: 1 << 30,
      },
    );
    const seconds = (performance.now() - began) / 1000;
    void before;
    return { status, stdout, stderr, seconds, cpu: Agent.cpuOf(stderr) };
  }

  /** From the last line that the shell's `times` printed: user and system seconds of its children. */
  static cpuOf(stderr) {
    const last = stderr.trim().split('\n').at(-1) ?? '';
    return [...last.matchAll(/(\d+)m([\d.]+)s/g)].reduce((sum, [, m, s]) => sum + 60 * Number(m) + Number(s), 0);
  }

  ok(...args) {
    const done = this.run(...args);
    if (done.status !== 0) throw new Error(`gryphus ${args.join(' ')}: ${done.status}\n${done.stderr}`);
    return done;
  }

  /** Each process of this agent: part, pid, seconds of processor time, and memory now and at most (MB). */
  processes() {
    return readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .flatMap((pid) => {
        try {
          const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8');
          const part = PARTS.find(([, pattern]) => pattern.test(command))?.[0];
          if (!part) return [];
          const place = command + readFileSync(`/proc/${pid}/environ`, 'utf8') + readlinkSync(`/proc/${pid}/cwd`);
          if (!place.includes(this.home)) return [];
          const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
          const times = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
          const status = readFileSync(`/proc/${pid}/status`, 'utf8');
          const kb = (name) => Number(new RegExp(`^${name}:\\s*(\\d+)`, 'm').exec(status)?.[1] ?? 0) / 1000;
          return [
            {
              part,
              pid: Number(pid),
              cpu: (Number(times[11]) + Number(times[12])) / 100,
              rss: kb('VmRSS'),
              peak: kb('VmHWM'),
            },
          ];
        } catch {
          return [];
        }
      });
  }

  /** The peak of memory counts from now. */
  forgetPeaks() {
    for (const { pid } of this.processes()) writeFileSync(`/proc/${pid}/clear_refs`, '5');
  }

  redis(...args) {
    const socket = this.processes()
      .filter(({ part }) => part === 'Redis')
      .flatMap(({ pid }) => readFileSync(`/proc/${pid}/cmdline`, 'utf8').match(/unixsocket:([^\s\0]+)/)?.[1] ?? [])[0];
    return spawnSync('redis-cli', ['-s', socket, ...args], { encoding: 'utf8', maxBuffer: 1 << 30 }).stdout;
  }

  disk(path) {
    return Number(spawnSync('du', ['-sb', join(this.home, path)], { encoding: 'utf8' }).stdout.split('\t')[0]) / 1e6;
  }

  end() {
    this.run('down');
    rmSync(this.home, { recursive: true, force: true });
  }
}
