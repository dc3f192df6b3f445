import { type ChildProcess, type ChildProcessByStdio, spawn, type SpawnOptions } from 'node:child_process';
import { closeSync, openSync, readdirSync, readFileSync } from 'node:fs';
import type { Readable } from 'node:stream';

/** open(2): not inherited by programs. */
const O_CLOEXEC = 0o2000000;
/** A higher number is rare, and each lower one costs an entry in a list. */
const HIGHEST = 4095;

/**
 * Starts a process that outlives this one. Descriptors that this process was started with, other than the three streams, are
 * /dev/null in it: they are the caller's, as the lock of its script, the pipe whose end it waits for, or an open file with a secret, which
 * the daemon would pass on to each job.
 */
export function spawnApart(
  program: string,
  args: readonly string[],
  options: SpawnOptions & { readonly stdio: ['ignore', 'pipe', 'pipe'] },
): ChildProcessByStdio<null, Readable, Readable>;
export function spawnApart(
  program: string,
  args: readonly string[],
  options: SpawnOptions & { readonly stdio: 'ignore' },
): ChildProcess;
export function spawnApart(
  program: string,
  args: readonly string[],
  options: Omit<SpawnOptions, 'stdio'> & { readonly stdio: 'ignore' | readonly ('ignore' | 'pipe')[] },
): ChildProcess {
  const inherited = inheritedDescriptors();
  const { stdio } = options;
  const streams = typeof stdio === 'string' ? [stdio, stdio, stdio] : stdio;
  const nothing = inherited.length > 0 ? openSync('/dev/null', 'r+') : undefined;
  const all: ('ignore' | 'pipe' | number)[] = [...streams];
  for (let n = all.length; n <= Math.max(...inherited, -1); n++)
    all.push(nothing !== undefined && inherited.includes(n) ? nothing : 'ignore');
  try {
    return spawn(program, args, { ...options, detached: true, stdio: all });
  } finally {
    if (nothing !== undefined) closeSync(nothing);
  }
}

/** Node itself opens none that programs would inherit. */
function inheritedDescriptors(): readonly number[] {
  try {
    return readdirSync('/proc/self/fd')
      .map(Number)
      .filter((n) => n > 2 && n <= HIGHEST && isInherited(n));
  } catch {
    // No /proc.
    return [];
  }
}

function isInherited(n: number): boolean {
  try {
    const flags = /^flags:\s*([0-7]+)/m.exec(readFileSync(`/proc/self/fdinfo/${n}`, 'utf8'))?.[1];
    return flags !== undefined && (Number.parseInt(flags, 8) & O_CLOEXEC) === 0;
  } catch {
    // It was the one by which the list was read.
    return false;
  }
}
