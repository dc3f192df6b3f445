import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { delimiter, dirname, join, resolve } from 'node:path';
import { placeOf } from '../../scripts/other-debian.mjs';
import { bareRoot, bareRootWithOldNode, USER } from './bare-root.ts';
import { downloadEnv, extraCertificates } from '../download-env.ts';
import { until } from './redis.ts';

const TREE = resolve(import.meta.dirname, '../..');

export interface Said {
  readonly exit: number | null;
  /** Standard output and error, in order. */
  readonly text: string;
}

export interface RunOptions {
  /** Default: the home directory. */
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Standard error is a terminal of 80 columns, provided by the machine's script(1). */
  readonly terminal?: boolean;
}

/**
 * A Debian 12 with Node and npm and nothing else; its processes and files are its own and are removed with it, the
 * network is this machine's.
 */
export interface BareMachine {
  /** Where this process sees its `/`. */
  readonly root: string;
  /** Runs sh(1) text to completion. */
  run(user: 'root' | typeof USER.name, script: string, options?: RunOptions): Promise<Said>;
  /** A clone of the working tree, without what git ignores, in a directory of that user. */
  clone(user: 'root' | typeof USER.name, dir: string): void;
  /** A copy of one directory of this tree. */
  copy(user: 'root' | typeof USER.name, name: string, dir: string): void;
  stop(): Promise<void>;
}

export interface MachineOptions {
  /** Debian 12's own Node, without npm, instead of the one that runs the test. */
  readonly oldNode?: boolean;
  /** No network at all. */
  readonly offline?: boolean;
  /** sh(1) text that root runs outside of it when everything is mounted; `$root` is its root. */
  readonly prepare?: string;
}

/** Its first process: builds the machine from `$base` and the contents of `$dir`, then reaps orphans. */
const INIT = `set -eu
dir=$1 base=$2 node=$3 npm=$4 cache=$5
root=$dir/root
mkdir -p "$dir/upper" "$dir/work" "$root"
layers() { mount -t overlay overlay -o "lowerdir=$base,upperdir=$dir/upper,workdir=$dir/work" "$root"; }
# A machine that lies on an overlay itself cannot have another on it.
layers 2>/dev/null || { mount -t tmpfs none "$dir"; mkdir -p "$dir/upper" "$dir/work" "$root"; layers; }
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount -t sysfs -o ro sysfs "$root/sys" 2>/dev/null || :
cp -L /etc/resolv.conf "$root/etc/resolv.conf"
echo '127.0.0.1 localhost' >"$root/etc/hosts"
local=$root/usr/local
if [ -n "$node" ]; then
  mkdir -p "$local/lib/node_modules/npm" "$root/npm-cache"
  : >"$local/bin/node"
  mount --bind "$node" "$local/bin/node"
  mount --bind "$npm" "$local/lib/node_modules/npm"
  ln -s ../lib/node_modules/npm/bin/npm-cli.js "$local/bin/npm"
  ln -s ../lib/node_modules/npm/bin/npx-cli.js "$local/bin/npx"
  mount --bind "$cache" "$root/npm-cache"
fi
[ -z "\${NODE_EXTRA_CA_CERTS-}" ] || cp -L "$NODE_EXTRA_CA_CERTS" "$root/etc/more-ca.crt"
eval "$PREPARE"
exec chroot "$root" /bin/sh -c 'echo ready; while :; do sleep 86400 & wait; done'`;

