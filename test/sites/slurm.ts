import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { appendFileSync, chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { hostname, userInfo } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { readPid } from '../../src/util/pid-file.ts';
import { freePorts } from './ports.ts';
import { slurmConf } from './slurm-conf.ts';
import { startSlurmdbd } from './slurmdbd.ts';
import { removeTree } from '../remove-tree.ts';

export interface SlurmOptions {
  readonly nodes?: number;
  readonly cpus?: number;
  /** Seconds that a finished job stays in the queue's answers; default 300. */
  readonly minJobAge?: number;
  /** More SchedulerParameters. */
  readonly scheduler?: string;
  /** Lines added at the end of slurm.conf. */
  readonly config?: readonly string[];
  /** With its own database, so that sacct answers (slurmdbd.ts). */
  readonly accounting?: boolean;
}

/** A private Slurm on loopback (munged, slurmctld, slurmd for each node), run by the user who runs the test. */
export interface Slurm {
  /** What a program needs to talk to it. */
  readonly env: Readonly<Record<string, string>>;
  readonly dir: string;
  /** Runs a Slurm command to completion; returns its standard output. Throws if it fails. */
  run(command: string, ...args: string[]): string;
  scontrol(...args: string[]): string;
  /** SIGKILL, as when the head node dies: up to 5 s of its state are lost. */
  killCtld(): void;
  /** Kills it if it is alive, starts it, and waits until it answers. */
  restartCtld(): Promise<void>;
  /** Nodes by number, from 1. Their jobs' processes live on, as after a real death. */
  killSlurmd(node: number): void;
  restartSlurmd(node: number): Promise<void>;
  stop(): Promise<void>;
}

const SBIN = '/usr/sbin:/sbin';
const PROGRAMS = ['munged', 'slurmctld', 'slurmd'];

/** Why a private Slurm cannot run here, or undefined. */
export function slurmMissing(): string | undefined {
  const missing = PROGRAMS.filter((name) => !SBIN.split(':').some((dir) => existsSync(join(dir, name))));
  return missing.length === 0 ? undefined : `${missing.join(', ')}: not installed (Debian: slurm-wlm, munge)`;
}

/** For `describe.skipIf`: prints a line if Slurm is missing; with CI=true it is an error instead. */
export function skipWithoutSlurm(): boolean {
  const missing = slurmMissing();
  if (missing === undefined) return false;
  if (process.env['CI'] === 'true') throw new Error(missing);
  process.stderr.write(`Tests with Slurm are left out. ${missing}\n`);
  return true;
}

export async function startSlurm(options: SlurmOptions = {}): Promise<Slurm> {
  const missing = slurmMissing();
  if (missing !== undefined) throw new Error(missing);
  // Unix socket paths must be short, and the node daemons change to other directories.
  const dir = mkdtempSync('/tmp/gsl-');
  chmodSync(dir, 0o755);
  const nodes = options.nodes ?? 2;
  for (const sub of ['state', 'log', 'run', 'munge', ...range(nodes).map((n) => `spool/n${n}`)]) {
    mkdirSync(join(dir, sub), { recursive: true });
  }
  chmodSync(join(dir, 'munge'), 0o700);
  const socket = join(dir, 'run/munge.sock');
  writeFileSync(join(dir, 'munge/key'), randomBytes(1024), { mode: 0o400 });
  const conf = join(dir, 'slurm.conf');
  const host = hostname().split('.')[0] ?? 'localhost';
  const port = await freePorts(nodes + 1);
  writeFileSync(conf, slurmConf({ dir, port, nodes, host, socket, user: userInfo().username }, options));

  const env = { SLURM_CONF: conf, PATH: `${process.env['PATH'] ?? ''}:${SBIN}` };
  const run = (command: string, ...args: string[]): string =>
    execFileSync(command, args, {
      encoding: 'utf8',
      env: { ...process.env, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
  const pidOf = (name: string): number | undefined => {
    const pid = readPid(join(dir, 'run', `${name}.pid`));
    return pid !== undefined && isAlive(pid) ? pid : undefined;
  };
  const kill = (name: string): void => {
    const pid = pidOf(name);
    if (pid !== undefined) process.kill(pid, 'SIGKILL');
  };
  const gone = async (name: string): Promise<void> =>
    await until(() => pidOf(name) === undefined, `${name} still lives`);
  const answers = async (): Promise<void> =>
    await until(
      () => {
        try {
          // Only `ping` answers at once without a controller.
          if (!run('scontrol', 'ping').includes('is UP')) return false;
          const up = run('sinfo', '-h', '-N', '-p', 'main', '-o', '%t').split('\n');
          return up.filter((state) => /^(idle|mix|alloc|comp)/.test(state)).length >= nodes;
        } catch {
          return false;
        }
      },
      () => `slurm does not answer:\n${readFileSync(join(dir, 'log/slurmctld.log'), 'utf8').slice(-2000)}`,
    );

  const munged = [`--key-file=${dir}/munge/key`, `--socket=${socket}`, `--pid-file=${dir}/run/munged.pid`];
  run('munged', ...munged, `--log-file=${dir}/log/munged.log`, `--seed-file=${dir}/munge/seed`, '--force');
  const accounting = options.accounting
    ? await startSlurmdbd({ dir, host, socket, user: userInfo().username })
    : undefined;
  if (accounting !== undefined) appendFileSync(conf, accounting.config);
  run('slurmctld');
  for (const node of range(nodes)) run('slurmd', '-N', `n${node}`);
  await answers();

  return {
    env,
    dir,
    run,
    scontrol: (...args) => run('scontrol', ...args),
    killCtld: () => kill('slurmctld'),
    async restartCtld() {
      kill('slurmctld');
      await gone('slurmctld');
      run('slurmctld');
      await answers();
    },
    killSlurmd: (node) => kill(`slurmd-n${node}`),
    async restartSlurmd(node) {
      kill(`slurmd-n${node}`);
      await gone(`slurmd-n${node}`);
      run('slurmd', '-N', `n${node}`);
      await answers();
    },
    async stop() {
      for (const pid of processesOf(dir)) killQuietly(pid);
      for (const name of ['slurmctld', ...range(nodes).map((n) => `slurmd-n${n}`), 'munged']) {
        kill(name);
        await gone(name);
      }
      await accounting?.stop();
      await removeTree(dir);
    },
  };
}

function range(count: number): number[] {
  return Array.from({ length: count }, (_, i) => i + 1);
}

async function until(holds: () => boolean, else_: string | (() => string)): Promise<void> {
  const deadline = Date.now() + 30_000;
  while (!holds()) {
    if (Date.now() > deadline) throw new Error(typeof else_ === 'string' ? else_ : else_());
    await delay(30);
  }
}

function isAlive(pid: number): boolean {
  try {
    return !/^\d+ \(.*\) Z/s.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
}

/** The processes of this Slurm's steps and jobs: what a killed node daemon leaves behind. */
function processesOf(dir: string): number[] {
  return execFileSync('sh', ['-c', 'grep -l -s -a -F "$1" /proc/[0-9]*/environ || :', 'sh', `SLURM_CONF=${dir}/`], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  })
    .split('\n')
    .map((path) => Number(path.split('/')[2]))
    .filter((pid) => pid > 0 && pid !== process.pid);
}

function killQuietly(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It exited by itself between the check and the signal.
  }
}
