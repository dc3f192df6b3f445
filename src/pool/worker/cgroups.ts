import { accessSync, constants, existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync } from 'node:fs';
import { join } from 'node:path';
import type { AttrTexts } from '../../job/attrs.ts';
import { quoted } from '../../job/values.ts';
import { Cgroup, type GroupDirs } from './cgroup.ts';
import { put, text } from './cgroup-files.ts';
import { CONTROLLERS, type Controller, ownGroups, type OwnGroups } from './cgroup-places.ts';
import type { Size } from '../wire/wire.ts';
import type { CgroupPolicy } from '../wire/worker-config.ts';

export interface CgroupsOptions {
  readonly policy: CgroupPolicy;
  /** The name of our directory below the worker's own cgroup. */
  readonly name: string;
  /** Jobs may use no more memory than their slot has. */
  readonly limitMemory: boolean;
  readonly pid?: number;
  readonly own?: OwnGroups;
}

/** The cgroups of a worker's jobs, below the cgroup in which the worker was started. */
export class Cgroups {
  readonly #base: GroupDirs;
  /** Applies to groups created from now on. */
  limitMemory: boolean;

  private constructor(base: GroupDirs, limitMemory: boolean) {
    this.#base = base;
    this.limitMemory = limitMemory;
  }

  /** `undefined` if cgroups do not exist, or the worker may not create or should not use them. */
  static open({
    policy,
    name,
    limitMemory,
    pid = process.pid,
    own = groupsOf(pid),
  }: CgroupsOptions): Cgroups | undefined {
    if (policy === 'never' || own === undefined) return undefined;
    const first = policy === 'always' && own.first.memory !== undefined ? firstBase(own, name) : undefined;
    const base = first ?? (own.unified === undefined ? undefined : secondBase(own.unified, name, pid));
    if (!base) return undefined;
    for (const dir of new Set(Object.values(base.dirs))) clear(dir);
    return new Cgroups(base, limitMemory);
  }

  /** Attributes for the machine's ad: how limits of jobs are enforced. */
  ad(): AttrTexts {
    const { generation, dirs } = this.#base;
    const what = Object.keys(dirs).filter((one) => one !== 'cpuacct');
    return {
      CgroupVersion: String(generation),
      GryphusCgroups: quoted(what.join(' ')),
      ...(this.limitMemory && dirs.memory !== undefined ? { CgroupMemoryLimitPolicy: quoted('hard') } : {}),
    };
  }

  /** Creates a cgroup with this name; `undefined` if that fails. */
  make(name: string, size: Pick<Size, 'cpus' | 'memoryMb'>, limitMemory = this.limitMemory): Cgroup | undefined {
    const memoryMb = limitMemory ? size.memoryMb : undefined;
    try {
      return Cgroup.make(this.placesOf(name), { cpus: size.cpus, memoryMb });
    } catch {
      return undefined;
    }
  }

  /** The directories that a cgroup of this name has, or would have. */
  placesOf(name: string): GroupDirs {
    const { generation, dirs } = this.#base;
    return { generation, dirs: mapped(dirs, (dir) => join(dir, name)) };
  }

  /** Removes all cgroups in which nothing runs. */
  close(): void {
    for (const dir of new Set(Object.values(this.#base.dirs))) {
      clear(dir);
      remove(dir);
    }
  }
}

/** The cgroup of the worker itself, if it had to be moved out of its parent. */
const WORKER = 'worker';

function groupsOf(pid: number): OwnGroups | undefined {
  try {
    return ownGroups(readFileSync(`/proc/${pid}/cgroup`, 'utf8'), readFileSync('/proc/self/mountinfo', 'utf8'));
  } catch {
    return undefined;
  }
}

function firstBase(own: OwnGroups, name: string): GroupDirs | undefined {
  const dirs: Partial<Record<Controller, string>> = {};
  for (const controller of CONTROLLERS) {
    const dir = own.first[controller];
    if (dir === undefined) continue;
    const base = join(dir, name);
    if (made(base)) dirs[controller] = base;
  }
  return dirs.memory === undefined ? undefined : { generation: 1, dirs };
}

/**
 * cgroup v2 allows no processes beside groups with controllers, so the worker moves into a group of its own, if it was
 * alone in its cgroup.
 */
function secondBase(own: string, name: string, pid: number): GroupDirs | undefined {
  const base = join(own, name);
  if (!made(base)) return undefined;
  const wanted = ['memory', 'cpu'].filter((one) => words(join(own, 'cgroup.controllers')).includes(one));
  let given = enabled(own, wanted);
  if (given.length < wanted.length) {
    const worker = join(base, WORKER);
    const moved = made(worker) && put(join(worker, 'cgroup.procs'), String(pid));
    given = enabled(own, wanted);
    if (moved && given.length < wanted.length) put(join(own, 'cgroup.procs'), String(pid));
    if (given.length < wanted.length) remove(worker);
  }
  const both = enabled(base, given);
  const has = (one: string): boolean => both.includes(one);
  return {
    generation: 2,
    dirs: {
      ...(has('memory') ? { memory: base } : {}),
      ...(has('cpu') ? { cpu: base } : {}),
      cpuacct: base,
      freezer: base,
    },
  };
}

/**
 * Enables controllers for the groups below this one, if permitted, and returns those that are enabled. All are
 * requested in one write: some could be enabled beside processes, and would make the groups useless.
 */
function enabled(dir: string, wanted: readonly string[]): string[] {
  const file = join(dir, 'cgroup.subtree_control');
  if (wanted.some((one) => !words(file).includes(one))) put(file, wanted.map((one) => `+${one}`).join(' '));
  return wanted.filter((one) => words(file).includes(one));
}

function words(path: string): string[] {
  return text(path)?.trim().split(/\s+/) ?? [];
}

/** Removes cgroups in which nothing runs, such as those left by a worker that was killed. */
function clear(dir: string): void {
  if (!existsSync(dir)) return;
  for (const entry of readdirSync(dir, { withFileTypes: true }))
    if (entry.isDirectory() && entry.name !== WORKER) remove(join(dir, entry.name));
}

function made(dir: string): boolean {
  try {
    if (!existsSync(dir)) mkdirSync(dir);
    accessSync(join(dir, 'cgroup.procs'), constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

function remove(dir: string): void {
  try {
    rmdirSync(dir);
  } catch {
    // Something is in it.
  }
}

function mapped<K extends string>(
  record: Readonly<Partial<Record<K, string>>>,
  change: (value: string) => string,
): Partial<Record<K, string>> {
  const entries = Object.entries(record) as [K, string][];
  return Object.fromEntries(entries.map(([key, value]) => [key, change(value)])) as Partial<Record<K, string>>;
}
