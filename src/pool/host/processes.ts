import { readdirSync, readFileSync } from 'node:fs';

/** What /proc says of one process. */
export interface ProcessFacts {
  readonly pid: number;
  readonly session: number;
  readonly rssKb: number;
  /** User and system time, its own and of the children that it waited for. */
  readonly cpuTicks: number;
}

/** Pages are of 4 KiB where this runs (x86_64, aarch64 with the usual kernels). */
const PAGE_KB = 4;

/** All processes that can be seen; empty where there is no /proc. Zombies are left out. */
export function processes(): ProcessFacts[] {
  return pids().flatMap((pid) => {
    const fields = statFields(pid);
    if (fields === undefined || fields[0] === 'Z') return [];
    const cpuTicks = fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0);
    return [{ pid, session: Number(fields[3]), rssKb: Number(fields[21]) * PAGE_KB, cpuTicks }];
  });
}

export function childrenOf(pid: number): number[] {
  return pids().filter((child) => parentOf(child) === pid);
}

/** `undefined`: there is no such process. */
export function parentOf(pid: number): number | undefined {
  const parent = statFields(pid)?.[1];
  return parent === undefined ? undefined : Number(parent);
}

/** Processes whose environment says that they belong to one of these attempts, by attempt. */
export function processesOf(keys: ReadonlySet<string>): { readonly pid: number; readonly key: string }[] {
  if (keys.size === 0) return [];
  return pids().flatMap((pid) => {
    const key = keyOf(pid);
    return key !== undefined && keys.has(key) ? [{ pid, key }] : [];
  });
}

/** The variable by which every descendant of a job is known, wherever it went. */
export const KEY_VARIABLE = 'GRYPHUS_KEY';

function keyOf(pid: number): string | undefined {
  try {
    const environment = readFileSync(`/proc/${pid}/environ`, 'latin1');
    const at = environment.startsWith(`${KEY_VARIABLE}=`) ? 0 : environment.indexOf(`\0${KEY_VARIABLE}=`) + 1;
    if (at === 0 && !environment.startsWith(`${KEY_VARIABLE}=`)) return undefined;
    const end = environment.indexOf('\0', at);
    return environment.slice(at + KEY_VARIABLE.length + 1, end < 0 ? undefined : end);
  } catch {
    return undefined;
  }
}

/** Fields of /proc/PID/stat from the state (field 3) on. */
function statFields(pid: number): string[] | undefined {
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

/** Sends a signal to a process, or to a group where `pid` is negative; false where there is none. Never to 0, 1 or -1. */
export function signal(pid: number, name: NodeJS.Signals): boolean {
  if (!Number.isSafeInteger(pid) || Math.abs(pid) <= 1) return false;
  try {
    process.kill(pid, name);
    return true;
  } catch {
    return false;
  }
}
