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
  /** Ours among others' below the worker's own group. */
  readonly name: string;
  /** Jobs may hold no more memory than their slot has. */
  readonly limitMemory: boolean;
  readonly pid?: number;
  readonly own?: OwnGroups;
}

/** The control groups of a worker's jobs, each below the group in which the worker itself was started. */
export class Cgroups {
  readonly #base: GroupDirs;
  /** Of groups that are made from now on. */
  limitMemory: boolean;

  private constructor(base: GroupDirs, limitMemory: boolean) {
    this.#base = base;
    this.limitMemory = limitMemory;
  }

  /** `undefined`: there are none, the worker may make none, or shall not. */
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

  /** For the machine's ad: what jobs' limits are kept by. */
  ad(): AttrTexts {
    const { generation, dirs } = this.#base;
    const what = Object.keys(dirs).filter((one) => one !== 'cpuacct');
    return {
      CgroupVersion: String(generation),
      GryphusCgroups: quoted(what.join(' ')),
      ...(this.limitMemory && dirs.memory !== undefined ? { CgroupMemoryLimitPolicy: quoted('hard') } : {}),
    };
  }

  /** A group of this name; `undefined` where it cannot be made now. */
  make(name: string, size: Pick<Size, 'cpus' | 'memoryMb'>): Cgroup | undefined {
    const memoryMb = this.limitMemory ? size.memoryMb : undefined;
    try {
      return Cgroup.make(this.placesOf(name), { cpus: size.cpus, memoryMb });
    } catch {
      return undefined;
    }
  }

  /** Where a group of this name is, or would be. */
  placesOf(name: string): GroupDirs {
    const { generation, dirs } = this.#base;
    return { generation, dirs: mapped(dirs, (dir) => join(dir, name)) };
  }

  /** Removes those that nothing runs in. */
  close(): void {
    for (const dir of new Set(Object.values(this.#base.dirs))) {
      clear(dir);
      remove(dir);
    }
  }
}

/** Where the worker itself is, once there are groups beside it. */
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

/** Where the kernel wants no processes beside groups with limits, the worker goes into one of its own, if it was alone there. */
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
 * Those of the controllers that groups below this one have, if it may give them: all or none, for some can be given beside
 * processes and make the groups useless.
 */
function enabled(dir: string, wanted: readonly string[]): string[] {
  const file = join(dir, 'cgroup.subtree_control');
  if (wanted.some((one) => !words(file).includes(one))) put(file, wanted.map((one) => `+${one}`).join(' '));
  return wanted.filter((one) => words(file).includes(one));
}

function words(path: string): string[] {
  return text(path)?.trim().split(/\s+/) ?? [];
}

/** Removes groups in which nothing runs: a worker that was killed leaves such. */
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
    // Something is in there.
  }
}

function mapped<K extends string>(
  record: Readonly<Partial<Record<K, string>>>,
  change: (value: string) => string,
): Partial<Record<K, string>> {
  const entries = Object.entries(record) as [K, string][];
  return Object.fromEntries(entries.map(([key, value]) => [key, change(value)])) as Partial<Record<K, string>>;
}
