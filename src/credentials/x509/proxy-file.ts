import { createPrivateKey, type KeyObject } from 'node:crypto';
import { asError, GryphusError } from '../../errors.ts';
import { wipe } from '../../util/secret-file.ts';
import { type Certificate, readCertificateOf } from './certificate.ts';
import { certificatePem, readPem } from './pem.ts';
import { isKeyOf } from './sign.ts';

/** A certificate with its key and the certificates that vouch for it, nearest first; never the CA's own. */
export interface Credential {
  readonly chain: readonly [Certificate, ...Certificate[]];
  readonly key: KeyObject;
}

/**
 * Reads a proxy file as the grid's tools write it: certificate, key, issuers. Any order is accepted, but the first
 * certificate is the proxy. `where` names the file in errors. Error 'credential-invalid'.
 */
export function readProxyFile(content: Buffer, where: string): Credential {
  return pair(readChain(content, where), readKey(content, where), where);
}

export function readChain(content: Uint8Array, where: string): readonly [Certificate, ...Certificate[]] {
  const [first, ...rest] = readPem(Buffer.from(content).toString('latin1'))
    .filter((block) => /^(X509 |TRUSTED )?CERTIFICATE$/.test(block.label))
    .map((block) => readCertificateOf(block.der, where));
  if (first === undefined) throw new GryphusError('credential-invalid', `${where} holds no certificate.`);
  return [first, ...rest];
}

/** The private key in a PEM file: PKCS#8, PKCS#1 or SEC 1, encrypted or not. */
export function readKey(content: Buffer, where: string, passphrase?: Buffer): KeyObject {
  const block = readPem(content.toString('latin1')).find((one) => one.label.endsWith('PRIVATE KEY'));
  if (block === undefined) throw new GryphusError('credential-invalid', `${where} holds no private key.`);
  const encrypted = block.label.startsWith('ENCRYPTED') || block.text.includes('Proc-Type: 4,ENCRYPTED');
  if (encrypted && passphrase === undefined) {
    throw new GryphusError('needs-login', `The key in ${where} is encrypted, and there is no passphrase for it.`);
  }
  const pem = Buffer.from(block.text, 'latin1');
  try {
    return createPrivateKey({ key: pem, format: 'pem', ...(passphrase === undefined ? {} : { passphrase }) });
  } catch (thrown) {
    // OpenSSL's messages contain no secrets today; keeping only the error code makes sure of it.
    const code = (asError(thrown) as NodeJS.ErrnoException).code ?? 'unreadable';
    throw encrypted
      ? new GryphusError('login-refused', `The passphrase does not decrypt the key in ${where}.`)
      : new GryphusError('credential-invalid', `The key in ${where} cannot be read (${code}).`);
  } finally {
    wipe(pem);
  }
}

export function pair(chain: Credential['chain'], key: KeyObject, where: string): Credential {
  if (!isKeyOf(key, chain[0].publicKey)) {
    throw new GryphusError('credential-invalid', `The private key in ${where} does not match its certificate.`);
  }
  return { chain, key };
}

/** The file's bytes: certificate, key (PKCS#8), issuers. The caller writes them with mode 0600 and wipes them. */
export function writeProxyFile({ chain, key }: Credential): Buffer {
  const [first, ...rest] = chain;
  const secret = Buffer.from(key.export({ type: 'pkcs8', format: 'pem' }));
  const issuers = rest.filter((one) => !one.ca).map((one) => certificatePem(one.der));
  const whole = Buffer.concat([Buffer.from(certificatePem(first.der)), secret, Buffer.from(issuers.join(''))]);
  wipe(secret);
  return whole;
}
