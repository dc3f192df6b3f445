import { mkdirSync, readdirSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { put, text } from './cgroup-files.ts';
import * as z from 'zod';
import type { Read } from '../../util/schema.ts';
import { readRecord } from './attempt-place.ts';
import { CONTROLLERS } from './cgroup-places.ts';
import { signal } from '../host/processes.ts';

/** The directories of one cgroup, by controller; in v2 all are the same. */
export const GROUP_DIRS = z.strictObject({
  generation: z.union([z.literal(1), z.literal(2)]),
  dirs: z.partialRecord(z.enum(CONTROLLERS), z.string()),
});
export type GroupDirs = Read<typeof GROUP_DIRS>;

/** The group that was noted; `undefined` if nothing valid was. */
export function groupIn(path: string): Cgroup | undefined {
  const places = readRecord(GROUP_DIRS, path);
  return places && new Cgroup(places);
}

export interface GroupUsage {
  readonly userSeconds: number;
  readonly systemSeconds: number;
  /** The memory that its processes use now, without the page cache. */
  readonly heldKb?: number;
  /** The peak of the memory charged to it, including the page cache. */
  readonly peakKb?: number;
  /** Processes killed by the OOM killer because the group had no memory left. */
  readonly oomKills: number;
}

/** Clock ticks per second in the files of cgroup v1. */
const TICKS = 100;
const TURN_MS = 20;
const TURNS = 250;
const ENDS = 100;

/** The cgroup of one attempt, which contains everything its program starts. */
export class Cgroup {
  readonly places: GroupDirs;

  constructor(places: GroupDirs) {
    this.places = places;
  }

  /** Creates it with these limits. Throws if that is not permitted. */
  static make(places: GroupDirs, limits: { readonly cpus: number; readonly memoryMb: number | undefined }): Cgroup {
    const made = new Cgroup(places);
    try {
      for (const dir of made.#each()) mkdirSync(dir, { recursive: true });
      made.#limit(limits);
    } catch (thrown) {
      made.remove();
      throw thrown;
    }
    return made;
  }

  /** The files through which a process enters the cgroup: it writes `0` to each. */
  get doors(): string[] {
    return this.#each().map((dir) => join(dir, 'cgroup.procs'));
  }

  freeze(halt: boolean): boolean {
    const { generation, dirs } = this.places;
    if (dirs.freezer === undefined) return false;
    return generation === 2
      ? put(join(dirs.freezer, 'cgroup.freeze'), halt ? '1' : '0')
      : put(join(dirs.freezer, 'freezer.state'), halt ? 'FROZEN' : 'THAWED');
  }

  /** Kills everything in it until it is empty; false if something was left after several seconds. */
  async kill(): Promise<boolean> {
    for (let turn = 0; turn < TURNS && this.populated; turn++) {
      this.#killOnce();
      await new Promise((resume) => setTimeout(resume, TURN_MS));
    }
    return !this.populated;
  }

  /** Kills everything in it and removes it; false if it still exists. */
  async end(): Promise<boolean> {
    await this.kill();
    for (let turn = 0; turn < ENDS && !this.remove(); turn++)
      await new Promise((resume) => setTimeout(resume, TURN_MS));
    return this.remove();
  }

  #killOnce(): void {
    const { generation, dirs } = this.places;
    if (generation === 2 && put(join(dirs.freezer ?? '', 'cgroup.kill'), '1')) return;
    // Frozen processes cannot fork in the meantime; they die when thawed.
    this.freeze(true);
    for (const dir of this.#each()) for (const pid of pidsIn(dir)) signal(pid, 'SIGKILL');
    this.freeze(false);
  }

  /** Whether something runs in it, or in a group below it. */
  get populated(): boolean {
    return this.#each().some((dir) => pidsIn(dir).length > 0);
  }

  /** The processes in it, and in groups below it. */
  pids(): number[] {
    return [...new Set(this.#each().flatMap((dir) => pidsIn(dir)))];
  }

  usage(): GroupUsage {
    return this.places.generation === 2 ? this.#usageOfSecond() : this.#usageOfFirst();
  }

  /** False while something is in it. */
  remove(): boolean {
    let gone = true;
    for (const dir of this.#each()) {
      gone = removed(dir) && gone;
    }
    return gone;
  }

  #each(): string[] {
    return [...new Set(Object.values(this.places.dirs))];
  }

  #limit({ cpus, memoryMb }: { readonly cpus: number; readonly memoryMb: number | undefined }): void {
    const { generation, dirs } = this.places;
    const bytes = memoryMb === undefined ? undefined : String(memoryMb * 2 ** 20);
    if (generation === 2) {
      if (dirs.cpu !== undefined) put(join(dirs.cpu, 'cpu.weight'), String(Math.min(10_000, 100 * cpus)));
      if (dirs.memory === undefined) return;
      // Kill all or none: a job that has lost a process usually cannot continue properly.
      put(join(dirs.memory, 'memory.oom.group'), '1');
      if (bytes === undefined) return;
      writeFileSync(join(dirs.memory, 'memory.max'), bytes);
      put(join(dirs.memory, 'memory.swap.max'), '0');
      return;
    }
    if (dirs.cpu !== undefined) put(join(dirs.cpu, 'cpu.shares'), String(1024 * cpus));
    if (dirs.memory === undefined || bytes === undefined) return;
    writeFileSync(join(dirs.memory, 'memory.limit_in_bytes'), bytes);
    put(join(dirs.memory, 'memory.memsw.limit_in_bytes'), bytes);
  }

  #usageOfSecond(): GroupUsage {
    const { memory, cpuacct = '' } = this.places.dirs;
    const cpu = (name: string) => (numberAt(join(cpuacct, 'cpu.stat'), name) ?? 0) / 1e6;
    const stat = (name: string) => numberAt(join(memory ?? '', 'memory.stat'), name) ?? 0;
    const peak = memory === undefined ? undefined : text(join(memory, 'memory.peak'));
    return {
      userSeconds: cpu('user_usec'),
      systemSeconds: cpu('system_usec'),
      ...(memory === undefined ? {} : { heldKb: kb(stat('anon') + stat('shmem')) }),
      ...(peak === undefined ? {} : { peakKb: kb(Number(peak)) }),
      oomKills: memory === undefined ? 0 : (numberAt(join(memory, 'memory.events'), 'oom_kill') ?? 0),
    };
  }

  #usageOfFirst(): GroupUsage {
    const { memory, cpuacct = '' } = this.places.dirs;
    const cpu = (name: string) => (numberAt(join(cpuacct, 'cpuacct.stat'), name) ?? 0) / TICKS;
    const stat = (name: string) => numberAt(join(memory ?? '', 'memory.stat'), name) ?? 0;
    const peak = memory === undefined ? undefined : text(join(memory, 'memory.max_usage_in_bytes'));
    return {
      userSeconds: cpu('user'),
      systemSeconds: cpu('system'),
      ...(memory === undefined ? {} : { heldKb: kb(stat('total_rss') + stat('total_shmem')) }),
      ...(peak === undefined ? {} : { peakKb: kb(Number(peak)) }),
      oomKills: memory === undefined ? 0 : (numberAt(join(memory, 'memory.oom_control'), 'oom_kill') ?? 0),
    };
  }
}

/** Includes groups below it. */
function pidsIn(dir: string): number[] {
  const own = (text(join(dir, 'cgroup.procs')) ?? '').split('\n').filter(Boolean).map(Number);
  return [...own, ...below(dir).flatMap((one) => pidsIn(one))];
}

function below(dir: string): string[] {
  try {
    const entries = readdirSync(dir, { withFileTypes: true });
    return entries.flatMap((entry) => (entry.isDirectory() ? [join(dir, entry.name)] : []));
  } catch {
    return [];
  }
}

function removed(dir: string): boolean {
  for (const one of below(dir)) removed(one);
  try {
    rmdirSync(dir);
    return true;
  } catch (thrown) {
    return thrown instanceof Error && 'code' in thrown && thrown.code === 'ENOENT';
  }
}

function kb(bytes: number): number {
  return Math.ceil(bytes / 1024);
}

/** The number after a name, in a file of `NAME NUMBER` lines. */
function numberAt(path: string, name: string): number | undefined {
  const found = new RegExp(`^${name} (\\d+)$`, 'm').exec(text(path) ?? '')?.[1];
  return found === undefined ? undefined : Number(found);
}
