import { readFileSync } from 'node:fs';
import * as z from 'zod';

/** A unique identity of a process: its pid, and its start time in the kernel's own ticks, since pids are reused. */
export const PROCESS_IDENTITY = z.object({
  /** 0 and 1, as kill(2) understands them, would be others' processes. */
  pid: z.number().int().gt(1),
  /** Clock ticks after boot (proc(5), stat field 22); '' if there is no /proc. */
  started: z.string(),
});
export type ProcessIdentity = Readonly<z.infer<typeof PROCESS_IDENTITY>>;

export function processIdentity(pid: number = process.pid): ProcessIdentity {
  return { pid, started: startTicks(pid) ?? '' };
}

/** Whether this very process still runs (a zombie does not). */
export function isAlive({ pid, started }: ProcessIdentity): boolean {
  try {
    process.kill(pid, 0);
  } catch (thrown) {
    if (!(thrown instanceof Error && 'code' in thrown && thrown.code === 'EPERM')) return false;
  }
  const now = startTicks(pid);
  return started === '' || now === undefined ? true : now === started;
}

/** `undefined` without /proc, or if the process is gone or a zombie. */
function startTicks(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The command's name, in parentheses, may contain anything; the fields after the last parenthesis are regular.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return fields[0] === 'Z' ? 'zombie' : fields[19];
  } catch {
    return undefined;
  }
}
