import { createPrivateKey } from 'node:crypto';
import type { pkcs12 } from 'node-forge';
import { GryphusError } from '../../errors.ts';
import { readCertificateOf } from './certificate.ts';
import { type Credential, pair } from './proxy-file.ts';
import { isKeyOf } from './sign.ts';

/** Whether it is a PKCS#12 file (binary, a DER sequence) and not PEM. */
export function isPkcs12(content: Uint8Array): boolean {
  return content[0] === 0x30;
}

/**
 * The certificate, key and issuers in a PKCS#12 file (RFC 7292), the form in which browsers export them; RSA or EC, with
 * a MAC. node-forge reads it, because Node does so only for TLS and hands nothing out. Errors: 'login-refused' for a
 * wrong passphrase, 'credential-invalid'.
 */
export async function readPkcs12(content: Buffer, where: string, passphrase: Buffer): Promise<Credential> {
  const { default: forge } = await import('node-forge');
  const bytes = (tree: Parameters<typeof forge.asn1.toDer>[0]): Buffer =>
    Buffer.from(forge.asn1.toDer(tree).getBytes(), 'latin1');
  const open = (): pkcs12.Bag[] => {
    try {
      const tree = forge.asn1.fromDer(content.toString('latin1'));
      return forge.pkcs12
        .pkcs12FromAsn1(tree, passphrase.toString('utf8'))
        .safeContents.flatMap((safe) => safe.safeBags);
    } catch (cause) {
      throw /password/i.test(String(cause))
        ? new GryphusError('login-refused', `The passphrase does not open ${where}.`)
        : new GryphusError('credential-invalid', `${where} cannot be read as PKCS#12.`, { cause });
    }
  };
  const bags = open();
  // forge understands RSA; what it does not, such as EC, is left as ASN.1.
  const [secret] = bags.flatMap(({ type, key, asn1 }) => {
    if (key) return [bytes(forge.pki.wrapRsaPrivateKey(forge.pki.privateKeyToAsn1(key)))];
    return KEYS.includes(type) && asn1 ? [bytes(asn1)] : [];
  });
  if (secret === undefined) throw new GryphusError('credential-invalid', `${where} holds no private key.`);
  const key = createPrivateKey({ key: secret, format: 'der', type: 'pkcs8' });
  secret.fill(0);
  const certificates = bags.flatMap(({ type, cert, asn1 }) => {
    if (type !== forge.pki.oids['certBag']) return [];
    return [readCertificateOf(bytes(cert ? forge.pki.certificateToAsn1(cert) : asn1), where)];
  });
  const own = certificates.find((one) => isKeyOf(key, one.publicKey));
  if (own === undefined) throw new GryphusError('credential-invalid', `${where} holds no certificate of its key.`);
  return pair([own, ...certificates.filter((one) => one !== own)], key, where);
}

/** keyBag and pkcs8ShroudedKeyBag. */
const KEYS: readonly string[] = ['1.2.840.113549.1.12.10.1.1', '1.2.840.113549.1.12.10.1.2'];
