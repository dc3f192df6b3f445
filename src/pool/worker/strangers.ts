import { spawn, spawnSync } from 'node:child_process';
import { lstatSync, mkdirSync, readFileSync, type Stats, statSync } from 'node:fs';
import { delimiter, join, sep } from 'node:path';
import type { AttrTexts } from '../../job/attrs.ts';
import { quoted } from '../../job/values.ts';
import type { AttemptDir } from './attempt-dir.ts';
import type { Choice, JobUser } from './job-users.ts';

export interface StrangersOptions {
  readonly isRoot: boolean;
  readonly uid: number;
  readonly userName: string;
  /** The worker's own PATH. */
  readonly path: string | undefined;
  /** Directories of the machine's owner that a stranger does not see. */
  readonly hidden: readonly string[];
  /** The accounts of a worker of root: `nobody` or a slot account. */
  readonly account: (runAs: string, used: ReadonlySet<number>) => Choice;
  /** Makes the directory of sandboxes. Throws an explanation if strangers could not reach it. */
  readonly openExecute: () => void;
}

/** Subordinate ids for jobs at the same time, of those that an owner has. */
const MOST = 512;
const PROBE_MS = 20_000;
const HIDEPID = 'hidepid=2,nosuid,nodev,noexec';
/** The user namespace: the worker's user is root in it, its subordinate ids follow. */
const NAMESPACE = ['--user', '--map-root-user', '--map-auto'] as const;
/**
 * Hides directories from a job: its own directory for temporary files lies over /tmp, an empty one over the others. The
 * first word is the sandbox, then come the program mount (the PATH is the job's), options of /proc, directories up to `--`,
 * and the command.
 */
const HIDE = `cd / || exit 125
work=$1; t=$2; m=$3; p=$4; shift 4
[ -z "$p" ] || "$m" -t proc -o "$p" proc /proc || exit 125
while [ "$1" != -- ]; do "$m" -t tmpfs -o ro,size=4k,mode=555,nosuid,nodev none "$1" || exit 125; shift; done
shift
[ -z "$t" ] || "$m" --bind "$t" /tmp || exit 125
cd "$work" || exit 125
exec "$@"`;

interface Ability {
  readonly ways: readonly string[];
  readonly refusal: string | undefined;
  readonly offline: boolean;
  /** Options of a /proc that shows a stranger its own processes only; '' where there can be none. */
  readonly proc: string;
  /** The first subordinate user and group ids. */
  readonly first?: { readonly uid: number; readonly gid: number };
}

/** Whether the job of another pool can be kept from what belongs to this machine's owner, and how. */
export class Strangers {
  readonly #options: StrangersOptions;
  readonly #ability: Ability;

  constructor(options: StrangersOptions) {
    this.#options = options;
    this.#ability = this.#probe();
  }

  /** How the machine's ad says it. */
  ad(): AttrTexts {
    const { ways, refusal, offline } = this.#ability;
    if (ways.length === 0) return { GryphusLendsNot: quoted(refusal ?? 'it cannot run jobs of strangers') };
    return { GryphusLendsAs: quoted(ways.join(',')), GryphusLendsOffline: String(offline) };
  }

  /** `used`: user ids of jobs that are here. */
  choose(runAs: string, network: boolean, used: ReadonlySet<number>): Choice {
    const { ways, refusal, offline, first } = this.#ability;
    if (ways.length === 0) return { refusal: refusal ?? 'it cannot run jobs of strangers' };
    if (runAs !== 'auto' && !ways.includes(runAs))
      return { refusal: `its worker cannot run jobs of strangers as '${runAs}'` };
    if (!network && !offline) return { refusal: 'its worker cannot take the network from a job' };
    if (first) {
      for (let inner = 1; inner <= MOST; inner++) {
        const uid = first.uid + inner - 1;
        if (used.has(uid)) continue;
        const gid = first.gid + inner - 1;
        const name = `subuid${inner}`;
        return {
          user: { name, uid, gid, groups: [], home: '/nonexistent', alone: true, stranger: { network, inner } },
        };
      }
      return { refusal: 'its worker has no subordinate user id left' };
    }
    const isSlot = runAs === 'slot' || (runAs === 'auto' && ways.includes('slot'));
    const choice = this.#options.account(isSlot ? 'slot' : 'nobody', used);
    if ('refusal' in choice || !choice.user) return choice;
    return { user: { ...choice.user, groups: [], home: '/nonexistent', stranger: { network } } };
  }

