import { readdirSync, readFileSync } from 'node:fs';

/** Facts about one process, from /proc. */
export interface ProcessFacts {
  readonly pid: number;
  readonly session: number;
  readonly rssKb: number;
  /** User and system time of the process and of the children that it waited for. */
  readonly cpuTicks: number;
  /** The state of its first thread, as `R`, and how many threads it has. */
  readonly state: string;
  readonly threads: number;
}

/** The page size is 4 KiB on supported machines (x86_64, aarch64 with the usual kernels). */
const PAGE_KB = 4;

/** All visible processes except zombies; empty on systems without /proc. */
export function processes(): ProcessFacts[] {
  return factsOf(pids());
}

/** Those of these processes that exist and are not zombies. */
export function factsOf(pids: readonly number[]): ProcessFacts[] {
  return pids.flatMap((pid) => {
    const fields = statFields(pid);
    if (fields === undefined || fields[0] === 'Z') return [];
    const cpuTicks = fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0);
    const [state = ''] = fields;
    const threads = Number(fields[17]);
    return [{ pid, session: Number(fields[3]), rssKb: Number(fields[21]) * PAGE_KB, cpuTicks, state, threads }];
  });
}

/** Of a process with more threads than this, so many are looked at, and stand for the others. */
const SAMPLE = 16;

/** How many of its threads the kernel counts in its load now: those that run or could run, and those in I/O. */
export function loadOf({ pid, state, threads }: Pick<ProcessFacts, 'pid' | 'state' | 'threads'>): number {
  if (threads <= 1) return isLoad(state) ? 1 : 0;
  const tasks = tasksOf(pid);
  const looked = tasks.slice(0, SAMPLE);
  const active = looked.filter((task) => isLoad(statFields(`${pid}/task/${task}`)?.[0])).length;
  return looked.length === 0 ? 0 : (active * tasks.length) / looked.length;
}

function isLoad(state: string | undefined): boolean {
  return state === 'R' || state === 'D';
}

function tasksOf(pid: number): string[] {
  try {
    return readdirSync(`/proc/${pid}/task`);
  } catch {
    return [];
  }
}

/** Those whose real or effective user is this one, except zombies. */
export function processesOfAccount(uid: number): number[] {
  return pids().filter((pid) => {
    const text = statusOf(pid);
    const [, real, effective] = /^Uid:\s+(\d+)\s+(\d+)/m.exec(text) ?? [];
    return !/^State:\s+[ZX]/m.test(text) && (Number(real) === uid || Number(effective) === uid);
  });
}

function statusOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/status`, 'utf8');
  } catch {
    return '';
  }
}

export function childrenOf(pid: number): number[] {
  return pids().filter((child) => parentOf(child) === pid);
}

/** All that these processes have started, and what that has, as far as it was not left to others. */
export function belowOf(above: Iterable<number>): number[] {
  const children = new Map<number, number[]>();
  for (const pid of pids()) {
    const parent = parentOf(pid) ?? 0;
    children.set(parent, [...(children.get(parent) ?? []), pid]);
  }
  const below = (pid: number): number[] => (children.get(pid) ?? []).flatMap((child) => [child, ...below(child)]);
  return [...new Set([...above].flatMap(below))];
}

/** The processes of a leader's group that it has started, but those that a container runtime has put into a pid namespace. */
export function groupOutsideContainers(leader: number): number[] {
  const inside = /^NSpid:\s+\d+\s+\d/m;
  const members = belowOf([leader]).filter((pid) => Number(statFields(pid)?.[2]) === leader);
  return members.filter((pid) => !inside.test(statusOf(pid)));
}

/** `undefined` if there is no such process. */
export function parentOf(pid: number): number | undefined {
  const parent = statFields(pid)?.[1];
  return parent === undefined ? undefined : Number(parent);
}

/** Whether it is stopped by a signal or a debugger, or has ended. */
export function isStopped(pid: number): boolean {
  const state = statFields(pid)?.[0];
  return state === undefined || 'TtZX'.includes(state);
}

/** Whether a process with one of these keys in its environment has this terminal (a device number). */
export function ownsTerminal(device: number, keys: ReadonlySet<string>): boolean {
  return pids().some((pid) => Number(statFields(pid)?.[4]) === device && keys.has(keyOf(pid) ?? ''));
}

/** Processes whose environment says that they belong to one of these attempts, with the attempt's key. */
export function processesOf(keys: ReadonlySet<string>): { readonly pid: number; readonly key: string }[] {
  if (keys.size === 0) return [];
  return pids().flatMap((pid) => {
    const key = keyOf(pid);
    return key !== undefined && keys.has(key) ? [{ pid, key }] : [];
  });
}

/**
 * Like `processesOf`, for repeated scans: a process that was seen twice without a key in its environment belongs to no
 * attempt, and reading all environments again takes milliseconds. (A process that has just been forked still shows the
 * environment of its parent, so seeing it once is not enough.)
 */
export class Scan {
  #others = new Map<number, number>();

  processesOf(keys: ReadonlySet<string>): { readonly pid: number; readonly key: string }[] {
    const others = new Map<number, number>();
    const found = pids().flatMap((pid) => {
      const seen = this.#others.get(pid) ?? 0;
      if (seen >= SEEN) {
        others.set(pid, seen);
        return [];
      }
      const environment = environmentOf(pid);
      const key = environment === undefined ? undefined : keyIn(environment);
      if (key === undefined && (environment !== '' || isKernelThread(pid))) others.set(pid, seen + 1);
      return key !== undefined && keys.has(key) ? [{ pid, key }] : [];
    });
    this.#others = others;
    return found;
  }
}

const SEEN = 2;
/** PF_KTHREAD in the flags of /proc/PID/stat, field 9 (linux/sched.h). */
const KERNEL_THREAD = 0x00200000;

function isKernelThread(pid: number): boolean {
  return (Number(statFields(pid)?.[6] ?? 0) & KERNEL_THREAD) !== 0;
}

/** The environment variable that identifies all descendants of a job. */
export const KEY_VARIABLE = 'GRYPHUS_KEY';

function keyOf(pid: number): string | undefined {
  const environment = environmentOf(pid);
  return environment === undefined ? undefined : keyIn(environment);
}

/** Empty for a kernel thread, a zombie, and in the middle of execve(2); `undefined` if it may not be read. */
function environmentOf(pid: number): string | undefined {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'latin1');
  } catch {
    return undefined;
  }
}

function keyIn(environment: string): string | undefined {
  const at = environment.startsWith(`${KEY_VARIABLE}=`) ? 0 : environment.indexOf(`\0${KEY_VARIABLE}=`) + 1;
  if (at === 0 && !environment.startsWith(`${KEY_VARIABLE}=`)) return undefined;
  const end = environment.indexOf('\0', at);
  return environment.slice(at + KEY_VARIABLE.length + 1, end < 0 ? undefined : end);
}

/** The fields of /proc/PID/stat, starting with the state (field 3). */
function statFields(pid: number | string): string[] | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1');
    return text.slice(text.lastIndexOf(')') + 2).split(' ');
  } catch {
    return undefined;
  }
}

function pids(): number[] {
  try {
    return readdirSync('/proc').flatMap((name) => (/^[1-9]\d*$/.test(name) ? [Number(name)] : []));
  } catch {
    return [];
  }
}

/**
 * Sends a signal to a process, or to a process group if `pid` is negative; false if there is none. Never signals 0, 1
 * or -1.
 */
export function signal(pid: number, name: NodeJS.Signals): boolean {
  if (!Number.isSafeInteger(pid) || Math.abs(pid) <= 1) return false;
  try {
    process.kill(pid, name);
    return true;
  } catch {
    return false;
  }
}
