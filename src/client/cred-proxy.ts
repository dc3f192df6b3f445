import { existsSync, statSync } from 'node:fs';
import { makeProxy } from '../credentials/delegation.ts';
import { type ProxyInfo, proxyInfo, proxyText } from '../credentials/proxy-info.ts';
import {
  defaultFiles,
  destroyFile,
  loadProxy,
  loadUser,
  readPublic,
  saveProxy,
  type UserFiles,
} from '../credentials/store.ts';
import { openCaDirectory } from '../credentials/x509/ca-directory.ts';
import { kindOf } from '../credentials/x509/certificate.ts';
import { type Credential, readChain } from '../credentials/x509/proxy-file.ts';
import { verifyChain } from '../credentials/x509/verify.ts';
import { GryphusError } from '../errors.ts';
import { wipe } from '../util/secret-file.ts';
import { shellQuote } from '../util/shell-quote.ts';
import type { AskUser } from './types.ts';

export interface ProxyRequest {
  /** Files; the defaults are those of `grid-proxy-init`. */
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
  readonly out?: string | undefined;
  /** Default: 12. */
  readonly hours?: number | undefined;
  /** May not start jobs, at sites that check this. */
  readonly limited?: boolean;
  /** How many further proxies may be signed with it in a chain; default: no limit. */
  readonly pathLength?: number | undefined;
  /** The size of the RSA key; default: 2048. */
  readonly bits?: number | undefined;
  /** Check the chain against the authorities of X509_CERT_DIR before writing it. */
  readonly verify?: boolean;
}

export interface ProxyReport extends ProxyInfo {
  readonly file: string;
  /** For users, in the format of `grid-proxy-info`. */
  readonly text: string;
}

/** Like `grid-proxy-init`: makes a proxy from the user's certificate, written atomically, mode 0600. */
export async function initProxy(request: ProxyRequest, ask?: AskUser): Promise<ProxyReport> {
  const files = defaultFiles();
  const out = request.out ?? files.proxy;
  for (const source of [request.cert ?? files.cert, request.key ?? files.key]) {
    if (sameFile(source, out))
      throw new GryphusError('usage', `The proxy would overwrite ${source}, from which it is made.`, {
        suggestions: ['Name another file with --out.'],
      });
  }
  const user = await userCredential(request, files, ask);
  const now = Math.floor(Date.now() / 1000);
  const proxy = await makeProxy(user, {
    now,
    lifetime: (request.hours ?? 12) * 3600,
    ...(request.limited ? { rights: 'limited' as const } : {}),
    ...(request.pathLength === undefined ? {} : { pathLength: request.pathLength }),
    ...(request.bits === undefined ? {} : { rsaBits: request.bits }),
  });
  if (request.verify) verify(proxy, files, now);
  saveProxy(out, proxy);
  return proxyFacts(out);
}

function sameFile(one: string, other: string): boolean {
  const [a, b] = [one, other].map((path) => statSync(path, { throwIfNoEntry: false }));
  return a !== undefined && b !== undefined && a.dev === b.dev && a.ino === b.ino;
}

/** Like `grid-proxy-info`; the default file is that of X509_USER_PROXY. */
export function proxyFacts(file = defaultFiles().proxy): ProxyReport {
  const info = proxyInfo(loadProxy(file).chain);
  return { ...info, file, text: proxyText(info, file, Math.floor(Date.now() / 1000)) };
}

/**
 * Like `grid-proxy-destroy`: overwrites and removes the file, and returns its name if there was one. Leaves other files
 * alone.
 */
export function destroyProxy(file = defaultFiles().proxy): string | undefined {
  if (existsSync(file) && !holdsProxy(file)) {
    throw new GryphusError('not-permitted', `${file} is not a proxy, so it was not deleted.`, {
      suggestions: [`To delete it anyway: rm ${shellQuote(file)}`],
    });
  }
  return destroyFile(file) ? file : undefined;
}

/** Whether the file holds a proxy and its key. A damaged proxy counts: what is left of it must go too. */
function holdsProxy(file: string): boolean {
  const content = readPublic(file, 'proxy', ['gryphus cred proxy init']);
  try {
    const text = content.toString('latin1');
    if (!/-BEGIN [A-Z0-9 ]*CERTIFICATE-/.test(text) || !/-BEGIN [A-Z0-9 ]*PRIVATE KEY-/.test(text)) return false;
    return kindOf(readChain(content, file)[0]).endsWith('proxy');
  } catch {
    return true;
  } finally {
    wipe(content);
  }
}

/** The user's certificate and key; asks for the passphrase of an encrypted key. */
export function userCredential(
  { cert, key }: Pick<ProxyRequest, 'cert' | 'key'>,
  files: UserFiles,
  ask?: AskUser,
): Promise<Credential> {
  const keyFile = key ?? files.key;
  return loadUser(cert ?? files.cert, keyFile, async (file) => {
    const answer = await ask?.({ text: `Passphrase of ${file}:`, echo: false });
    if (answer !== undefined) return Buffer.from(answer);
    throw new GryphusError(
      'needs-login',
      `The key ${file} is encrypted, and there is no terminal to prompt for its passphrase.`,
      {
        suggestions: ['Run it in a terminal.'],
      },
    );
  });
}

function verify(proxy: Credential, { trust }: UserFiles, now: number): void {
  const verdict = verifyChain(proxy.chain, openCaDirectory(trust), { now });
  if (verdict.ok) return;
  throw new GryphusError('credential-invalid', `Sites would refuse this proxy: ${verdict.message}`, {
    suggestions: [`The trusted authorities are in ${trust} (X509_CERT_DIR).`],
  });
}
