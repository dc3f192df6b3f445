import { readdirSync, readlinkSync } from 'node:fs';

/** How many descriptors of this process are of this path, or of one below it. */
export function openFilesBelow(path: string): number {
  return readdirSync('/proc/self/fd').filter((fd) => {
    try {
      const target = readlinkSync(`/proc/self/fd/${fd}`);
      return target === path || target.startsWith(`${path}/`);
    } catch {
      return false;
    }
  }).length;
}
