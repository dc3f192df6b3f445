import { accessSync, constants, existsSync, readdirSync, statSync } from 'node:fs';
import { statfs } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Paths } from '../config/paths.ts';
import { loadSettings, type Settings } from '../config/settings.ts';
import { inAd, readString } from '../job/values.ts';
import { findCheckpointHelper } from '../pool/host/checkpoint-helper.ts';
import { findRemoteIo } from '../pool/host/remote-io-helper.ts';
import { howToInstall } from '../queue/redis-advice.ts';
import { findServer } from '../queue/redis-find.ts';
import { type CheckStep, failedStep } from '../site-check/steps.ts';
import { runQuietly } from '../util/run-quietly.ts';
import { ownUser } from '../util/own-user.ts';

const GIB = 2 ** 30;
/** Below this, the queue's log soon fills the disk. */
const LEAST_FREE = GIB;
/** NFS (statfs(2)); an append-only file with fsync is slow there, and not always safe. */
const NFS = 0x6969;
const COMMAND_MS = 10_000;

/** Checks this machine for what the agent needs, and yields each result with its remedy. Starts and changes nothing. */
export async function* examine(paths: Paths): AsyncGenerator<CheckStep> {
  yield { step: 'node', ok: true, message: `${process.version} (${process.execPath})` };
  let settings: Settings;
  try {
    settings = await loadSettings(paths);
    yield { step: 'configuration', ok: true, message: paths.configFile };
  } catch (thrown) {
    yield failedStep('configuration', thrown);
    return;
  }
  yield redis(paths, settings);
  yield state(paths);
  yield await disk(paths);
  yield await ssh();
  yield sshFiles();
  yield await clock();
  yield mail(settings);
  yield checkpoints();
  yield remoteIo();
  yield await linger();
}

function redis({ stateDir }: Paths, settings: Settings): CheckStep {
  const step = 'redis';
  if ((process.env['REDIS_URL'] || settings['redis.url']) !== undefined)
    return { step, ok: true, message: 'a server of your own is configured' };
  try {
    const server = findServer({ server: settings['redis.server'], stateDir });
    if (server !== undefined) return { step, ok: true, message: server };
  } catch (thrown) {
    return failedStep(step, thrown);
  }
  if (existsSync('/usr/bin/apt-get'))
    return { step, ok: true, message: 'none is installed; the first command fetches one for this agent (apt)' };
  return { step, ok: false, message: 'there is no redis-server in the PATH', remedy: howToInstall() };
}

/** The state directory, or the nearest one above it that exists. */
function place({ stateDir }: Paths): string {
  let dir = stateDir;
  while (!existsSync(dir) && dirname(dir) !== dir) dir = dirname(dir);
  return dir;
}

function state(paths: Paths): CheckStep {
  const step = 'state directory';
  const dir = place(paths);
  try {
    accessSync(dir, constants.W_OK | constants.X_OK);
  } catch {
    return {
      step,
      ok: false,
      message: `${dir} cannot be written to`,
      remedy: 'Set GRYPHUS_HOME to another directory.',
    };
  }
  const { uid, mode } = statSync(dir);
  if (dir === paths.stateDir && (uid !== process.getuid?.() || (mode & 0o077) !== 0))
    return { step, ok: false, message: `${dir} is open to others`, remedy: `chmod 700 ${dir}` };
  return { step, ok: true, message: paths.stateDir };
}

async function disk(paths: Paths): Promise<CheckStep> {
  const step = 'disk';
  const { bavail, bsize, files, ffree, type } = await statfs(place(paths));
  const free = bavail * bsize;
  const message = `${(free / GIB).toFixed(1)} GB free for the state directory`;
  if (free < LEAST_FREE)
    return { step, ok: false, message, remedy: 'Free some space, or set GRYPHUS_HOME to another disk.' };
  if (files > 0 && ffree < files / 100)
    return { step, ok: false, message: `${ffree} of ${files} inodes are free`, remedy: 'Remove files there.' };
  if (type === NFS)
    return {
      step,
      ok: false,
      message: `${message}, on NFS`,
      remedy: 'Set GRYPHUS_HOME to a local disk: the queue writes to it all the time.',
    };
  return { step, ok: true, message };
}

async function ssh(): Promise<CheckStep> {
  const end = await runQuietly(['ssh', '-G', 'localhost'], { timeoutMs: COMMAND_MS });
  if (end.how === 'exited' && end.code === 0)
    return { step: 'ssh', ok: true, message: 'OpenSSH, and its configuration can be read' };
  return end.how === 'not-started'
    ? {
        step: 'ssh',
        ok: false,
        message: 'the command ssh is not in the PATH',
        remedy: 'Install OpenSSH (Debian: openssh-client).',
      }
    : { step: 'ssh', ok: false, message: 'its configuration cannot be read', remedy: 'See `ssh -G localhost`.' };
}

