import { sign } from 'node:crypto';
import { GryphusError } from '../../errors.ts';
import { oneLine, redact } from '../../util/plain-text.ts';
import { wipe } from '../../util/secret-file.ts';
import { signRequest } from '../delegation.ts';
import { pair, type Credential } from '../x509/proxy-file.ts';
import { makeRequest } from '../x509/request.ts';
import { makeKey } from '../x509/sign.ts';
import { exchange, type MyProxyServer, type MyProxyWire } from './connection.ts';
import { encodeRequest, type Request, type Response, type StoredCredential } from './protocol.ts';

/** Which stored credential is meant, and the passphrase that protects it. */
export interface Stored {
  readonly user: string;
  /** At least six characters; absent for one stored without, to be renewed by certificate. The caller wipes it. */
  readonly passphrase?: Buffer;
  readonly credentialName?: string;
}

export interface MyProxyPutOptions {
  /** Lifetime of the stored proxy in seconds; a week by default. */
  readonly lifetime?: number;
  /** The longest lifetime of proxies retrieved from it, in seconds; 12 h by default. */
  readonly longest?: number;
  /** Who may retrieve it without a passphrase, and who may renew with it (DNs; `*` matches any text). */
  readonly retrievers?: string;
  readonly renewers?: string;
  /** Unix seconds. */
  readonly now: number;
}

const WEEK = 7 * 24 * 3600;
const HALF_DAY = 12 * 3600;
/** The server ignores the passphrase of an info or destroy request but rejects an empty one. */
const UNUSED = Buffer.from('PASSPHRASE');
const SHORTEST = 6;

/**
 * `myproxy-init`: stores a proxy of `issuer` whose key the server makes. Errors as in `exchange`, and 'login-refused'.
 */
export async function putCredential(
  server: MyProxyServer,
  what: Stored,
  issuer: Credential,
  options: MyProxyPutOptions,
): Promise<void> {
  checkPassphrase(what.passphrase);
  await exchange(server, issuer, async (wire) => {
    const refuse = refusals(server, what);
    const fields = {
      ...(options.retrievers === undefined ? {} : { RETRIEVER: options.retrievers }),
      ...(options.renewers === undefined ? {} : { RENEWER: options.renewers }),
      ...named(what),
    };
    await ask(wire, refuse, { command: 'put', ...who(what), lifetime: options.longest ?? HALF_DAY, fields });
    const proxy = signRequest(await wire.der(refuse), issuer, { now: options.now, lifetime: options.lifetime ?? WEEK });
    const chain = [proxy, ...issuer.chain.filter((one) => !one.ca).map((one) => one.der)];
    await wire.send(Buffer.concat([Buffer.from([chain.length]), ...chain]));
    refuse(await wire.response());
  });
}

export interface GetOptions {
  /** In seconds; 12 h by default. The server may give less. */
  readonly lifetime?: number;
  /** Proves who is asking; not needed with a passphrase. */
  readonly client?: Credential;
  /** For a renewal: the proxy to renew, whose key signs the server's challenge. */
  readonly old?: Credential;
}

/** `myproxy-logon`: retrieves a new proxy for a key made here. */
export async function getCredential(
  server: MyProxyServer,
  what: Stored,
  options: GetOptions = {},
): Promise<Credential> {
  const key = await makeKey();
  return exchange(server, options.client, async (wire) => {
    const refuse = refusals(server, what);
    const lifetime = options.lifetime ?? HALF_DAY;
    const first = await ask(wire, refuse, { command: 'get', ...who(what), lifetime, fields: named(what) });
    if (first.kind === 'authorization') {
      await wire.send(proofOf(server, first, options.old));
      refuse(await wire.response());
    }
    await wire.send(makeRequest(key));
    const chain = await wire.certificates(refuse);
    refuse(await wire.response());
    return pair(chain, key, `the answer of ${server.host}`);
  });
}

