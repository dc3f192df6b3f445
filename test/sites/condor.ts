import { execFileSync, spawn } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { htcondorPlace } from '../../scripts/htcondor.mjs';
import { condorConfig } from './condor-config.ts';
import { ordinaryUser, runsAs, type User } from './ordinary-user.ts';
import { freePort, waitUntil } from './ports.ts';
import { removeTree } from '../remove-tree.ts';

const USR = htcondorPlace();

export interface CondorOptions {
  readonly slots?: number;
  /** Lines added at the end of condor_config. */
  readonly config?: readonly string[];
  /** Its daemons run as root, as in a cluster's pool, and not as the user. */
  readonly ofRoot?: boolean;
}

/** A private HTCondor pool on loopback: all daemons, one partitionable slot. */
export interface Condor {
  /** What a program needs to talk to it. */
  readonly env: Readonly<Record<string, string>>;
  readonly dir: string;
  /** Whose jobs it runs; root's are not possible, so if root runs the tests, another user's. */
  readonly user: User | undefined;
  /** Runs a command of HTCondor's to completion, as that user; returns its standard output. Throws if it fails. */
  run(command: string, ...args: string[]): string;
  /** As the administrator of the pool. */
  admin(command: string, ...args: string[]): string;
  /** Makes its daemons read these lines in addition to those of its start, and no others. */
  configure(...lines: string[]): void;
  /** Its schedd and its startd do. */
  answers(): boolean;
  /** Process ids of a daemon (`schedd`, `startd`, `shadow`, …) of this pool. */
  daemons(name: string): readonly number[];
  stop(): Promise<void>;
}

/** For `describe.skipIf`: prints a line if HTCondor is missing; with CI=true it is an error instead. */
export function skipWithoutCondor(): boolean {
  if (existsSync(USR)) return false;
  const missing = 'HTCondor is not there: `npm test` gets it from Debian (scripts/htcondor.mjs)';
  if (process.env['CI'] === 'true') throw new Error(missing);
  process.stderr.write(`Tests with HTCondor are left out. ${missing}\n`);
  return true;
}

export async function startCondor(options: CondorOptions = {}): Promise<Condor> {
  // Socket paths must be short.
  const dir = mkdtempSync('/tmp/gco-');
  const user = ordinaryUser();
  const ofRoot = options.ofRoot === true && user !== undefined;
  for (const name of ['log', 'spool', 'execute', 'lock']) mkdirSync(join(dir, name));
  symlinkSync(USR, join(dir, 'usr'));
  const file = join(dir, 'condor_config');
  const own = options.config ?? [];
  const port = await freePort();
  const ids = ofRoot ? { ids: `${user.uid}.${user.gid}` } : {};
  const write = (...more: string[]): void =>
    writeFileSync(file, condorConfig({ dir, port, slots: options.slots ?? 8, config: [...own, ...more], ...ids }));
  write();
  if (user !== undefined) execFileSync('chown', ['-R', `${user.uid}:${user.gid}`, dir]);
  chmodSync(dir, 0o755);
  const env = {
    CONDOR_CONFIG: file,
    PATH: `${join(dir, 'usr/bin')}:${join(dir, 'usr/sbin')}:${process.env['PATH'] ?? ''}`,
  };
  const all = { ...process.env, ...env, HOME: dir };
  const run = (as: User | undefined, command: string, args: readonly string[]): string => {
    const [program, ...words] = runsAs(as);
    return execFileSync(program, [...words, command, ...args], {
      cwd: '/',
      encoding: 'utf8',
      env: all,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
  };
  const condor: Condor = {
    env,
    dir,
    user,
    run: (command, ...args) => run(user, command, args),
    admin: (command, ...args) => run(ofRoot ? undefined : user, command, args),
    configure(...lines) {
      write(...lines);
      condor.admin('condor_reconfig');
    },
    answers: () =>
      prints(() => condor.run('condor_status', '-af', 'Name'), 'slot1') &&
      prints(() => condor.run('condor_q', '-totals'), 'Total for'),
    daemons: (name) => processesOf(dir, `condor_${name}`),
    async stop() {
      kill(processesOf(dir, 'condor_master'));
      await waitUntil('the end of HTCondor', () => {
        const left = processesOf(dir);
        kill(left);
        return left.length === 0;
      });
      await removeTree(dir);
    },
  };
  const [program, ...words] = runsAs(ofRoot ? undefined : user);
  const master = spawn(program, [...words, 'condor_master', '-f'], { cwd: '/', env: all, stdio: 'ignore' });
  await waitUntil(
    'HTCondor',
    () => {
      if (master.exitCode !== null) throw new Error(`condor_master ended with ${master.exitCode}`);
      return condor.answers();
    },
    60_000,
  );
  return condor;
}

function prints(ask: () => string, message: string): boolean {
  try {
    return ask().includes(message);
  } catch {
    return false;
  }
}

/** Its daemons and jobs are recognized by their environment, which contains its directory. */
function processesOf(dir: string, name?: string): number[] {
  return readdirSync('/proc')
    .filter((pid) => /^\d+$/.test(pid))
    .filter((pid) => {
      try {
        if (name !== undefined && readFileSync(`/proc/${pid}/comm`, 'utf8').trim() !== name.slice(0, 15)) return false;
        return readFileSync(`/proc/${pid}/environ`, 'latin1').includes(`=${dir}/`);
      } catch {
        return false;
      }
    })
    .map(Number)
    .filter((pid) => pid !== process.pid);
}

function kill(pids: readonly number[]): void {
  for (const pid of pids) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // It exited by itself.
    }
  }
}
