import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readPid } from '../../src/util/pid-file.ts';
import { answers, ended, freePorts, waitUntil } from './ports.ts';

const PROGRAMS = ['slurmdbd', 'mariadbd'];

/**
 * For `describe.skipIf`: Slurm's accounting needs a database. Prints a line if it is missing; with CI=true it is an
 * error instead.
 */
export function skipWithoutSlurmdbd(): boolean {
  const absent = PROGRAMS.filter((name) => !existsSync(join('/usr/sbin', name)));
  if (absent.length === 0) return false;
  const missing = `${absent.join(', ')}: not installed (Debian: slurmdbd, mariadb-server-core, mariadb-client-core)`;
  if (process.env['CI'] === 'true') throw new Error(missing);
  process.stderr.write(`Tests with sacct are left out. ${missing}\n`);
  return true;
}

/** Slurm's accounting daemon over a private MariaDB, run by the user who runs the test. */
export interface Slurmdbd {
  /** Lines for slurm.conf. */
  readonly config: string;
  stop(): Promise<void>;
}

export interface SlurmdbdPlace {
  /** Slurm's directory, which also holds the database. */
  readonly dir: string;
  readonly host: string;
  /** munged's socket, which must answer. */
  readonly socket: string;
  readonly user: string;
}

export async function startSlurmdbd({ dir, host, socket, user }: SlurmdbdPlace): Promise<Slurmdbd> {
  const data = join(dir, 'db');
  const sql = join(dir, 'run/mariadb.sock');
  const port = await freePorts(2);
  const sqlPort = port + 1;
  mkdirSync(data);
  execFileSync(
    'mariadb-install-db',
    [
      '--no-defaults',
      `--datadir=${data}`,
      `--user=${user}`,
      '--auth-root-authentication-method=normal',
      '--skip-test-db',
      '--skip-name-resolve',
    ],
    { stdio: 'ignore' },
  );
  spawn(
    'mariadbd',
    [
      '--no-defaults',
      `--user=${user}`,
      `--datadir=${data}`,
      `--socket=${sql}`,
      `--pid-file=${dir}/run/mariadb.pid`,
      '--bind-address=127.0.0.1',
      `--port=${sqlPort}`,
      '--skip-name-resolve',
      '--innodb-flush-log-at-trx-commit=0',
      '--innodb-buffer-pool-size=64M',
      '--innodb-lock-wait-timeout=900',
      `--log-error=${dir}/log/mariadb.log`,
    ],
    { stdio: 'ignore', env: { ...process.env, PATH: `${process.env['PATH'] ?? ''}:/usr/sbin` } },
  );
  const asRoot = (statement: string): boolean =>
    spawnSync('mariadb', ['--no-defaults', '-S', sql, '-uroot', '-e', statement]).status === 0;
  await waitUntil('MariaDB', () => asRoot('SELECT 1'), 60_000);
  asRoot(
    "CREATE DATABASE acct; CREATE USER slurm@'127.0.0.1' IDENTIFIED BY 'slurm'; GRANT ALL ON acct.* TO slurm@'127.0.0.1';",
  );
  // It refuses a file that others can read.
  writeFileSync(
    join(dir, 'slurmdbd.conf'),
    `AuthType=auth/munge
AuthInfo=socket=${socket}
DbdHost=${host}
DbdAddr=127.0.0.1
DbdPort=${port}
SlurmUser=${user}
PidFile=${dir}/run/slurmdbd.pid
LogFile=${dir}/log/slurmdbd.log
CommitDelay=1
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort=${sqlPort}
StorageUser=slurm
StoragePass=slurm
StorageLoc=acct
`,
    { mode: 0o600 },
  );
  execFileSync('/usr/sbin/slurmdbd', [], {
    env: { ...process.env, SLURM_CONF: join(dir, 'slurm.conf') },
    stdio: 'ignore',
  });
  await waitUntil('slurmdbd', () => answers(port), 60_000);
  return {
    config: `AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort=${port}
AccountingStoragePass=${socket}
`,
    async stop() {
      for (const name of ['slurmdbd', 'mariadb']) {
        const pid = readPid(join(dir, `run/${name}.pid`));
        if (pid === undefined || ended(pid)) continue;
        process.kill(pid, 'SIGKILL');
        await waitUntil(`the end of ${name}`, () => ended(pid));
      }
    },
  };
}
