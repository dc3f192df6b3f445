import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isEnd, STATES } from '../job/life.ts';
import type { Queue } from '../queue/api.ts';
import { dayOf, type UsageMachine } from '../queue/usage-day.ts';
import { withMachines } from '../queue/usage-machines.ts';
import { newUsage, UsageFiles } from '../queue/usage-files.ts';
import { readPid } from '../util/pid-file.ts';

/** USER_HZ of every Linux. */
const TICKS = 100;
/** A job whose record is being written has left the queue at most this many seconds ago. */
const MARGIN = 5;
/** How often. */
export const USAGE_MS = 60_000;

export interface UsageKeeperOptions {
  readonly queue: Pick<Queue, 'history' | 'totals'>;
  readonly stateDir: string;
  /** Processes of ours that are not children of this one. */
  readonly others: () => Promise<readonly number[]>;
  /** What the pool's machines show now, of which the day has those named; nothing if it does not run. */
  readonly machines: (named: readonly string[]) => Promise<ReadonlyMap<string, UsageMachine>>;
}

/** Keeps the files that `gryphus usage` reads: what ended jobs used, what our daemons spent for it, and the machines. */
export class UsageKeeper {
  readonly #options: UsageKeeperOptions;
  readonly #files: UsageFiles;
  /** Ticks of processor that each process had used at the last look, by pid and start. */
  #seen: Map<string, number> | undefined;

  constructor(options: UsageKeeperOptions) {
    this.#options = options;
    this.#files = new UsageFiles(options.stateDir);
  }

  async round(): Promise<void> {
    const now = Math.floor(Date.now() / 1000);
    const { queue } = this.#options;
    const today = dayOf(now);
    const spent = await this.#spent();
    const states = Object.entries((await queue.totals()).states);
    const count = (is: (state: string) => boolean) =>
      states.reduce((total, [state, jobs]) => total + (is(state) ? jobs : 0), 0);
    const changed = await newUsage(this.#files, queue.history, now - MARGIN);
    for (const day of changed) if (day.day !== today) this.#files.write(day);
    const before = changed.find(({ day }) => day === today) ?? this.#files.read(today);
    const seen = await this.#options.machines(Object.keys(before.machines));
    const running = count((state) => state === 'running' || state === 'suspended');
    const held = count((state) => state === 'held');
    const all = count((state) => !ENDS.has(state));
    const hour = new Date(now * 1000).getUTCHours();
    const hours = before.hours.map((one, i) =>
      i === hour
        ? {
            looks: one.looks + 1,
            idle: one.idle + all - running - held,
            running: one.running + running,
            held: one.held + held,
          }
        : one,
    );
    const local: Record<string, number> = { ...before.local };
    for (const [name, seconds] of spent) local[name] = (local[name] ?? 0) + seconds;
    const machines = withMachines(before.machines, seen);
    this.#files.write({ ...before, upTo: Math.max(before.upTo, now - MARGIN), hours, local, machines });
    this.#files.prune();
  }

  /** Processor seconds that our processes have used since the last look, by the name of their program. */
  async #spent(): Promise<Map<string, number>> {
    const ours = new Set([process.pid, ...children(), ...(await this.#options.others())]);
    const first = this.#seen === undefined;
    const before = this.#seen ?? new Map<string, number>();
    const now = new Map<string, number>();
    const spent = new Map<string, number>();
    for (const pid of ours) {
      const one = lookAt(pid);
      if (!one) continue;
      const key = `${one.pid} ${one.started}`;
      now.set(key, one.ticks);
      // What processes that are older than this one used was counted by the Scheduler before.
      const known = before.get(key) ?? (first && one.pid !== process.pid && one.parent !== process.pid ? one.ticks : 0);
      const program = programOf(one.pid);
      spent.set(program, (spent.get(program) ?? 0) + (one.ticks - known) / TICKS);
    }
    this.#seen = now;
    return spent;
  }
}

const ENDS: ReadonlySet<string> = new Set(STATES.filter(isEnd));

/** The pids of this process's children. A machine may have thousands of others, whose parents would all have to be looked up. */
function children(): number[] {
  try {
    return readdirSync('/proc/self/task').flatMap((thread) => numbersIn(`/proc/self/task/${thread}/children`));
  } catch {
    // A kernel without CONFIG_PROC_CHILDREN.
    const all = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
    return all.map(Number).filter((pid) => lookAt(pid)?.parent === process.pid);
  }
}

function numbersIn(path: string): number[] {
  return readFileSync(path, 'utf8').split(' ').filter(Boolean).map(Number);
}

interface Look {
  readonly pid: number;
  readonly parent: number;
  readonly started: string;
  readonly ticks: number;
}

function lookAt(pid: number): Look | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const [parent, user, system] = [fields[1], fields[11], fields[12]].map(Number);
    return { pid, parent: parent ?? 0, started: fields[19] ?? '', ticks: (user ?? 0) + (system ?? 0) };
  } catch {
    return undefined;
  }
}

/** `scheduler`, `gridmanager`, `central-manager`, `redis-server`, or the name of another program. */
function programOf(pid: number): string {
  try {
    const line = readFileSync(`/proc/${pid}/cmdline`, 'utf8');
    const found = /(scheduler|gridmanager|central-manager|user-logs|redis-server|dag)/.exec(line);
    return found?.[1] ?? readFileSync(`/proc/${pid}/comm`, 'utf8').trim();
  } catch {
    return 'others';
  }
}

/** The pid of the private Redis, if there is one. */
export function redisPid(stateDir: string): number[] {
  const pid = readPid(join(stateDir, 'redis', 'redis.pid'));
  return pid === undefined ? [] : [pid];
}
