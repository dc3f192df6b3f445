import { readdirSync, readFileSync } from 'node:fs';

/** Facts about one process, from /proc. */
export interface ProcessFacts {
  readonly pid: number;
  readonly session: number;
  readonly rssKb: number;
  /** User and system time of the process and of the children that it waited for. */
  readonly cpuTicks: number;
}

/** The page size is 4 KiB on supported machines (x86_64, aarch64 with the usual kernels). */
const PAGE_KB = 4;

/** All visible processes except zombies; empty on systems without /proc. */
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

/** `undefined` if there is no such process. */
export function parentOf(pid: number): number | undefined {
  const parent = statFields(pid)?.[1];
  return parent === undefined ? undefined : Number(parent);
}

/** Processes whose environment says that they belong to one of these attempts, with the attempt's key. */
export function processesOf(keys: ReadonlySet<string>): { readonly pid: number; readonly key: string }[] {
  if (keys.size === 0) return [];
  return pids().flatMap((pid) => {
    const key = keyOf(pid);
    return key !== undefined && keys.has(key) ? [{ pid, key }] : [];
  });
}

/** The environment variable that identifies all descendants of a job. */
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

/** The fields of /proc/PID/stat, starting with the state (field 3). */
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
