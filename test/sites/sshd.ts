import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { shellQuote } from '../../src/util/shell-quote.ts';
import { runsAs, type User } from './ordinary-user.ts';
import { answers, freePort } from './ports.ts';
import { descendants } from './ssh-processes.ts';
import { makeKey, publicKeyOf } from './ssh-keys.ts';

const SSHD = '/usr/sbin/sshd';
const SFTP_SERVER = '/usr/lib/openssh/sftp-server';

export interface SshdOptions {
  /** Who logs in; default: the user who runs the test. Others need an sshd started by root. */
  readonly user?: string;
  /** The remote `$HOME` and working directory; default: an empty scratch directory. */
  readonly home?: string;
  /** The shell that reads the client's command, default the user's own. */
  readonly shell?: string;
  /** Environment of every remote command, for example a PATH with a private batch system. */
  readonly env?: Readonly<Record<string, string>>;
  readonly maxSessions?: number;
  /** Who runs what a client requests, if root runs the test and logs in. */
  readonly as?: User | undefined;
  /** As in sshd_config, for example `1` (the last value wins there). */
  readonly maxStartups?: string;
  /** `false`: no sftp subsystem. */
  readonly sftp?: boolean;
  /** Lines put before ours in sshd_config (the first value wins there). */
  readonly config?: readonly string[];
  /** The server's program; default: the system's sshd. */
  readonly program?: string;
}

/** A private sshd on loopback. Nothing in the user's real home is read or written on either side. */
export interface Sshd {
  readonly host: string;
  readonly port: number;
  readonly user: string;
  /** `ssh://user@127.0.0.1:port` */
  readonly url: string;
  readonly keyFile: string;
  readonly knownHostsFile: string;
  /** A client configuration whose `Host site` is this server (`ssh -F`). */
  readonly sshConfigFile: string;
  /**
   * A home directory for a client: with `HOME` set to it, the default key, known_hosts and config let
   * `ssh:user@127.0.0.1:port` in.
   */
  readonly clientHome: string;
  /** The remote home directory. */
  readonly home: string;
  /** Where sshd's own files are: sshd_config, host keys, authorized_keys, sshd.log. */
  readonly configDir: string;
  log(): string;
  /** The front machine dies: server and sessions are killed; commands that they started live on. */
  kill(): void;
  /** The same machine is back on the same port, optionally with another host key. */
  restart(options?: { newHostKey?: boolean }): Promise<void>;
  /** Every connection dies; the server stays. */
  killSessions(): void;
  /** The network is cut: nothing answers, nothing is closed. `thaw` ends it. */
  freeze(): void;
  thaw(): void;
  stop(): Promise<void>;
}

/** Why a private sshd cannot run here, or undefined. */
export function sshdMissing(): string | undefined {
  return existsSync(SSHD) ? undefined : `${SSHD} is not installed (Debian: openssh-server)`;
}

