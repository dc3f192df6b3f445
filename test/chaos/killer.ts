import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readPid } from '../../src/util/pid-file.ts';
import type { TestAgent } from '../agent/agent.ts';
import { kill, processes } from '../agent/kill.ts';
import type { Target } from '../crash/sites.ts';

/** What a process is, by its command line; the first that fits. */
const KINDS: readonly (readonly [string, RegExp])[] = [
  ['program', /job\.sh \d+\.\d+ /],
  ['scheduler', /scheduler\/main\.js/],
  ['user-log writer', /writer-main\.js/],
  ['gridmanager', /gridmanager\/main\.js/],
  ['central manager', /pool\/central-manager-main\.js/],
  ['worker', /worker\.mjs/],
  ['dag manager', /dag\/main\.js/],
  ['jobmanager', /jobmanager\.sh/],
  ['wrapper', /wrapper\.sh/],
  ['fork worker', /fork-worker\.sh/],
  ['redis', /redis-server/],
  ['command', /bin\/gryphus\.js/],
  ['waiter', /\bwait[a-z]*\b.*\/attempts?\//],
  ['shell', /^(\/bin\/)?(ba|da)?sh\b/],
];

export interface Process {
  readonly pid: number;
  readonly kind: string;
  readonly command: string;
}

/** All that runs for the agent, here and at its sites, which share this machine. */
export function allProcesses(agent: TestAgent): Process[] {
  return processes(agent).flatMap(({ pid, what }) => {
    const kind = KINDS.find(([, fits]) => fits.test(what))?.[0];
    return kind === undefined ? [] : [{ pid, kind, command: what }];
  });
}

/** Watches programs: when each was last alive, and whom the killer took. */
export class Watch {
  readonly alive = new Map<number, number>();
  readonly killed = new Set<number>();
  readonly #agent: TestAgent;

  constructor(agent: TestAgent) {
    this.#agent = agent;
  }

  look(): void {
    const now = uptime();
    for (const { pid, kind } of allProcesses(this.#agent)) if (kind === 'program') this.alive.set(pid, now);
  }
}

export function uptime(): number {
  return Number(readFileSync('/proc/uptime', 'utf8').split(' ')[0]);
}

/** One thing that goes wrong; what was done, for the story. */
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
  const all = allProcesses(agent).filter(({ kind }) => kind !== 'command' && kind !== 'redis');
  const kind = pick([...new Set(all.map((one) => one.kind))]);
  const victim = pick(all.filter((one) => one.kind === kind));
  if (victim === undefined) return 'nobody';
  // A worker, its starter and the shell of a job together, while the program lives on: the harshest that was seen.
  const group =
    victim.kind === 'worker' && random() < 0.4
      ? all.filter((one) => ['worker', 'shell', 'wrapper', 'waiter'].includes(one.kind))
      : [victim];
  for (const { pid, kind: what } of group) {
    if (what === 'program') watch.killed.add(pid);
    kill(pid);
  }
  return group.length === 1 ? victim.kind : 'worker, starters and shells';
}
