import { existsSync, lstatSync, statSync, truncateSync } from 'node:fs';
import { createConnection } from 'node:net';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { GryphusError } from '../errors.ts';
import { daemonEnvironment } from '../util/environments.ts';
import { flushDir, writeWhole } from '../util/private-file.ts';
import { spawnApart } from '../util/spawn-apart.ts';
import { warn } from '../util/warn.ts';
import { checkServerFiles } from './redis-check.ts';
import { FileCover } from './redis-cover.ts';
import { diskIsFull, latestLog, refuseFullDisk } from './redis-disk.ts';
import { damagedQueue, refuseLaterFile } from './redis-damage.ts';
import { serverProcess } from './redis-files.ts';
import { findServer } from './redis-find.ts';
import { provideRedis } from './redis-provide.ts';
import { noteRepairs, repairText } from './redis-repairs.ts';
import { attended, endsWithUs } from './redis-unattended.ts';
import { isRecorded, prepareServerPlace, type ServerOptions, type ServerPlace, serverPlace } from './redis-place.ts';

/** Limit for starting, milliseconds; loading a large append-only file takes longer, and is waited for without limit. */
const START_MS = 15_000;
/** How long to wait for the holder of the lock, milliseconds; a healthy one answers sooner. */
const LOCKED_MS = 5_000;
const LOG_LIMIT = 1_000_000;
/** Exit statuses of the shell that takes the lock: another process has it, and the file system has no locks (NFS without its daemon). */
const LOCKED = 75;
const NO_LOCKS = 76;

/**
 * Takes the lock, which the kernel releases however the server dies, then becomes the server. `$0` is the lock file,
 * `$@` the server.
 */
const LOCK_AND_RUN = `umask 077; exec 9>>"$0" || exit 73
if command -v flock >/dev/null 2>&1; then
  flock -n 9
  case $? in 0) ;; 1) exit ${LOCKED} ;; *) exit ${NO_LOCKS} ;; esac
fi
exec "$@"`;

/**
 * Starts the private server of a state directory, unless it is running; whether it did. It ends with this process until `attended`. With
 * `signal`, it is no longer wanted: one that is being started is ended, and this rejects.
 */
export async function ensureServer(options: ServerOptions, signal?: AbortSignal): Promise<boolean> {
  const known = serverPlace(options);
  // A server of a removed state directory would not keep the data.
  if (!isRecorded(options) && isOurs(known.socket)) await say(known.socket, 'SHUTDOWN NOSAVE');
  const greeting = await greet(known.socket);
  if (greeting === 'ready') return false;
  if (greeting === 'loading' && (await untilReady(known, Date.now(), signal)) === 'ready') return false;
  const program = findServer(options) ?? (await provideRedis(options));
  refuseFullDisk(options.stateDir);
  refuseLaterFile(program, known);
  const place = prepareServerPlace(options);
  if (runningPid(place) === undefined) putBackBytes(options.stateDir, place);
  const deadline = Date.now() + START_MS;
  const patience = Date.now() + LOCKED_MS;
  for (;;) {
    signal?.throwIfAborted();
    const ended = await launch(program, place, deadline, signal);
    if (ended === 'ready') return true;
    signal?.throwIfAborted();
    // Another start is in progress, or the previous server is exiting and releases its lock soon.
    if (ended === LOCKED && (Date.now() < patience || (await greet(place.socket)) === 'loading')) await sleep(50);
    else throw failedStart(place, ended);
  }
}

/** Whether the socket's directory is ours. In /tmp, another user could have made it first, with a server of their own. */
function isOurs(socket: string): boolean {
  const found = lstatSync(dirname(socket), { throwIfNoEntry: false });
  return found?.isDirectory() === true && found.uid === (process.getuid?.() ?? found.uid);
}

