import { constants } from 'node:crypto';
import { isIP } from 'node:net';
import { connect, type ConnectionOptions } from 'node:tls';
import { GryphusError } from '../../errors.ts';
import { wipe } from '../../util/secret-file.ts';
import { certificatePem } from '../x509/pem.ts';
import type { Credential } from '../x509/proxy-file.ts';
import type { Trust } from '../x509/trust.ts';
import { checkPeer, type Expected } from './peer.ts';
import { Wire, type WireName } from './wire.ts';

export interface GsiTarget extends WireName {
  readonly host: string;
  readonly port: number;
  readonly trust: Trust;
  readonly expect: Expected;
  /** Timeout of a whole exchange in milliseconds; 30 s by default. */
  readonly timeoutMs?: number;
}

/** A resumed session shows no chain, so sessions are never resumable. */
export const NO_RESUMPTION = { secureOptions: constants.SSL_OP_NO_TICKET } as const;

/**
 * TLS options with the whole chain, because a leaf alone is refused. `done` wipes the copy of the key made for them.
 */
export function tlsCredential(client: Credential): {
  readonly options: { readonly cert: string; readonly key: Buffer };
  readonly done: () => void;
} {
  const key = Buffer.from(client.key.export({ type: 'pkcs8', format: 'pem' }));
  const cert = client.chain.map((one) => certificatePem(one.der)).join('');
  return { options: { cert, key }, done: () => wipe(key) };
}

/**
 * One exchange over TLS with a GSI peer: checks its identity before sending anything, then calls `talk`. Each failure
 * is one GryphusError: those of `Wire`, 'timeout', and 'host-key-changed' (the peer is not who we expect).
 */
export async function withGsi<T>(
  target: GsiTarget,
  client: Credential | undefined,
  talk: (wire: Wire, localAddress: string) => Promise<T>,
): Promise<T> {
  const { host, port, label } = target;
  const credential = client && tlsCredential(client);
  const options: ConnectionOptions = {
    host,
    port,
    ...(isIP(host) === 0 ? { servername: host } : {}),
    ...credential?.options,
    ...NO_RESUMPTION,
    // Node cannot verify the grid's chains; `checkPeer` does so before anything is sent.
    rejectUnauthorized: false,
  };
  const socket = connect(options);
  credential?.done();
  const wire = new Wire(socket, target);
  const timeoutMs = target.timeoutMs ?? 30_000;
  const timer = setTimeout(
    () => socket.destroy(new GryphusError('timeout', `${label} did not answer within ${timeoutMs / 1000} s.`)),
    timeoutMs,
  );
  try {
    await wire.secured();
    checkPeer(socket, target.trust, target.expect, label);
    return await talk(wire, socket.localAddress ?? '127.0.0.1');
  } finally {
    clearTimeout(timer);
    socket.destroy();
  }
}

/** The first bytes of GSI after the handshake: the server's NUL, and our flag that says whether we delegate. */
export async function greet(wire: Wire, flag: '0' | 'D'): Promise<void> {
  const [first] = await wire.bytes(1);
  if (first !== 0) throw wire.nonsense();
  await wire.send(Buffer.from(flag));
}
