import type { Duplex } from 'node:stream';
import { connect, createSecureContext, type TLSSocket as Socket, TLSSocket } from 'node:tls';
import { asError, GryphusError } from '../errors.ts';

/**
 * One cipher with forward secrecy and the token as pre-shared key (RFC 7905): no certificate can be missing, wrong or
 * expired, and a token stolen later does not reveal earlier traffic. TLS 1.2, because Node offers no other version with
 * pre-shared keys.
 */
const SUITE = { ciphers: 'ECDHE-PSK-CHACHA20-POLY1305', minVersion: 'TLSv1.2', maxVersion: 'TLSv1.2' } as const;
let shared: ReturnType<typeof createSecureContext> | undefined;

/** Who connected, and the link: bytes that no one else can read or change. */
export interface Guest {
  readonly worker: string;
  readonly link: Duplex;
}

export interface AcceptOptions {
  /** A worker's key; `undefined` for a stranger. */
  readonly keyOf: (worker: string) => Buffer | undefined;
  /** How long a silent stranger is kept; long, because mailboxes are slow. Default: two minutes. */
  readonly patienceMs?: number;
}

const PATIENCE_MS = 120_000;

/** The agent's end of a link over any duplex stream. For a stranger, rejects with 'login-refused' and closes `raw`. */
export function acceptHome(raw: Duplex, { keyOf, patienceMs = PATIENCE_MS }: AcceptOptions): Promise<Guest> {
  let worker = '';
  shared ??= createSecureContext(SUITE);
  const link = new TLSSocket(raw, {
    isServer: true,
    secureContext: shared,
    requestCert: false,
    rejectUnauthorized: false,
    pskCallback: (_socket: unknown, identity: string) => {
      worker = identity;
      return keyOf(identity) ?? null;
    },
  } as ConstructorParameters<typeof TLSSocket>[1]);
  return shaken(raw, link, 'secure', patienceMs, () => `A worker that calls itself '${worker}' was refused`).then(
    () => ({ worker, link }),
  );
}

/** The worker's end. Rejects with 'login-refused' and closes `raw` if the agent does not know the token. */
export async function greetHome(
  raw: Duplex,
  {
    worker,
    key,
    patienceMs = PATIENCE_MS,
  }: { readonly worker: string; readonly key: Buffer; readonly patienceMs?: number },
): Promise<Duplex> {
  const link = connect({
    ...SUITE,
    socket: raw,
    pskCallback: () => ({ psk: key, identity: worker }),
    // There is no certificate: the key identifies the agent.
    checkServerIdentity: () => undefined,
  });
  await shaken(raw, link, 'secureConnect', patienceMs, () => 'The agent did not know our token');
  return link;
}

function shaken(
  raw: Duplex,
  link: Socket,
  event: 'secure' | 'secureConnect',
  patienceMs: number,
  what: () => string,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const fail = (cause: Error): void => {
      clearTimeout(timer);
      link.destroy();
      raw.destroy();
      reject(new GryphusError('login-refused', `${what()}: ${cause.message.trim()}.`, { cause }));
    };
    const timer = setTimeout(() => fail(new Error(`nothing was received for ${patienceMs / 1000} s`)), patienceMs);
    const onRawEnd = (): void => fail(new Error('the link was closed'));
    link.once('error', (thrown) => fail(asError(thrown)));
    raw.once('close', onRawEnd);
    link.once(event, () => {
      clearTimeout(timer);
      raw.off('close', onRawEnd);
      link.removeAllListeners('error');
      // If either ends, so does the other.
      raw.on('error', (error) => link.destroy(error));
      raw.once('close', () => link.destroy());
      link.once('close', () => raw.destroy());
      resolve();
    });
  });
}
