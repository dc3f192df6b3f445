import { statfs } from 'node:fs/promises';

/** File systems of this machine's own disks and memory, by their numbers in statfs(2): ext, XFS, Btrfs, tmpfs, F2FS, ZFS. */
const LOCAL: ReadonlySet<number> = new Set([0xef53, 0x58465342, 0x9123683e, 0x01021994, 0xf2f52010, 0x2fc12fc1]);
/** A directory is looked at again after this time, in milliseconds. */
const FRESH_MS = 10_000;
const MOST = 1000;

const seen = new Map<string, { readonly local: boolean; readonly at: number }>();

/**
 * Whether a directory is on a disk of this machine, where a call may be made synchronously: it costs a tenth of an
 * asynchronous one, but on a network file system whose server is away it would stop the whole process. Not a promise if
 * that is known already.
 */
export function isOnLocalDisk(directory: string): boolean | Promise<boolean> {
  const known = seen.get(directory);
  if (known && performance.now() - known.at < FRESH_MS) return known.local;
  return look(directory);
}

async function look(directory: string): Promise<boolean> {
  const type = await statfs(directory).then(
    (found) => found.type >>> 0,
    () => 0,
  );
  const local = LOCAL.has(type);
  if (seen.size > MOST) seen.clear();
  seen.set(directory, { local, at: performance.now() });
  return local;
}
