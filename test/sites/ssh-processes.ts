import { readdirSync, readFileSync } from 'node:fs';

/** Process ids below `root` whose command name passes, from /proc; without `root` itself. */
export function descendants(root: number, passes: (name: string) => boolean): number[] {
  const parents = new Map<number, { parent: number; name: string }>();
  for (const entry of readdirSync('/proc')) {
    if (!/^\d+$/.test(entry)) continue;
    try {
      const stat = readFileSync(`/proc/${entry}/stat`, 'utf8');
      const end = stat.lastIndexOf(')');
      parents.set(Number(entry), {
        parent: Number(stat.slice(end + 4).split(' ')[0]),
        name: stat.slice(stat.indexOf('(') + 1, end),
      });
    } catch {
      // The process exited while the list was read.
    }
  }
  const below = (pid: number): boolean => {
    const parent = parents.get(pid)?.parent;
    return parent !== undefined && parent !== 0 && (parent === root || below(parent));
  };
  return [...parents].filter(([pid, { name }]) => passes(name) && below(pid)).map(([pid]) => pid);
}