/** Stops the server after it has written everything, and waits until it is gone. */
export async function stopServer(options: ServerOptions): Promise<boolean> {
  const place = serverPlace(options);
  const pid = runningPid(place);
  const ours = isOurs(place.socket);
  const silent = ours && (await greet(place.socket)) === 'silent';
  const heard = !ours || silent ? undefined : await say(place.socket, 'SHUTDOWN NOSAVE');
  if (heard === undefined) {
    if (pid === undefined) return false;
    // Its socket was removed, or it hangs; all that it acknowledged is on disk.
    process.kill(pid, silent ? 'SIGKILL' : 'SIGTERM');
  }
  const deadline = Date.now() + START_MS;
  while (runningPid(place) !== undefined) {
    if (Date.now() > deadline) {
      throw new GryphusError('timeout', `Redis (process ${pid}) does not stop.`, {
        suggestions: [`See ${place.log}.`],
      });
    }
    await sleep(20);
  }
  // What is not summed is not protected, no more.
  await new FileCover(place.dir).rest(() => runningPid(place) !== undefined).catch(() => undefined);
  return true;
}

function putBackBytes(stateDir: string, { dir }: ServerPlace): void {
  const now = Date.now();
  const repairs = checkServerFiles(dir).map((one) => ({ ...one, at: now, said: false }));
  if (repairs.length === 0) return;
  for (const one of repairs) warn(`${repairText(one)}.`);
  noteRepairs(stateDir, repairs);
}

/** At the end of a process that can wait for nothing: only sends the signal. */
export function tellServer(options: ServerOptions): void {
  const pid = runningPid(serverPlace(options));
  if (pid !== undefined) process.kill(pid, 'SIGTERM');
}

/** How long recently closed connections may still be counted, milliseconds. */
const LEAVING_MS = 1000;

/**
 * Like `stopServer`, unless somebody is connected. Returns false if it keeps running for that reason, or was not
 * running.
 */
export async function stopUnusedServer(options: ServerOptions): Promise<boolean> {
  const { socket } = serverPlace(options);
  for (const deadline = Date.now() + LEAVING_MS; ; ) {
    const clients = await say(socket, 'INFO clients');
    if (clients === undefined) return false;
    // One is our own connection.
    if (/^connected_clients:1\r?$/m.test(clients)) return stopServer(options);
    if (Date.now() > deadline) return false;
    await sleep(50);
  }
}

/** Starts the server, and waits until it answers ('ready') or exits (its exit status). */
async function launch(
  program: string,
  place: ServerPlace,
  deadline: number,
  signal?: AbortSignal,
): Promise<'ready' | number> {
  if (existsSync(place.log) && statSync(place.log).size > LOG_LIMIT) truncateSync(place.log);
  writeWhole(place.conf, configuration(place));
  const child = spawnApart('/bin/sh', ['-c', LOCK_AND_RUN, place.lock, program, place.conf], {
    stdio: 'ignore',
    cwd: place.dir,
    env: daemonEnvironment(process.env),
  });
  const ended = new Promise<number>((resolve) => {
    child.once('error', () => resolve(127));
    child.once('exit', (code) => resolve(code ?? 128));
  });
  child.unref();
  endsWithUs(place.socket, () => child.kill('SIGTERM'));
  const stop = new AbortController();
  const unwanted = () => child.kill('SIGTERM');
  signal?.addEventListener('abort', unwanted, { once: true });
  try {
    const how = await Promise.race([ended, untilReady(place, deadline, stop.signal)]);
    if (how !== 'ready') attended(place.socket);
    // It has made the directory of its files in there.
    else flushDir(place.dir);
    return how;
  } finally {
    stop.abort();
    signal?.removeEventListener('abort', unwanted);
  }
}

async function untilReady(place: ServerPlace, deadline: number, stop?: AbortSignal): Promise<'ready' | number> {
  const over = () => stop?.aborted === true;
  for (let wait = 5; !over(); wait = Math.min(wait * 2, 100)) {
    const greeting = await greet(place.socket);
    if (greeting === 'ready') return 'ready';
    if (greeting !== 'loading' && Date.now() > deadline) break;
    await sleep(wait);
  }
  return -1;
}

