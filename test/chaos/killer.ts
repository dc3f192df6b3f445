import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { readPid } from '../../src/util/pid-file.ts';
import type { TestAgent } from '../agent/agent.ts';
import { kill } from '../agent/kill.ts';
import type { Target } from '../crash/sites.ts';
import { runName } from './ledger.ts';

/**
 * What a process is, by its command line; the first match counts. A program has another name if files are transferred.
 */
const KINDS: readonly (readonly [string, RegExp])[] = [
  ['waiter', /\/gryphus-waiter /],
  ['program', /^(\/bin\/)?sh \S+ \d+\.\d+ \S+ \S+ \S+\/ledger$/],
  ['starter', /^(\/bin\/)?sh -c # Gryphus: runs attempts/],
  ['scheduler', /scheduler\/main\.js/],
  ['user-log writer', /writer-main\.js/],
  ['gridmanager', /gridmanager\/main\.js/],
  ['central manager', /central-manager-main\.js/],
  ['worker', /worker\.mjs/],
  ['dag manager', /dag\/dag-manager\.js/],
  ['jobmanager', /jobmanager\.sh/],
  ['wrapper', /wrapper\.sh/],
  ['fork worker', /fork-worker\.sh/],
  ['redis', /redis-server/],
  ['command', /bin\/gryphus\.js submit/],
  ['shell', /^(\/bin\/)?(ba|da)?sh\b/],
];

export interface Process {
  readonly pid: number;
  readonly kind: string;
  readonly command: string;
}

/**
 * All processes that run for the agent, here and at its sites, which share this machine. A site's programs and starters
 * are recognized only by their home or directory, since they do not have the agent's environment.
 */
export function allProcesses(agent: TestAgent, target: Target): Process[] {
  const dirs = [agent.dir, ...(target.sshd === undefined ? [] : [dirname(target.sshd.home)])];
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .flatMap((name) => {
      const command = read(() => readFileSync(`/proc/${name}/cmdline`, 'utf8'))
        .replaceAll('\0', ' ')
        .trim();
      const kind = KINDS.find(([, fits]) => fits.test(command))?.[0];
      if (kind === undefined) return [];
      const surroundings = read(() => readFileSync(`/proc/${name}/environ`, 'utf8'));
      const place = read(() => readlinkSync(`/proc/${name}/cwd`));
      const own = dirs.some((dir) => `${command}\0${surroundings}\0${place}`.includes(dir));
      return own ? [{ pid: Number(name), kind, command }] : [];
    });
}

/** What /proc shows of a process; nothing if it has exited. */
function read(look: () => string): string {
  try {
    return look();
  } catch {
    return '';
  }
}

/** Watches programs, each by `runName`: when it was last alive, and whose program or supervisor the killer killed. */
export class Watch {
  readonly alive = new Map<string, number>();
  readonly killed = new Set<string>();
  /** Jobs whose waiter or wrapper was killed. */
  readonly unwatched = new Set<string>();
  readonly #agent: TestAgent;
  readonly #target: Target;

  constructor(agent: TestAgent, target: Target) {
    this.#agent = agent;
    this.#target = target;
  }

  look(): void {
    const now = uptime();
    for (const { pid, kind, command } of allProcesses(this.#agent, this.#target))
      if (kind === 'program') this.alive.set(runName(jobOf(command), pid), now);
  }

  /** The killer has killed it. */
  takes({ pid, kind, command }: Process): void {
    if (kind === 'program') this.killed.add(runName(jobOf(command), pid));
    if (kind === 'waiter' || kind === 'wrapper') this.unwatched.add(jobOf(command));
  }
}

/** The job that a program, a waiter or a wrapper belongs to. */
export function jobOf(command: string): string {
  return / (?:[\w-]+\.)*?(\d+\.\d+)(?:\.\d+)?(?= )/.exec(command)?.[1] ?? '';
}

export function uptime(): number {
  return Number(readFileSync('/proc/uptime', 'utf8').split(' ')[0]);
}

/** One fault; returns what was done, for the record. */
export async function strike(agent: TestAgent, target: Target, watch: Watch, random: () => number): Promise<string> {
  const pick = <T>(all: readonly T[]): T | undefined => all[Math.floor(random() * all.length)];
  const dice = random();
  if (dice < 0.06) {
    target.sshd?.killSessions();
    return 'ssh sessions';
  }
  if (dice < 0.1) {
    target.sshd?.kill();
    await new Promise((resume) => setTimeout(resume, 500 + random() * 1000));
    await target.sshd?.restart();
    return 'sshd';
  }
  if (dice < 0.14) {
    target.slurm?.killCtld();
    await target.slurm?.restartCtld();
    return 'slurmctld';
  }
  if (dice < 0.2) {
    const pid = readPid(join(agent.home, 'state/redis/redis.pid'));
    if (pid !== undefined) kill(pid);
    return 'redis';
  }
  const all = allProcesses(agent, target).filter(({ kind }) => kind !== 'redis');
  const kind = pick([...new Set(all.map((one) => one.kind))]);
  const victim = pick(all.filter((one) => one.kind === kind));
  if (victim === undefined) return 'nobody';
  // The worker, starter and shell of a job at once, while the program lives on: the harshest fault that was seen.
  const group =
    victim.kind === 'worker' && random() < 0.4
      ? all.filter((one) => ['worker', 'starter', 'shell', 'wrapper', 'waiter'].includes(one.kind))
      : [victim];
  for (const one of group) {
    watch.takes(one);
    kill(one.pid);
  }
  return group.length === 1 ? victim.kind : 'worker, starters and shells';
}
