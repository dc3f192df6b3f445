import { spawn, spawnSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  cpSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  type Stats,
  statSync,
  writeFileSync,
} from 'node:fs';
import { delimiter, join } from 'node:path';
import type { AttrTexts } from '../../job/attrs.ts';
import { quoted } from '../../job/values.ts';
import type { AttemptDir } from './attempt-dir.ts';
import type { Choice, JobUser } from './job-users.ts';
import { enterView, tmpIn, waiterDirIn } from './stranger-view.ts';

export interface StrangersOptions {
  readonly isRoot: boolean;
  readonly uid: number;
  readonly userName: string;
  /** The worker's own PATH. */
  readonly path: string | undefined;
  /** Directories of the machine's owner that a stranger does not see. */
  readonly hidden: readonly string[];
  /** The directory of sandboxes, in which a stranger sees its own only. */
  readonly execute: string;
  /** The directory with the programs that wait for a job. */
  readonly waiter: string;
  /** The accounts of a worker of root: `nobody` or a slot account. */
  readonly account: (runAs: string, used: ReadonlySet<number>) => Choice;
  /** Makes the directory of sandboxes. Throws an explanation if strangers could not reach it. */
  readonly openExecute: () => void;
}

/** Subordinate ids for jobs at the same time, of those that an owner has. */
const MOST = 512;
const PROBE_MS = 20_000;
const PROC = 'nosuid,nodev,noexec';
/** The user namespace: the worker's user is root in it, its subordinate ids follow. */
const NAMESPACE = ['--user', '--map-root-user', '--map-auto'] as const;
/** When the first process of the namespaces ends, whatever else the job has started is killed with it. */
const APART = ['--mount', '--ipc', '--pid', '--fork', '--kill-child'] as const;
/** The most processes and threads of a stranger's account. */
const MOST_PROCESSES = 4096;

export interface StrangerWords {
  readonly enter: readonly string[];
  /** The directory of the attempt's own copy of what waits for its program. */
  readonly waiter: string;
  readonly become: readonly string[];
}

interface Ability {
  readonly ways: readonly string[];
  readonly refusal: string | undefined;
  readonly offline: boolean;
  /** Options of a /proc of a stranger's own processes; '' where there can be none, as in some containers. */
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