/** OpenSSH refuses keys that others can read. */
function sshFiles(): CheckStep {
  const step = 'ssh keys';
  const dir = join(homedir(), '.ssh');
  const names = existsSync(dir) ? readdirSync(dir).filter((name) => name.endsWith('.pub')) : [];
  const keys = names.map((name) => join(dir, name.slice(0, -'.pub'.length))).filter((path) => existsSync(path));
  const open = keys.find((path) => (statSync(path).mode & 0o077) !== 0);
  if (open !== undefined) return { step, ok: false, message: `${open} is open to others`, remedy: `chmod 600 ${open}` };
  const agent = process.env['SSH_AUTH_SOCK'] === undefined ? '' : ', and an agent';
  return { step, ok: true, message: `${keys.length === 0 ? 'none' : keys.length} in ${dir}${agent}` };
}

/** A wrong clock makes certificates and proxies invalid, and the times of the user log wrong. */
async function clock(): Promise<CheckStep> {
  const step = 'clock';
  const argv = ['timedatectl', 'show', '-p', 'NTPSynchronized', '--value'] as const;
  const end = await runQuietly([...argv], { timeoutMs: COMMAND_MS, keepStdout: 100 });
  const said = end.how === 'exited' && end.code === 0 ? end.stdout.toString().trim() : '';
  if (said === 'no')
    return { step, ok: false, message: 'it is not synchronized', remedy: 'timedatectl set-ntp true   # as root' };
  return {
    step,
    ok: true,
    message: said === 'yes' ? 'it is synchronized' : 'this system does not say whether it is synchronized',
  };
}

/** Whether jobs in the pool of this machine can be checkpointed (`want_checkpoint`). They need not be. */
function checkpoints(): CheckStep {
  const native = fileURLToPath(new URL(`../native/${process.arch}`, import.meta.url));
  const { program, platform, reason } = findCheckpointHelper(native);
  const message = program === undefined ? `not on this machine: ${reason}` : `jobs can be checkpointed (${platform})`;
  return { step: 'checkpoints', ok: true, message };
}

/** Whether jobs in the pool of this machine reach files at home (`want_remote_io`). They need not. */
function remoteIo(): CheckStep {
  const { program, ad } = findRemoteIo(fileURLToPath(new URL(`../native/${process.arch}`, import.meta.url)));
  const why = readString(inAd(ad), 'HasRemoteIOReason') ?? '';
  const message = program === undefined ? `not on this machine: ${why}` : 'jobs can reach files at home';
  return { step: 'remote I/O', ok: true, message };
}

function mail(settings: Settings): CheckStep {
  const step = 'mail';
  const to = settings['notify.email'];
  if (to === undefined) return { step, ok: true, message: 'no address is configured (gryphus config notify.email)' };
  const program = settings['notify.sendmail'];
  if (settings['notify.method'] === 'sendmail' && !existsSync(program)) {
    const remedy = 'Install a mail server, or use another one: gryphus config notify.method smtp, notify.smtp.host.';
    return { step, ok: false, message: `${program} does not exist`, remedy };
  }
  if (settings['notify.method'] === 'smtp' && settings['notify.smtp.host'] === undefined)
    return { step, ok: false, message: 'notify.smtp.host is not set', remedy: 'gryphus config notify.smtp.host HOST' };
  return { step, ok: true, message: `goes to ${to} by ${settings['notify.method']}; try it: gryphus alarm test` };
}

/** Without lingering, systemd does not start a user's services at boot, and may end processes at log-out. */
async function linger(): Promise<CheckStep> {
  const step = 'systemd';
  if (!existsSync('/run/systemd/system')) return { step, ok: true, message: 'it does not run here' };
  const { username } = ownUser();
  const argv = ['loginctl', 'show-user', username, '-p', 'Linger', '--value'] as const;
  const end = await runQuietly([...argv], { timeoutMs: COMMAND_MS, keepStdout: 100 });
  if (end.how === 'exited' && end.stdout.toString().trim() === 'yes')
    return { step, ok: true, message: 'your services run without a log-in' };
  const remedy = `loginctl enable-linger ${username}   # then: gryphus up --systemd`;
  return { step, ok: false, message: 'your services end when you log out, and do not start at boot', remedy };
}