/** `myproxy-info`, for credentials of our own identity. */
export function listCredentials(
  server: MyProxyServer,
  user: string,
  client: Credential,
): Promise<readonly StoredCredential[]> {
  const what = { user, passphrase: UNUSED };
  return exchange(server, client, async (wire) => {
    const { stored } = await ask(wire, refusals(server, { user }), { command: 'info', ...who(what), lifetime: 0 });
    return stored;
  });
}

/** `myproxy-destroy`. */
export function destroyCredential(
  server: MyProxyServer,
  what: Omit<Stored, 'passphrase'>,
  client: Credential,
): Promise<void> {
  return exchange(server, client, async (wire) => {
    const request = {
      command: 'destroy',
      user: what.user,
      passphrase: UNUSED,
      lifetime: 0,
      fields: named(what),
    } as const;
    await ask(wire, refusals(server, what), request);
  });
}

/** `myproxy-change-pass-phrase`. */
export function changePassphrase(
  server: MyProxyServer,
  what: Stored & { readonly passphrase: Buffer; readonly newPassphrase: Buffer },
  client: Credential,
): Promise<void> {
  checkPassphrase(what.newPassphrase);
  return exchange(server, client, async (wire) => {
    const { newPassphrase } = what;
    const request = { command: 'change', ...who(what), newPassphrase, lifetime: 0, fields: named(what) } as const;
    await ask(wire, refusals(server, what, newPassphrase), request);
  });
}

async function ask(wire: MyProxyWire, refuse: (response: Response) => void, request: Request): Promise<Response> {
  const bytes = encodeRequest(request);
  await wire.send(bytes);
  wipe(bytes);
  const response = await wire.response();
  refuse(response);
  return response;
}

function who({ user, passphrase }: Stored): Pick<Request, 'user' | 'passphrase'> {
  return { user, ...(passphrase === undefined ? {} : { passphrase }) };
}

function named({ credentialName }: Pick<Stored, 'credentialName'>): Record<string, string> {
  return credentialName === undefined ? {} : { CRED_NAME: credentialName };
}

/** Throws a refusal with the server's message, from which our secrets are removed. */
function refusals(server: MyProxyServer, { user, passphrase }: Stored, another?: Buffer): (response: Response) => void {
  return (response) => {
    if (response.kind !== 'error') return;
    const secrets = [passphrase, another].map((one) => one?.toString('utf8') ?? '');
    const message = oneLine(redact(response.errors.join('; '), secrets)) || 'it gives no reason';
    // By default, a server does not let a client renew with no more than the proxy to be renewed.
    const suggestions = message.includes('self-authz')
      ? ['Set a passphrase file, or the certificate of a renewer.']
      : [];
    throw new GryphusError('login-refused', `The MyProxy server ${server.host} refuses '${user}': ${message}`, {
      suggestions,
    });
  };
}

function checkPassphrase(passphrase: Buffer | undefined): void {
  if (passphrase === undefined || passphrase.length >= SHORTEST) return;
  throw new GryphusError('bad-input', `A MyProxy passphrase has at least ${SHORTEST} characters.`);
}

/** Method numbers for proving that the old proxy is ours: a signature of the challenge, and the old chain. */
const METHODS = [
  { name: 'X509_certificate_SHA256', method: 4, digest: 'sha256' },
  { name: 'X509_certificate', method: 2, digest: 'sha1' },
] as const;

function proofOf(server: MyProxyServer, response: Response, old: Credential | undefined): Buffer {
  const way = METHODS.find((one) => response.challenges.has(one.name));
  if (way === undefined || old === undefined) {
    throw new GryphusError(
      'login-refused',
      `The MyProxy server ${server.host} requires another form of authentication.`,
      {
        suggestions: ['Name a passphrase file for it.'],
      },
    );
  }
  const signature = sign(way.digest, Buffer.from(response.challenges.get(way.name) ?? ''), old.key);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(signature.length);
  const chain = old.chain.map((one) => one.der);
  return Buffer.concat([Buffer.from([way.method, 0, 0, 0]), length, signature, Buffer.from([chain.length]), ...chain]);
}
