import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { mirror, placeOf } from '../../scripts/other-debian.mjs';

/** An ordinary user of every bare machine. */
export const USER = { name: 'me', uid: 1000, home: '/home/me' } as const;

/**
 * Created completely or not at all, by one of the processes that ask for it at once; kept for a month for later runs.
 */
const ONCE = `set -eu
place=$1 from=$2 root=$1/root
find "$place/made" -mtime +30 -exec rm -rf "$place" + 2>/dev/null || :
[ ! -e "$place/made" ] || exit 0
rm -rf "$place"
mkdir -p "$place"
eval "$3"
: >"$place/made"`;
const MAKE = `mmdebstrap --quiet --mode=root --variant=minbase bookworm "$root" "$from"
chroot "$root" useradd -m -s /bin/sh ${USER.name}`;
const ADD_NODE = `cp -a "$from" "$root"
cp -L /etc/resolv.conf "$root/etc/resolv.conf"
chroot "$root" apt-get -qq update
DEBIAN_FRONTEND=noninteractive chroot "$root" apt-get -qq install -y --no-install-recommends nodejs
chroot "$root" apt-get clean`;

/** Why a bare machine is not possible here, or undefined. */
export function bareMissing(): string | undefined {
  if (process.getuid?.() !== 0) return 'only root can make one (chroot, mount)';
  const there = (process.env['PATH'] ?? '').split(delimiter).some((dir) => existsSync(join(dir, 'mmdebstrap')));
  return there ? undefined : 'mmdebstrap is not installed';
}

/** For `describe.skipIf`: prints why; with CI=true it is an error instead. */
export function skipWithoutBare(): boolean {
  const missing = bareMissing();
  if (missing === undefined) return false;
  if (process.env['CI'] === 'true') throw new Error(`No bare machine: ${missing}.`);
  process.stderr.write(`Tests on a bare machine are left out: ${missing}.\n`);
  return true;
}

/** The smallest Debian 12 that has apt, without package lists, like container images; and one ordinary user. */
export function bareRoot(): string {
  return made('bare-bookworm', MAKE, mirror());
}

/** The same with Debian 12's own Node, which is 18. */
export function bareRootWithOldNode(): string {
  return made('bare-bookworm-nodejs', ADD_NODE, bareRoot());
}

function made(name: string, script: string, from: string): string {
  const place = placeOf(name);
  mkdirSync(dirname(place), { recursive: true });
  const { status, stderr } = spawnSync('flock', [`${place}.lock`, 'sh', '-c', ONCE, 'sh', place, from, script], {
    encoding: 'utf8',
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  if (status !== 0) throw new Error(`The root ${name} could not be made: ${stderr}`);
  return join(place, 'root');
}
