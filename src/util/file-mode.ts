/** What files and programs get by themselves: every job runs with the umask 022, wherever it runs. */
const BY_ITSELF: ReadonlySet<number> = new Set([0o644, 0o755]);

/** A file's permission bits, where a job gave it others than files get by themselves. */
export function chosenMode(mode: number): { readonly mode?: number } {
  const bits = mode & 0o777;
  return BY_ITSELF.has(bits) ? {} : { mode: bits };
}