  /** The words before a command of a stranger. `dir`: its attempt. */
  command({ uid, gid, stranger }: JobUser, dir: AttemptDir): readonly string[] {
    const inner = stranger?.inner;
    const [ownUid, ownGid] = inner === undefined ? [uid, gid] : [inner, inner];
    const tmp = join(dir.path, 'tmp');
    const hides = (path: string) => path !== '/' && !`${dir.path}${sep}`.startsWith(`${path}${sep}`);
    const all = this.#options.hidden.filter((path) => hides(path) && found(path));
    const hidden = all.filter((path) => !all.some((above) => path.startsWith(`${above}${sep}`)));
    return [
      this.#program('unshare') ?? 'unshare',
      ...(inner === undefined ? [] : NAMESPACE),
      '--mount',
      '--ipc',
      ...(stranger?.network ? [] : ['--net']),
      '--',
      '/bin/sh',
      '-c',
      HIDE,
      'sh',
      dir.work,
      hides('/tmp') ? tmp : '',
      this.#program('mount') ?? 'mount',
      this.#ability.proc,
      ...hidden,
      '--',
      this.#program('setpriv') ?? 'setpriv',
      `--reuid=${ownUid}`,
      `--regid=${ownGid}`,
      '--clear-groups',
      '--inh-caps=-all',
      '--bounding-set=-all',
      '--no-new-privs',
      '--pdeathsig=KILL',
      '--',
    ];
  }

