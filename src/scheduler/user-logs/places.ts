import { readFileSync } from 'node:fs';
import { dirname } from 'node:path';

/** Local file systems: if one of their directories hangs, the others are not affected. */
const LOCAL = new Set(
  'bcachefs btrfs devtmpfs exfat ext2 ext3 ext4 f2fs jfs overlay ramfs reiserfs squashfs tmpfs vfat xfs zfs'.split(' '),
);

interface Mount {
  readonly point: string;
  readonly type: string;
}

/** What hangs together with this file: the whole file system if it is remote, otherwise the file's directory. */
export function placeOf(path: string, mounts: readonly Mount[] = readMounts()): string {
  let found: Mount | undefined;
  for (const mount of mounts)
    if (isIn(path, mount.point) && mount.point.length >= (found?.point.length ?? 0)) found = mount;
  return found && !LOCAL.has(found.type) ? found.point : dirname(path);
}

export function isIn(path: string, place: string): boolean {
  return path.startsWith(place.endsWith('/') ? place : `${place}/`);
}

/** proc_pid_mountinfo(5); empty if there is no /proc. */
function readMounts(): readonly Mount[] {
  try {
    return parseMounts(readFileSync('/proc/self/mountinfo', 'utf8'));
  } catch {
    return [];
  }
}

export function parseMounts(text: string): Mount[] {
  return text.split('\n').flatMap((line) => {
    const [before = '', after = ''] = line.split(' - ');
    const point = before.split(' ')[4];
    const type = after.split(' ')[0];
    return point === undefined || type === undefined ? [] : [{ point: unescaped(point), type }];
  });
}

/** Spaces, tabs, newlines and backslashes are octal escapes there. */
function unescaped(word: string): string {
  return word.replaceAll(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
}
