import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  fsyncSync,
  lstatSync,
  openSync,
  readFileSync,
  rmSync,
  writeSync,
} from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { asError, GryphusError } from '../errors.ts';
import { writeWhole } from '../util/private-file.ts';
import { readSecretFile, wipe } from '../util/secret-file.ts';
import { isPkcs12, readPkcs12 } from './x509/pkcs12.ts';
import { type Credential, pair, readChain, readKey, readProxyFile, writeProxyFile } from './x509/proxy-file.ts';

/** Where the grid's tools look for a user's files (`grid-proxy-init -help`). */
export interface UserFiles {
  readonly cert: string;
  readonly key: string;
  readonly proxy: string;
  readonly trust: string;
}

export function defaultFiles(
  env: NodeJS.ProcessEnv = process.env,
  home = homedir(),
  uid = process.getuid?.() ?? 0,
): UserFiles {
  const [pem, both] = [join(home, '.globus/usercert.pem'), join(home, '.globus/usercred.p12')];
  return {
    cert: env['X509_USER_CERT'] || (existsSync(pem) || !existsSync(both) ? pem : both),
    key: env['X509_USER_KEY'] || join(home, '.globus/userkey.pem'),
    proxy: env['X509_USER_PROXY'] || `/tmp/x509up_u${uid}`,
    trust: env['X509_CERT_DIR'] || '/etc/grid-security/certificates',
  };
}

/**
 * A user's certificate and key. Others must not be able to read the key's file; the passphrase is only asked for if
 * needed.
 */
export async function loadUser(
  cert: string,
  keyFile: string,
  askPassphrase?: (file: string) => Promise<Buffer | undefined>,
): Promise<Credential> {
  const certificate = readPublic(cert, 'certificate', ['Name it with --cert, and its key with --key.']);
  if (isPkcs12(certificate)) return loadPkcs12(cert, askPassphrase);
  const chain = readChain(certificate, cert);
  const secret = readSecretFile(keyFile, 'key');
  let passphrase: Buffer | undefined;
  try {
    const encrypted = /ENCRYPTED/.test(secret.toString('latin1'));
    passphrase = encrypted ? await askPassphrase?.(keyFile) : undefined;
    return pair(chain, readKey(secret, keyFile, passphrase), keyFile);
  } finally {
    wipe(secret, passphrase);
  }
}

/** A file with both the certificate and its key. */
async function loadPkcs12(
  file: string,
  askPassphrase?: (file: string) => Promise<Buffer | undefined>,
): Promise<Credential> {
  const content = readSecretFile(file, 'key');
  const passphrase = (await askPassphrase?.(file)) ?? Buffer.alloc(0);
  try {
    return await readPkcs12(content, file, passphrase);
  } finally {
    wipe(content, passphrase);
  }
}

/** Reads a proxy made by any tool; refused if others can read it. */
export function loadProxy(path: string): Credential {
  const secret = readSecretFile(path, 'proxy');
  try {
    return readProxyFile(secret, path);
  } finally {
    wipe(secret);
  }
}

/** Writes a proxy file atomically, mode 0600. */
export function saveProxy(path: string, proxy: Credential): void {
  const secret = writeProxyFile(proxy);
  try {
    writeWhole(path, secret, 0o600);
  } catch (thrown) {
    const cause = asError(thrown);
    throw new GryphusError(
      'output-unwritable',
      `The proxy ${path} cannot be written (${(cause as NodeJS.ErrnoException).code ?? ''}).`,
      {
        cause,
      },
    );
  } finally {
    wipe(secret);
  }
}

/**
 * Overwrites a credential on disk with zeros and removes it, provided it is a regular file of ours. Returns false if
 * there was none. (A copying file system or a solid state disk may keep the old blocks: the real protection is a
 * proxy's short life.)
 */
export function destroyFile(path: string): boolean {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found === undefined) return false;
  const uid = process.getuid?.();
  if (!found.isFile() || (uid !== undefined && found.uid !== uid)) {
    throw new GryphusError('not-permitted', `${path} is not a regular file of yours, so it was left alone.`);
  }
  const fd = openSync(path, constants.O_WRONLY | constants.O_NOFOLLOW);
  try {
    const zeros = Buffer.alloc(4096);
    const { size } = fstatSync(fd);
    for (let at = 0; at < size; ) at += writeSync(fd, zeros, 0, Math.min(zeros.length, size - at), at);
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
  rmSync(path);
  return true;
}

/** Reads a file that need not be private. Error 'not-found'. */
export function readPublic(path: string, what: string, remedy: readonly string[] = []): Buffer {
  try {
    return readFileSync(path);
  } catch (thrown) {
    const cause = asError(thrown) as NodeJS.ErrnoException;
    if (cause.code === 'ENOENT')
      throw new GryphusError('not-found', `There is no ${what} ${path}.`, { cause, suggestions: remedy });
    throw new GryphusError('not-permitted', `The ${what} ${path} cannot be read (${cause.code ?? cause.message}).`, {
      cause,
    });
  }
}