  /** Gives a stranger its sandbox and a directory for temporary files; the streams stay the worker's. */
  give(dir: AttemptDir, { stranger }: JobUser, chown: (path: string) => void): void {
    const tmp = join(dir.path, 'tmp');
    if (!lstatSync(tmp, { throwIfNoEntry: false })) mkdirSync(tmp, { mode: 0o700 });
    if (stranger?.inner === undefined) {
      chown(dir.work);
      chown(tmp);
      return;
    }
    const { status, stderr } = spawnSync(...this.#chown(dir, stranger.inner), { encoding: 'utf8', timeout: PROBE_MS });
    if (status !== 0) throw new Error(`its files cannot be given to a subordinate user id: ${stderr.trim()}`);
  }

  /** Makes what a stranger left the worker's again. Resolves in any case; what could not be taken back is not readable. */
  takeBack(dir: AttemptDir, { stranger }: JobUser): Promise<void> {
    if (stranger?.inner === undefined) return Promise.resolve();
    return new Promise((resolve) => {
      const child = spawn(...this.#chown(dir, 0), { stdio: 'ignore' });
      child.once('error', () => resolve());
      child.once('exit', () => resolve());
    });
  }

  /** The same at once. */
  takeBackNow(dir: AttemptDir, { stranger }: JobUser): void {
    if (stranger?.inner !== undefined) spawnSync(...this.#chown(dir, 0), { timeout: PROBE_MS, stdio: 'ignore' });
  }

  #chown(dir: AttemptDir, to: number): [string, string[]] {
    const chown = this.#program('chown') ?? 'chown';
    const paths = [dir.work, join(dir.path, 'tmp')];
    return [this.#program('unshare') ?? 'unshare', [...NAMESPACE, '--', chown, '-hR', `${to}:${to}`, '--', ...paths]];
  }

  #program(name: string): string | undefined {
    const { path = '/usr/sbin:/usr/bin:/sbin:/bin' } = this.#options;
    return path
      .split(delimiter)
      .filter((dir) => dir.startsWith('/'))
      .map((dir) => join(dir, name))
      .find((file) => found(file)?.isFile());
  }

  #probe(): Ability {
    const { isRoot, openExecute, account } = this.#options;
    const unable = (refusal: string): Ability => ({ ways: [], refusal, offline: false, proc: '' });
    for (const [program, from] of [
      ['setpriv', 'util-linux'],
      ['unshare', 'util-linux'],
      ['mount', 'mount'],
      ['chown', 'coreutils'],
    ] as const)
      if (this.#program(program) === undefined) return unable(`${program} (${from}) is missing`);
    try {
      openExecute();
    } catch (thrown) {
      return unable(`${thrown instanceof Error ? thrown.message : String(thrown)}; name a directory with pool.execute`);
    }
    const offline = this.#runs('--net');
    if (isRoot) {
      if (!this.#runs()) return unable('it may not make mount namespaces, as in a container without CAP_SYS_ADMIN');
      const ways = ['slot', 'nobody'].filter((way) => !('refusal' in account(way, new Set())));
      return ways.length > 0
        ? { ways, refusal: undefined, offline, proc: this.#hidesProcesses() ? HIDEPID : '' }
        : unable("there is neither an account 'nobody' nor one 'slot1_1' for jobs of strangers");
    }
    if (this.#program('newuidmap') === undefined)
      return unable('newuidmap is missing: install the package uidmap, or run the worker as root');
    const first = { uid: this.#firstOf('/etc/subuid'), gid: this.#firstOf('/etc/subgid') };
    if (first.uid === undefined || first.gid === undefined)
      return unable(
        `this user has no subordinate ids: as root, run usermod --add-subuids 100000-165535 --add-subgids 100000-165535 ${this.#options.userName}`,
      );
    if (!this.#runs())
      return unable(
        'it may not make user namespaces (see unshare --user --map-root-user --map-auto true), and is not root',
      );
    return { ways: ['subuid'], refusal: undefined, offline, proc: '', first: { uid: first.uid, gid: first.gid } };
  }

  /** Whether a /proc of its own hides others' processes: before Linux 5.8 its options are those of the machine's. */
  #hidesProcesses(): boolean {
    const script = `mount -t proc -o ${HIDEPID} proc /proc && exec "$@"`;
    const sees = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups', '--', 'test', '!', '-e', '/proc/1'];
    const words = ['--mount', '--', '/bin/sh', '-c', script, 'sh', ...sees];
    return spawnSync(this.#program('unshare') ?? 'unshare', words, { timeout: PROBE_MS, stdio: 'ignore' }).status === 0;
  }

  /** Whether a command can run as a stranger does. */
  #runs(...more: readonly string[]): boolean {
    const { isRoot } = this.#options;
    const [unshare = '', setpriv = ''] = [this.#program('unshare'), this.#program('setpriv')];
    const stranger = [setpriv, '--reuid=1', '--regid=1', '--clear-groups', '--no-new-privs', '--', 'true'];
    const script = 'mount -t tmpfs -o ro,size=4k none /tmp && exec "$@"';
    const words = [...(isRoot ? [] : NAMESPACE), '--mount', '--ipc', ...more, '--', '/bin/sh', '-c', script, 'sh'];
    return spawnSync(unshare, [...words, ...stranger], { timeout: PROBE_MS, stdio: 'ignore' }).status === 0;
  }

  /** The first subordinate id of the worker's user. */
  #firstOf(file: string): number | undefined {
    const { uid, userName } = this.#options;
    try {
      for (const line of readFileSync(file, 'utf8').split('\n')) {
        const [who, first, count] = line.split(':');
        if ((who === userName || who === String(uid)) && Number(count) >= MOST + 1) return Number(first);
      }
    } catch {
      // There is none.
    }
    return undefined;
  }
}

/** `undefined` if there is no such file, or this user may not see it. */
function found(path: string): Stats | undefined {
  try {
    return statSync(path);
  } catch {
    return undefined;
  }
}