  /**
   * The words before what waits for a stranger's program, which is the first process in its namespaces, and those before the
   * program itself.
   */
  command({ uid, gid, stranger }: JobUser, dir: AttemptDir, memoryMb: number): StrangerWords {
    const inner = stranger?.inner;
    const network = stranger?.network === true;
    const [ownUid, ownGid] = inner === undefined ? [uid, gid] : [inner, inner];
    const view = enterView({
      attempt: dir.path,
      work: dir.work,
      mount: this.#found('mount'),
      mkdir: this.#found('mkdir'),
      proc: this.#ability.proc,
      hidden: [...this.#options.hidden, this.#options.execute],
      network,
      memoryMb,
      exists: (path) => found(path) !== undefined,
    });
    const apart = [...(inner === undefined ? [] : NAMESPACE), ...APART, ...(network ? [] : ['--net'])];
    return {
      enter: [this.#found('unshare'), ...apart, '--', ...view],
      waiter: waiterDirIn(dir.path),
      become: [
        this.#found('prlimit'),
        `--nproc=${MOST_PROCESSES}`,
        '--',
        this.#found('setpriv'),
        `--reuid=${ownUid}`,
        `--regid=${ownGid}`,
        '--clear-groups',
        '--inh-caps=-all',
        '--bounding-set=-all',
        '--no-new-privs',
        '--pdeathsig=KILL',
        '--',
      ],
    };
  }

  /**
   * Gives a stranger its sandbox and a directory for temporary files. The streams stay the worker's, but by its group the
   * stranger may open them again, as /dev/stdout.
   */
  give(dir: AttemptDir, { gid, stranger }: JobUser, joinStderr: boolean, chown: (path: string) => void): void {
    mkdirSync(tmpIn(dir.path), { recursive: true, mode: 0o700 });
    cpSync(this.#options.waiter, waiterDirIn(dir.path), { recursive: true });
    // Node 24 copies no directory's mode.
    chmodSync(waiterDirIn(dir.path), 0o755);
    const streams = [dir.stream('stdout'), ...(joinStderr ? [] : [dir.stream('stderr')])];
    for (const path of streams) remake(path, 0o620);
    const isFed = lstatSync(dir.stdin, { throwIfNoEntry: false })?.isFile() === true;
    if (isFed) chmodSync(dir.stdin, 0o640);
    const shared = [...streams, ...(isFed ? [dir.stdin] : [])];
    if (stranger?.inner === undefined) {
      chown(dir.work);
      chown(tmpIn(dir.path));
      for (const path of shared) chownSync(path, this.#options.uid, gid);
      return;
    }
    for (const command of [this.#chown(dir, stranger.inner), this.#chgrp(shared, stranger.inner)]) {
      const { status, stderr } = spawnSync(...command, { encoding: 'utf8', timeout: PROBE_MS });
      if (status !== 0) throw new Error(`its files cannot be given to a subordinate user id: ${stderr.trim()}`);
    }
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
    const paths = [dir.work, tmpIn(dir.path)];
    return [this.#found('unshare'), [...NAMESPACE, '--', this.#found('chown'), '-hR', `${to}:${to}`, '--', ...paths]];
  }

  #chgrp(paths: readonly string[], to: number): [string, string[]] {
    return [this.#found('unshare'), [...NAMESPACE, '--', this.#found('chown'), '-h', `0:${to}`, '--', ...paths]];
  }

  #found(name: string): string {
    return this.#program(name) ?? name;
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
      ['prlimit', 'util-linux'],
      ['mount', 'mount'],
      ['chown', 'coreutils'],
      ['timeout', 'coreutils'],
      ['mkdir', 'coreutils'],
    ] as const)
      if (this.#program(program) === undefined) return unable(`${program} (${from}) is missing`);
    try {
      openExecute();
    } catch (thrown) {
      return unable(`${thrown instanceof Error ? thrown.message : String(thrown)}; name a directory with pool.execute`);
    }
    if (isRoot) {
      if (!this.#runs('true')) return unable('it may not make namespaces, as in a container without CAP_SYS_ADMIN');
      const ways = ['slot', 'nobody'].filter((way) => !('refusal' in account(way, new Set())));
      return ways.length > 0
        ? { ways, refusal: undefined, ...this.#more() }
        : unable("there is neither an account 'nobody' nor one 'slot1_1' for jobs of strangers");
    }
    if (this.#program('newuidmap') === undefined)
      return unable('newuidmap is missing: install the package uidmap, or run the worker as root');
    const first = { uid: this.#firstOf('/etc/subuid'), gid: this.#firstOf('/etc/subgid') };
    if (first.uid === undefined || first.gid === undefined)
      return unable(
        `this user has no subordinate ids: as root, run usermod --add-subuids 100000-165535 --add-subgids 100000-165535 ${this.#options.userName}`,
      );
    // Where the kernel refuses user namespaces, what unshare has started to map ids would wait for ever.
    const plain = spawnSync(this.#found('unshare'), ['--user', '--map-root-user', '--', 'true'], { stdio: 'ignore' });
    if (plain.status !== 0 || !this.#runs('true'))
      return unable(
        'it may not make user namespaces (see unshare --user --map-root-user --map-auto true), and is not root',
      );
    return { ways: ['subuid'], refusal: undefined, ...this.#more(), first: { uid: first.uid, gid: first.gid } };
  }

  /** What else can be had where strangers can be kept apart. */
  #more(): Pick<Ability, 'offline' | 'proc'> {
    return {
      offline: this.#runs('true', '--net'),
      proc: this.#runs(`mount -t proc -o ${PROC} proc /proc`) ? PROC : '',
    };
  }

  /** Whether a command can run as a stranger does, after `also`. */
  #runs(also: string, ...more: readonly string[]): boolean {
    const stranger = [
      this.#found('setpriv'),
      '--reuid=1',
      '--regid=1',
      '--clear-groups',
      '--no-new-privs',
      '--',
      'true',
    ];
    const script = `mount -t tmpfs -o ro,size=4k none /tmp && { ${also}; } && exec "$@"`;
    const apart = [...(this.#options.isRoot ? [] : NAMESPACE), ...APART, ...more];
    const words = [this.#found('unshare'), ...apart, '--', '/bin/sh', '-c', script, 'sh', ...stranger];
    // It ends all that unshare has started, too.
    const within = ['--signal=KILL', String(PROBE_MS / 1000), ...words];
    return spawnSync(this.#found('timeout'), within, { stdio: 'ignore' }).status === 0;
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

/** A new file of the worker's. */
function remake(path: string, mode: number): void {
  writeFileSync(path, '', { mode });
  chmodSync(path, mode);
}

/** `undefined` if there is no such file, or this user may not see it. */
function found(path: string): Stats | undefined {
  try {
    return statSync(path);
  } catch {
    return undefined;
  }
}
