import {
  destroyCredential,
  getCredential,
  listCredentials,
  putCredential,
  type Stored,
} from '../credentials/myproxy/client.ts';
import type { MyProxyServer } from '../credentials/myproxy/connection.ts';
import type { StoredCredential } from '../credentials/myproxy/protocol.ts';
import { defaultFiles, loadProxy, saveProxy } from '../credentials/store.ts';
import { openCaDirectory } from '../credentials/x509/ca-directory.ts';
import { GryphusError } from '../errors.ts';
import { readSecretFile, takeFirstLine, wipe } from '../util/secret-file.ts';
import { type ProxyReport, proxyFacts, type ProxyRequest, userCredential } from './cred-proxy.ts';
import type { AskUser } from './types.ts';
import { ownUser } from '../util/own-user.ts';

export interface MyProxyRequest extends Pick<ProxyRequest, 'cert' | 'key' | 'out' | 'hours'> {
  /** `host` or `host:port`; default MYPROXY_SERVER and MYPROXY_SERVER_PORT. */
  readonly server?: string | undefined;
  /** Default: MYPROXY_SERVER_DN. */
  readonly serverDn?: string | undefined;
  /** Default: the log-in name. */
  readonly user?: string | undefined;
  readonly credentialName?: string | undefined;
  /** A 0600 file whose first line is the passphrase; without it, the user is asked. */
  readonly passphraseFile?: string | undefined;
  /** Store without a passphrase, for renewal by certificate alone. */
  readonly noPassphrase?: boolean;
  /** The longest lifetime, in hours, of proxies fetched from it; default 12. */
  readonly longest?: number | undefined;
  /** The subject that may renew with it. */
  readonly renewers?: string | undefined;
}

const WEEK_HOURS = 168;

/** Like `myproxy-init`: stores a long-lived proxy signed by the user's certificate; default: a week. */
export async function storeInMyProxy(request: MyProxyRequest, ask?: AskUser): Promise<void> {
  const issuer = await userCredential(request, defaultFiles(), ask);
  const passphrase = request.noPassphrase ? undefined : await readPassphrase(request, true, ask);
  try {
    await putCredential(serverOf(request), { ...whoOf(request), ...(passphrase && { passphrase }) }, issuer, {
      now: Math.floor(Date.now() / 1000),
      lifetime: (request.hours ?? WEEK_HOURS) * 3600,
      longest: (request.longest ?? 12) * 3600,
      ...(request.renewers === undefined ? {} : { renewers: request.renewers }),
    });
  } finally {
    wipe(passphrase);
  }
}

/** Like `myproxy-logon`: fetches a short-lived proxy from the stored one, written atomically, mode 0600. */
export async function getFromMyProxy(request: MyProxyRequest, ask?: AskUser): Promise<ProxyReport> {
  const out = request.out ?? defaultFiles().proxy;
  const passphrase = await readPassphrase(request, false, ask);
  try {
    const what = { ...whoOf(request), passphrase };
    saveProxy(out, await getCredential(serverOf(request), what, { lifetime: (request.hours ?? 12) * 3600 }));
  } finally {
    wipe(passphrase);
  }
  return proxyFacts(out);
}

/** Like `myproxy-info`, authenticated with the proxy in `out`. */
export function listMyProxy(request: MyProxyRequest): Promise<readonly StoredCredential[]> {
  return listCredentials(serverOf(request), whoOf(request).user, clientOf(request));
}

/** Like `myproxy-destroy`, authenticated with the proxy in `out`. */
export function destroyInMyProxy(request: MyProxyRequest): Promise<void> {
  return destroyCredential(serverOf(request), whoOf(request), clientOf(request));
}

function clientOf({ out }: MyProxyRequest) {
  return loadProxy(out ?? defaultFiles().proxy);
}

function serverOf({ server, serverDn }: MyProxyRequest): MyProxyServer {
  const named = server ?? process.env['MYPROXY_SERVER'] ?? '';
  const [, host = '', port] = /^(.*?)(?::(\d{1,5}))?$/.exec(named) ?? [];
  if (host === '') {
    throw new GryphusError('usage', 'Which MyProxy server?', {
      suggestions: ['Name it: --server myproxy.example.org; or set MYPROXY_SERVER.'],
    });
  }
  const number = Number(port ?? process.env['MYPROXY_SERVER_PORT'] ?? 7512);
  const dn = serverDn ?? process.env['MYPROXY_SERVER_DN'];
  const trust = openCaDirectory(defaultFiles().trust);
  return { host, port: number, trust, ...(dn === undefined ? {} : { serverDn: dn }) };
}

function whoOf({ user, credentialName }: MyProxyRequest): Omit<Stored, 'passphrase'> {
  return { user: user ?? ownUser().username, ...(credentialName === undefined ? {} : { credentialName }) };
}

async function readPassphrase(request: MyProxyRequest, twice: boolean, ask?: AskUser): Promise<Buffer> {
  if (request.passphraseFile !== undefined)
    return takeFirstLine(readSecretFile(request.passphraseFile, 'passphrase file'));
  const answer = await ask?.({ text: 'MyProxy passphrase:', echo: false });
  if (answer === undefined) {
    throw new GryphusError('needs-login', 'Cannot prompt for the MyProxy passphrase: no terminal.', {
      suggestions: ['Run it in a terminal, or name a 0600 file: --passphrase-file FILE.'],
    });
  }
  if (twice && (await ask?.({ text: 'Repeat the passphrase:', echo: false })) !== answer) {
    throw new GryphusError('bad-input', 'The two passphrases differ.');
  }
  return Buffer.from(answer);
}
