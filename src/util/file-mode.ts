/** Default modes of files and programs: every job runs with umask 022, wherever it runs. */
const BY_ITSELF: ReadonlySet<number> = new Set([0o644, 0o755]);

/** A file's permission bits if a job changed them from the default. */
export function chosenMode(mode: number): { readonly mode?: number } {
  const bits = mode & 0o777;
  return BY_ITSELF.has(bits) ? {} : { mode: bits };
}
