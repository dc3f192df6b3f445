import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { asError, GryphusError } from '../../errors.ts';
import { shellQuote } from '../../util/shell-quote.ts';
import { type Certificate, readCertificateOf } from './certificate.ts';
import { type RevocationList, readCrl } from './crl.ts';
import { nameHash, oldNameHash, sameName, type Name } from './name.ts';
import { readPem } from './pem.ts';
import { readSigningPolicy, type SigningPolicy } from './signing-policy.ts';
import type { Trust } from './trust.ts';

/** Where the grid's tools look if X509_CERT_DIR is not set and ~/.globus/certificates does not exist. */
export const SYSTEM_TRUST = '/etc/grid-security/certificates';

/**
 * A CA directory in the layout of the grid's tools: `<hash>.0` certificates, `<hash>.signing_policy`, `<hash>.r0`
 * revocation lists, with hashes of OpenSSL 1.0 or older. Files are read whenever a chain needs them, because they may
 * be updated at any time. Errors: 'not-found', 'credential-invalid' naming the file.
 */
export function openCaDirectory(dir: string): Trust {
  let names: readonly string[];
  try {
    names = readdirSync(dir);
  } catch (thrown) {
    throw new GryphusError('not-found', `The directory of certificate authorities ${dir} cannot be read.`, {
      cause: asError(thrown),
      suggestions: ['Set X509_CERT_DIR to the directory that has them.'],
    });
  }
  const filesOf = (name: Name, ending: string): readonly string[] =>
    [nameHash(name.der), oldNameHash(name.der)].flatMap((hash) =>
      names.filter((one) => one.startsWith(`${hash}.`) && new RegExp(`^${ending}$`).test(one.slice(hash.length + 1))),
    );
  const read = <T>(file: string, reader: (text: string, path: string) => T): T => {
    const path = join(dir, file);
    try {
      return reader(readFileSync(path, 'latin1'), path);
    } catch (thrown) {
      if (thrown instanceof GryphusError) throw thrown;
      const cause = asError(thrown);
      throw new GryphusError('credential-invalid', `${path} cannot be read: ${cause.message}.`, { cause });
    }
  };
  return {
    where: dir,
    authorities: (subject) =>
      filesOf(subject, '\\d+')
        .flatMap((file) => read(file, readAuthorities))
        .filter((one) => sameName(one.subject, subject)),
    signingPolicy: (authority) => {
      const files = filesOf(authority, 'signing_policy');
      if (files.length === 0) return undefined;
      return files.flatMap((file): readonly SigningPolicy[] => read(file, readSigningPolicy));
    },
    revocationLists: (authority) =>
      filesOf(authority, 'r\\d+')
        .flatMap((file) => read(file, readLists))
        .filter((one) => sameName(one.issuer, authority)),
    policyFile: (authority) => shellQuote(join(dir, `${nameHash(authority.der)}.signing_policy`)),
  };
}

function readAuthorities(text: string, path: string): readonly Certificate[] {
  return readPem(text)
    .filter((block) => block.label.endsWith('CERTIFICATE'))
    .map((block) => readCertificateOf(block.der, path));
}

function readLists(text: string): readonly RevocationList[] {
  return readPem(text)
    .filter((block) => block.label === 'X509 CRL')
    .map((block) => readCrl(block.der));
}
