import { spawn } from 'node:child_process';
import { Duplex } from 'node:stream';
import { parseAddress } from '../config/address.ts';
import type { Partner } from '../config/agreements.ts';
import { reach } from '../reverse-connection/reach.ts';
import { greetHome } from '../reverse-connection/secure.ts';

const PATIENCE_MS = 20_000;

/** Connects to a partner's gateway; `undefined` if that side connects to us. Rejects with 'login-refused' if it does not have the key. */
export function dialPartner({ agreement, key }: Partner): Promise<Duplex> | undefined {
  const { url, via } = agreement;
  if (url === undefined) return undefined;
  const { host, port } = parseAddress(url, 'url');
  const raw = via === undefined ? reach({ host, port }, PATIENCE_MS) : Promise.resolve(bySsh(via, host, port));
  return raw.then((stream) =>
    greetHome(stream, { worker: key.id, key: Buffer.from(key.key, 'hex'), patienceMs: PATIENCE_MS }),
  );
}

/** Through ssh, which checks the host's key and logs in as the user's configuration says. */
function bySsh(via: string, host: string, port: number): Duplex {
  const to = host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
  const child = spawn('ssh', ['-o', 'BatchMode=yes', '-o', 'ServerAliveInterval=30', '-W', to, '--', via], {
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  const stream = Duplex.from({ readable: child.stdout, writable: child.stdin });
  child.once('error', (error) => stream.destroy(error));
  child.once('exit', () => stream.destroy());
  stream.once('close', () => child.kill());
  stream.on('error', () => undefined);
  return stream;
}
