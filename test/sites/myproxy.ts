import { spawn } from 'node:child_process';
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { readPid } from '../../src/util/pid-file.ts';
import { type GridCa, gridEnv } from './grid-ca.ts';
import { answers, freePort } from './ports.ts';

export interface MyProxySite {
  readonly port: number;
  readonly dn: string;
  readonly host: { readonly cert: string; readonly key: string };
  stop(): Promise<void>;
}

/** Debian's myproxy-server on loopback, with a store of its own. */
export async function startMyProxy(ca: GridCa, config: readonly string[] = []): Promise<MyProxySite> {
  const dir = mkdtempSync(join(tmpdir(), 'mp-'));
  const person = ca.host();
  const [cert, key, store, pidFile, settings] = ['cert', 'key', 'store', 'pid', 'config'].map((one) =>
    join(dir, one),
  ) as [string, string, string, string, string];
  copyFileSync(person.cert, cert);
  copyFileSync(person.key, key);
  chmodSync(key, 0o600);
  mkdirSync(store, { mode: 0o700 });
  const rules = [
    'accepted_credentials "/O=Grid/*"',
    'authorized_retrievers "*"',
    'default_retrievers "*"',
    'authorized_renewers "/O=Grid/*"',
    'default_renewers "none"',
    'max_proxy_lifetime 168',
  ];
  writeFileSync(settings, `${[...rules, ...config].join('\n')}\n`);
  const port = await freePort();
  const args = ['-p', String(port), '-l', '127.0.0.1', '-c', settings, '-s', store, '-P', pidFile];
  const env = gridEnv(ca, { X509_USER_CERT: cert, X509_USER_KEY: key });
  const starter = spawn('myproxy-server', args, { env, stdio: 'ignore' });
  starter.on('error', () => undefined);
  const deadline = Date.now() + 10_000;
  // It creates the file first and writes it later.
  let pid = readPid(pidFile);
  while (pid === undefined || !(await answers(port))) {
    if (Date.now() > deadline) throw new Error('myproxy-server did not start');
    await delay(20);
    pid = readPid(pidFile);
  }
  const server = pid;
  return {
    port,
    dn: person.dn,
    host: { cert, key },
    async stop() {
      process.kill(server);
      const end = Date.now() + 5000;
      while ((await answers(port)) && Date.now() < end) await delay(20);
      rmSync(dir, { recursive: true, force: true });
    },
  };
}
