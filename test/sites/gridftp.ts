import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { type GridCa, gridEnv, type Person } from './grid-ca.ts';
import { answers, ended, freePort, waitUntil } from './ports.ts';

export const GRIDFTP_PROGRAMS = ['/usr/sbin/globus-gridftp-server'];

export interface GridFtp {
  readonly port: number;
  readonly url: (path: string) => string;
  log(): string;
  stop(): Promise<void>;
}

/** Debian's GridFTP server on loopback under GSI, for these people. */
export async function startGridFtp(ca: GridCa, people: readonly Person[]): Promise<GridFtp> {
  const dir = mkdtempSync(join(tmpdir(), 'ggf-'));
  const host = ca.host();
  const [map, log] = [join(dir, 'grid-mapfile'), join(dir, 'log')];
  writeFileSync(map, people.map(({ dn }) => `"${dn}" ${userInfo().username}\n`).join(''));
  const port = await freePort();
  const env = gridEnv(ca, {
    GLOBUS_HOSTNAME: 'localhost',
    GRIDMAP: map,
    X509_USER_CERT: host.cert,
    X509_USER_KEY: host.key,
    HOME: userInfo().homedir,
  });
  const where = ['-control-interface', '127.0.0.1', '-data-interface', '127.0.0.1'];
  // Flags take no value here: "-allow-root 1" would be read as "-allow-root -1", which means only one connection.
  const words = ['-c', '/dev/null', '-p', String(port), ...where, '-d', 'ALL', '-l', log, '-allow-root'];
  const child = spawn('/usr/sbin/globus-gridftp-server', words, { env, stdio: 'ignore', detached: true });
  child.unref();
  await waitUntil('the GridFTP server', () => answers(port));
  return {
    port,
    url: (path) => `gsiftp://localhost:${port}${path}`,
    log: () => readFileSync(log, 'utf8'),
    async stop() {
      const { pid } = child;
      if (pid !== undefined && pid > 1) {
        process.kill(pid, 'SIGKILL');
        await waitUntil('the end of the GridFTP server', () => ended(pid));
      }
      rmSync(dir, { recursive: true, force: true });
    },
  };
}
