import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Cable } from './cable.ts';
import { type GridCa, gridEnv, type Person } from './grid-ca.ts';
import { answers, ended, freePort, waitUntil } from './ports.ts';

export const GRAM_PROGRAMS = ['/usr/sbin/globus-gatekeeper', '/usr/sbin/globus-job-manager', '/usr/bin/globusrun'];

/** Which of these programs this machine lacks; printed once, when tests are skipped. */
export function missingPrograms(programs: readonly string[] = GRAM_PROGRAMS): readonly string[] {
  const missing = programs.filter((file) => !existsSync(file));
  if (missing.length > 0) process.stderr.write(`skipped: ${missing.join(', ')} not installed\n`);
  return missing;
}

export interface GatekeeperOptions {
  /** Contents of `services/NAME`, after `-conf FILE`; default: only `jobmanager-fork`. */
  readonly services?: Readonly<Record<string, string>>;
  readonly env?: Readonly<Record<string, string>>;
  /**
   * What the gatekeeper and all that it starts see at these paths, and no other process: path, directory that is there
   * instead.
   */
  readonly mounts?: Readonly<Record<string, string>>;
  /** The name to reach it by, if not `localhost`; job managers do not accept a bare address. */
  readonly name?: string;
  /** It and everything it starts run at the other end of this. */
  readonly cable?: Cable;
  /** Additional programs that run in the same view with the gatekeeper's environment, until it stops. */
  readonly beside?: readonly (readonly string[])[];
}

/** Whether this account may give processes a view of their own; printed once if it may not. */
export function mayMount(): boolean {
  const may = spawnSync('unshare', ['-m', 'true']).status === 0;
  if (!may) process.stderr.write('skipped: this account can make no mount namespace\n');
  return may;
}

/** The fork service without an event generator: the job manager polls every ten seconds. */
export const POLLING: GatekeeperOptions = { services: { 'jobmanager-fork': '-type fork' } };

export interface Gatekeeper {
  readonly port: number;
  /** `localhost:PORT`, or its name's. */
  readonly address: string;
  readonly host: Person;
  readonly dir: string;
  /** Where job managers keep the state of jobs that were not committed to an end. */
  readonly stateFiles: () => readonly string[];
  /** The job managers' processes. */
  readonly jobManagers: () => readonly number[];
  /** Kills (SIGKILL) and starts only the gatekeeper. */
  kill(): Promise<void>;
  start(): Promise<void>;
  log(): string;
  stop(): Promise<void>;
}

/** Debian's gatekeeper on loopback, run by the user who runs the tests, for these people. */
export async function startGatekeeper(
  ca: GridCa,
  people: readonly Person[],
  options: GatekeeperOptions = {},
): Promise<Gatekeeper> {
  const dir = mkdtempSync(join(tmpdir(), 'ggk-'));
  const [services, state, jobs, log] = ['services', 'state', 'jobs', 'log'].map((name) => join(dir, name)) as [
    string,
    string,
    string,
    string,
  ];
  for (const one of [services, state, jobs, log]) mkdirSync(one);
  const host = ca.host();
  const port = await freePort();
  const { username } = userInfo();
  writeFileSync(join(dir, 'grid-mapfile'), people.map(({ dn }) => `"${dn}" ${username}\n`).join(''));
  const conf = join(dir, 'jm.conf');
  writeFileSync(
    conf,
    [
      '-globus-gatekeeper-host localhost',
      `-globus-gatekeeper-port ${port}`,
      `-globus-gatekeeper-subject "${host.dn}"`,
      '-globus-host-cputype x86_64',
      '-globus-host-manufacturer unknown',
      '-globus-host-osname Linux',
      '-globus-host-osversion 6',
      '-globus-toolkit-version 6.2',
      `-log-pattern ${log}/gram_$(LOGNAME).log`,
      '-log-levels FATAL|ERROR|WARN|INFO|DEBUG',
      `-state-file-dir ${state}`,
      `-globus-job-dir ${jobs}`,
      `-x509-cert-dir ${ca.trust}`,
      '',
    ].join('\n'),
  );
  for (const [name, type] of Object.entries(options.services ?? POLLING.services ?? {})) {
    const line = `stderr_log,local_cred - /usr/sbin/globus-job-manager globus-job-manager -conf ${conf} ${type}\n`;
    writeFileSync(join(services, name), line);
  }
  symlinkSync('jobmanager-fork', join(services, 'jobmanager'));
  const reached = options.name ?? 'localhost';
  const env = gridEnv(ca, { GLOBUS_HOSTNAME: reached, HOME: userInfo().homedir, ...options.env });
  const trust = ['-x509_cert_dir', ca.trust, '-x509_user_cert', host.cert, '-x509_user_key', host.key];
  const words = ['-f', '-p', String(port), '-l', join(log, 'gatekeeper.log')];
  const files = ['-grid_services', services, '-gridmap', join(dir, 'grid-mapfile')];
  const viewed = (words: readonly string[]): ChildProcess => {
    const command = options.cable?.within(words) ?? words;
    const mounts = Object.entries(options.mounts ?? {}).map(([at, from]) => `mount --bind '${from}' '${at}' && `);
    const [program = '', ...rest] =
      mounts.length === 0 ? command : ['unshare', '-m', 'sh', '-c', `${mounts.join('')}exec "$0" "$@"`, ...command];
    const child = spawn(program, rest, { env, stdio: 'ignore', detached: true });
    child.unref();
    return child;
  };
  let pid: number | undefined;
  const start = async (): Promise<void> => {
    ({ pid } = viewed(['/usr/sbin/globus-gatekeeper', ...words, ...files, ...trust]));
    await waitUntil('the gatekeeper', () => answers(port, options.cable?.there));
  };
  const kill = async (): Promise<void> => {
    if (pid === undefined) return;
    const gone = pid;
    pid = undefined;
    process.kill(gone, 'SIGKILL');
    await waitUntil('the end of the gatekeeper', () => ended(gone));
  };
  const jobManagers = () => processesWith('globus-job-manager', conf);
  const beside = (options.beside ?? []).map(viewed);
  await start();
  return {
    port,
    address: `${reached}:${port}`,
    host,
    dir,
    stateFiles: () => filesBelow(state),
    jobManagers,
    kill,
    start,
    log: () =>
      filesBelow(log)
        .map((file) => readFileSync(file, 'utf8'))
        .join('\n'),
    async stop() {
      await kill();
      for (const one of beside) one.kill('SIGKILL');
      for (const one of jobManagers()) {
        process.kill(one, 'SIGKILL');
        await waitUntil('the end of a job manager', () => ended(one));
      }
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

/** Process ids of programs with this name and this word in their command line. */
export function processesWith(program: string, word: string): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        const words = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
        return (words[0] ?? '').endsWith(program) && words.includes(word);
      } catch {
        return false;
      }
    })
    .map(Number)
    .filter((pid) => pid > 1);
}

function filesBelow(dir: string): string[] {
  return readdirSync(dir, { recursive: true, withFileTypes: true })
    .filter((one) => one.isFile())
    .map((one) => join(one.parentPath, one.name));
}

/**
 * Runs Debian's own client tools with this proxy; returns their output. Our own servers in this process keep running.
 */
export async function globus(ca: GridCa, proxy: string, program: string, ...args: string[]): Promise<string> {
  const env = gridEnv(ca, { X509_USER_PROXY: proxy, GLOBUS_HOSTNAME: 'localhost' });
  return (await promisify(execFile)(program, args, { env, timeout: 60_000 })).stdout;
}
