import { join, sep } from 'node:path';

/**
 * Makes what a stranger sees of the machine, as the first process of its namespaces, in the attempt's directory: a /proc of its
 * own processes, the owner's directories empty, the attempt's directory for temporary files in the place of the public ones.
 * Where it fails, the program counts as not started. Words: the attempt, its sandbox, mount, mkdir, options of /proc (or
 * none), the size of /dev/shm (or none), directories to be emptied up to `--`, public ones up to `--`, and the command.
 */
const ENTER = `attempt=$1 work=$2 mount=$3 mkdir=$4 proc=$5 shm=$6; shift 6
fail() { echo "its surroundings could not be made: $1" >said; command -p rm -f started; exit 125; }
mnt() { "$mount" "$@" || fail "mount $*"; }
[ -z "$proc" ] || mnt -t proc -o "$proc" proc /proc
while [ "$1" != -- ]; do mnt -t tmpfs -o mode=555,size=64k,nosuid,nodev none "$1"; shift; done
shift
# The working directory is reached even if something lies over the path that led to it.
while [ "$1" != -- ]; do mnt --no-canonicalize --bind ./tmp "$1"; shift; done
shift
[ -z "$shm" ] || mnt -t tmpfs -o "mode=1777,size=$shm,nosuid,nodev" none /dev/shm
"$mkdir" -p "$attempt" && mnt --no-canonicalize --bind . "$attempt" || fail "$attempt"
{ echo 1000 >/proc/self/oom_score_adj; } 2>/dev/null || :
cd "$work" || fail "$work"
exec "$@"`;

/** What anybody may write to, and so a stranger could leave something in, or find something of the owner's. */
const PUBLIC: readonly string[] = ['/tmp', '/var/tmp'];
const MEMORY_FILES = '/dev/shm';
/** Sockets of the machine's services and of its users' sessions. */
const SERVICES = '/run';
const SESSIONS = '/run/user';
/** Where all programs of the machine are reached through /run (NixOS). */
const PROGRAMS_IN_RUN = '/run/current-system';

export interface View {
  /** The attempt's directory, and the sandbox in it. */
  readonly attempt: string;
  readonly work: string;
  /** Paths of programs. */
  readonly mount: string;
  readonly mkdir: string;
  /** Options of /proc; '' where there can be none of its own. */
  readonly proc: string;
  /** The owner's directories. */
  readonly hidden: readonly string[];
  /** Whether the job uses the machine's network, and so may need what serves it. */
  readonly network: boolean;
  readonly memoryMb: number;
  readonly exists: (path: string) => boolean;
}

/** The words before a command that is to have this view. */
export function enterView(view: View): readonly string[] {
  const { attempt, work, mount, mkdir, proc, network, memoryMb, exists } = view;
  const services = network || exists(PROGRAMS_IN_RUN) ? SESSIONS : SERVICES;
  const wanted = new Set([...view.hidden, services].filter((path) => path !== '/' && exists(path)));
  const covered = [...wanted, ...PUBLIC, MEMORY_FILES];
  const hidden = [...wanted].filter((path) => !PUBLIC.includes(path) && !covered.some((above) => isBelow(path, above)));
  const shm = exists(MEMORY_FILES) ? `${Math.max(1, Math.floor(memoryMb / 2))}m` : '';
  const words = ['/bin/sh', '-c', ENTER, 'sh', attempt, work, mount, mkdir, proc, shm];
  return [...words, ...hidden, '--', ...PUBLIC.filter(exists), '--'];
}

function isBelow(path: string, above: string): boolean {
  return path.startsWith(`${above}${sep}`);
}

/** Where the attempt has its own copy of what waits for its program. */
export function waiterDirIn(attempt: string): string {
  return join(attempt, 'waiter');
}

/** A directory for temporary files of the attempt. */
export function tmpIn(attempt: string): string {
  return join(attempt, 'tmp');
}