export async function startMachine(options: MachineOptions = {}): Promise<BareMachine> {
  const dir = mkdtempSync('/tmp/gbare-');
  chmodSync(dir, 0o755);
  const own = options.oldNode
    ? [bareRootWithOldNode(), '', '', '']
    : [bareRoot(), process.execPath, npmPlace(), npmCache()];
  const words = ['--mount', '--pid', '--fork', '--kill-child', '--propagation', 'private'];
  if (options.offline) words.push('--net');
  const init = spawn('setpriv', ['--pdeathsig', 'KILL', 'unshare', ...words, 'sh', '-c', INIT, 'sh', dir, ...own], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...downloadEnv(), PREPARE: options.prepare ?? '' },
  });
  const gone = new Promise<void>((done) => init.once('close', () => done()));
  await ready(init);
  const first = await firstProcess(init);
  return {
    root: `/proc/${first}/root`,
    run: (user, script, how = {}) => run({ first, dir }, user, script, how, options.offline === true),
    clone: (user, to) => unpack({ first, dir }, user, ourFiles(), to),
    copy: (user, name, to) => unpack({ first, dir }, user, [name], to),
    stop: async () => {
      init.kill('SIGKILL');
      await gone;
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

function ready(init: ChildProcess): Promise<void> {
  return new Promise((done, failed) => {
    init.stdout?.once('data', () => done());
    init.once('close', (status) => failed(new Error(`the bare machine ended (${status})`)));
  });
}

interface Place {
  readonly first: number;
  readonly dir: string;
}

/** The outside process id of its process 1. */
async function firstProcess(init: ChildProcess): Promise<number> {
  const children = `/proc/${init.pid}/task/${init.pid}/children`;
  await until(() => readFileSync(children, 'utf8').trim() !== '');
  return Number(readFileSync(children, 'utf8'));
}

/** The arguments to put before a command that is to run inside. */
function inside({ first, dir }: Place, user: string): string[] {
  const chroot = ['chroot', `--userspec=${user}:${user}`, join(dir, 'root')];
  return ['nsenter', `--target=${first}`, '--mount', '--pid', '--net', ...chroot];
}

const homeOf = (user: string) => (user === 'root' ? '/root' : USER.home);

function run(place: Place, user: string, script: string, how: RunOptions, offline: boolean): Promise<Said> {
  const env: Readonly<Record<string, string>> = {
    PATH: `${homeOf(user)}/.local/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin`,
    HOME: homeOf(user),
    USER: user,
    LOGNAME: user,
    LANG: 'C.UTF-8',
    npm_config_cache: `/npm-cache/${user}`,
    npm_config_prefer_offline: 'true',
    npm_config_update_notifier: 'false',
    ...registry(),
    ...(offline ? { npm_config_offline: 'true' } : {}),
    ...(extraCertificates() ? { NODE_EXTRA_CA_CERTS: '/etc/more-ca.crt' } : {}),
    ...how.env,
  };
  const sh = ['sh', '-c', 'cd "$1" && shift && exec "$@"', 'sh', how.cwd ?? env['HOME'] ?? '/', 'sh', '-c', script];
  const [program = '', ...words] = inside(place, user);
  const pairs = Object.entries(env).map(([name, value]) => `${name}=${value}`);
  const child = spawn(program, [...words, 'env', '-i', ...pairs, ...sh], { stdio: ['ignore', 'pipe', 'pipe'] });
  let text = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (more: string) => {
      text += more;
    });
  return new Promise((done, failed) => {
    child.once('error', failed);
    // It must not wait for a daemon that holds the pipes open.
    child.once('exit', (exit) => setTimeout(() => done({ exit, text }), 100));
  });
}

function ourFiles(): string[] {
  const files = execFileSync('git', ['ls-files', '-coz', '--exclude-standard', '--deduplicate'], { cwd: TREE });
  const names = files.toString().split('\0');
  return names.filter((name) => name !== '' && existsSync(join(TREE, name)));
}

function unpack(place: Place, user: string, names: readonly string[], to: string): void {
  const packed = execFileSync('tar', ['-c', '--null', '-T', '-'], {
    cwd: TREE,
    input: names.join('\0'),
    maxBuffer: 1 << 28,
  });
  const [program = '', ...words] = inside(place, user);
  const sh = ['sh', '-c', 'umask 022; mkdir -p "$1" && tar -x --no-same-owner -C "$1"', 'sh', to];
  execFileSync(program, [...words, ...sh], { input: packed, stdio: ['pipe', 'ignore', 'inherit'] });
}

/** npm's own directory, wherever Node was installed. */
function npmPlace(): string {
  const paths = (process.env['PATH'] ?? '').split(delimiter).map((dir) => join(dir, 'npm'));
  const npm = paths.find((path) => existsSync(path));
  if (npm === undefined) throw new Error('npm is not on PATH');
  return dirname(dirname(realpathSync(npm)));
}

/** Kept for later runs: what npm downloaded for root and for the user. */
function npmCache(): string {
  const cache = placeOf('bare-npm');
  mkdirSync(cache, { recursive: true });
  chmodSync(cache, 0o1777);
  return cache;
}

let asked: Readonly<Record<string, string>> | undefined;
/** The registry that this machine uses. */
function registry(): Readonly<Record<string, string>> {
  asked ??= {
    npm_config_registry: execFileSync('npm', ['config', 'get', 'registry'], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    }).trim(),
  };
  return asked;
}