/** A TCP port of 127.0.0.1 that was free a moment ago. */
export async function startSshd(options: SshdOptions = {}): Promise<Sshd> {
  const missing = sshdMissing();
  if (missing !== undefined) throw new Error(missing);
  const dir = mkdtempSync(join(tmpdir(), 'gsd-'));
  const user = options.user ?? userInfo().username;
  const port = await freePort();
  const home = options.home ?? join(dir, 'home');
  const clientHome = join(dir, 'client');
  mkdirSync(home, { recursive: true });
  mkdirSync(join(clientHome, '.ssh'), { recursive: true, mode: 0o700 });
  // The wrapper and authorized_keys are read by the user who logs in.
  if (process.getuid?.() === 0) {
    mkdirSync('/run/sshd', { recursive: true });
    execFileSync('chmod', ['711', dir]);
    const owner = options.as?.name ?? user;
    if (options.home === undefined && owner !== userInfo().username) execFileSync('chown', [owner, home]);
  }

  let hostKey = makeKey(dir, 'host_ed25519');
  const keyFile = makeKey(join(clientHome, '.ssh'), 'id_ed25519');
  writeFileSync(join(dir, 'authorized_keys'), readFileSync(`${keyFile}.pub`));
  const wrapper = join(dir, 'login');
  writeFileSync(wrapper, loginWrapper(options), { mode: 0o755 });
  const configFile = join(dir, 'sshd_config');
  writeFileSync(configFile, sshdConfig({ dir, port, home, wrapper }, options));
  const knownHostsFile = join(clientHome, '.ssh', 'known_hosts');
  writeFileSync(knownHostsFile, `[127.0.0.1]:${port} ${publicKeyOf(hostKey)}\n`, { mode: 0o600 });
  const sshConfigFile = join(clientHome, '.ssh', 'config');
  writeFileSync(sshConfigFile, clientConfig({ user, port, keyFile, knownHostsFile }));

  let server: ChildProcess | undefined;
  const logFile = join(dir, 'sshd.log');
  const log = (): string => (existsSync(logFile) ? readFileSync(logFile, 'utf8') : '');
  const start = async (): Promise<void> => {
    const child = spawn(options.program ?? SSHD, ['-D', '-f', configFile, '-h', hostKey, '-E', logFile], {
      stdio: 'ignore',
    });
    server = child;
    await untilListening(port, () => {
      if (child.exitCode !== null) throw new Error(`sshd ended at once:\n${log()}`);
    });
  };
  const sessions = (): number[] =>
    server?.pid === undefined ? [] : descendants(server.pid, (name) => name.startsWith('sshd'));
  const signal = (pids: readonly number[], name: NodeJS.Signals): void => {
    for (const pid of pids) {
      try {
        process.kill(pid, name);
      } catch {
        // It exited by itself between the check and the signal.
      }
    }
  };
  const all = (): number[] => [...(server?.pid === undefined ? [] : [server.pid]), ...sessions()];
  const kill = (): void => {
    const pids = all();
    server = undefined;
    signal(pids, 'SIGKILL');
  };
  await start();

  return {
    host: '127.0.0.1',
    port,
    user,
    url: `ssh://${user}@127.0.0.1:${port}`,
    keyFile,
    knownHostsFile,
    sshConfigFile,
    clientHome,
    home,
    configDir: dir,
    log,
    kill,
    async restart(how = {}) {
      kill();
      if (how.newHostKey) hostKey = makeKey(dir, `host_${Date.now()}`);
      await untilClosed(port);
      await start();
    },
    killSessions: () => signal(sessions(), 'SIGKILL'),
    freeze: () => signal(all(), 'SIGSTOP'),
    thaw: () => signal(all(), 'SIGCONT'),
    async stop() {
      kill();
      await untilClosed(port);
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

/**
 * What sshd starts in place of the client's command: it changes to the scratch home (sshd itself takes the home only
 * from /etc/passwd) and passes the command to the shell as sshd would.
 */
function loginWrapper(options: SshdOptions): string {
  const exports = Object.entries(options.env ?? {}).map(([name, value]) => `export ${name}=${shellQuote(value)}\n`);
  const shell = options.shell === undefined ? '' : `SHELL=${shellQuote(options.shell)}; export SHELL\n`;
  const become = options.as === undefined ? '' : runsAs(options.as).join(' ');
  return `#!/bin/sh
cd "$HOME" || exit 1
${exports.join('')}${shell}case \${SSH_ORIGINAL_COMMAND-} in
*sftp-server) exec ${become} ${SFTP_SERVER} ;;
'') exec ${become} "$SHELL" ;;
*) exec ${become} "$SHELL" -c "$SSH_ORIGINAL_COMMAND" ;;
esac
`;
}

function sshdConfig(at: { dir: string; port: number; home: string; wrapper: string }, options: SshdOptions): string {
  return `${(options.config ?? []).join('\n')}
ListenAddress 127.0.0.1
Port ${at.port}
PidFile none
AuthorizedKeysFile ${at.dir}/authorized_keys
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
StrictModes no
UseDNS no
PrintMotd no
PrintLastLog no
LogLevel VERBOSE
MaxSessions ${options.maxSessions ?? 10}
MaxStartups ${options.maxStartups ?? '100:30:200'}
LoginGraceTime 20
ForceCommand ${at.wrapper}
SetEnv "HOME=${at.home}"
${options.sftp === false ? '' : `Subsystem sftp ${SFTP_SERVER}`}
`;
}

function clientConfig(at: { user: string; port: number; keyFile: string; knownHostsFile: string }): string {
  return `Host site
  HostName 127.0.0.1
  Port ${at.port}
  User ${at.user}
Host *
  IdentityFile ${at.keyFile}
  IdentitiesOnly yes
  UserKnownHostsFile ${at.knownHostsFile}
  GlobalKnownHostsFile /dev/null
  StrictHostKeyChecking yes
`;
}

async function untilListening(port: number, check: () => void): Promise<void> {
  const deadline = Date.now() + 10_000;
  while (!(await answers(port))) {
    check();
    if (Date.now() > deadline) throw new Error(`sshd does not answer on port ${port}`);
    await delay(10);
  }
}

async function untilClosed(port: number): Promise<void> {
  const deadline = Date.now() + 10_000;
  while (await answers(port)) {
    if (Date.now() > deadline) throw new Error(`port ${port} is still open`);
    await delay(10);
  }
}