async function greet(socket: string, patienceMs?: number): Promise<'ready' | 'loading' | 'silent' | 'absent'> {
  const answer = await say(socket, 'PING', patienceMs);
  if (answer === undefined) return 'absent';
  if (answer.startsWith('+PONG')) return 'ready';
  return answer.startsWith('-LOADING') ? 'loading' : 'silent';
}

/** What is known of it after `patienceMs`. */
export function serverState(options: ServerOptions, patienceMs?: number): ReturnType<typeof greet> {
  return isRecorded(options) ? greet(serverPlace(options).socket, patienceMs) : Promise.resolve('absent');
}

/** How long a server that takes connections may take to answer, on a machine whose disk is busy; milliseconds. */
export const SLOW_MS = 10_000;

/**
 * The first answer to an inline command; '' if the server closed the connection instead, `undefined` if nothing
 * listens.
 */
function say(socket: string, command: string, patienceMs = 2000): Promise<string | undefined> {
  return new Promise((resolve) => {
    let open = false;
    const connection = createConnection(socket);
    connection.setTimeout(patienceMs, () => connection.destroy());
    connection.once('connect', () => {
      open = true;
      connection.write(`${command}\r\n`);
    });
    connection.once('data', (data) => {
      resolve(String(data));
      connection.destroy();
    });
    connection.once('error', () => undefined);
    connection.once('close', () => resolve(open ? '' : undefined));
  });
}

function configuration(place: ServerPlace): string {
  const lines: readonly (readonly [string, ...string[]])[] = [
    ['port', '0'],
    ['unixsocket', place.socket],
    ['unixsocketperm', '700'],
    ['dir', place.dir],
    ['pidfile', place.pidFile],
    ['logfile', place.log],
    ['daemonize', 'no'],
    ['save', ''],
    ['appendonly', 'yes'],
    ['appendfsync', 'always'],
    ['aof-load-truncated', 'yes'],
    ['maxmemory-policy', 'noeviction'],
  ];
  return lines.map(([name, ...values]) => `${name} ${values.map(confQuote).join(' ')}\n`).join('');
}

/** A quoted word in redis.conf, for any bytes. */
function confQuote(text: string): string {
  const bytes = [...Buffer.from(text)];
  return `"${bytes.map((b) => (b < 0x20 || b > 0x7e || b === 0x22 || b === 0x5c ? `\\x${b.toString(16).padStart(2, '0')}` : String.fromCharCode(b))).join('')}"`;
}

function runningPid({ dir, pidFile }: ServerPlace): number | undefined {
  return serverProcess(dir, pidFile)?.pid;
}

function failedStart(place: ServerPlace, ended: number): GryphusError {
  if (diskIsFull(join(place.dir, '..'))) {
    return new GryphusError('disk-full', `Redis cannot write in ${place.dir}: no space left on the disk.`, {
      suggestions: ['Free some space there; nothing that was acknowledged is lost.'],
    });
  }
  if (ended === LOCKED) {
    return new GryphusError('queue-unavailable', `Another Redis holds ${place.lock} and does not answer.`, {
      suggestions: [`See ${place.log}; \`gryphus down\` stops it.`],
    });
  }
  if (ended === NO_LOCKS) {
    return new GryphusError(
      'queue-unavailable',
      `The file system of ${place.lock} has no locks, which the queue needs.`,
      {
        suggestions: [
          'On NFS: mount it with locks (nfs(5): nolock, lockd), or version 4 of NFS.',
          'Or keep Gryphus on another disk: set GRYPHUS_HOME.',
        ],
      },
    );
  }
  const damage = damagedQueue(place);
  if (damage) return damage;
  const message = latestLog(place.log).trim().split('\n').at(-1) ?? '';
  return new GryphusError(
    'queue-unavailable',
    `Redis does not start${ended > 0 ? ` (exit status ${ended})` : ''}${message ? `: ${message}` : '.'}`,
    { suggestions: [`See ${place.log}.`] },
  );
}
