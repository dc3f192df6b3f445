import { createPublicKey, type KeyObject } from 'node:crypto';
import { GryphusError } from '../../errors.ts';
import { readSigned } from './certificate.ts';
import { children, context, readOne, TAG } from './der.ts';
import { integer, oid, sequence, setOf, text, tlv } from './der-write.ts';
import { OID } from './oids.ts';
import { checkSignature, publicKeyDer, signed } from './sign.ts';

/** A PKCS#10 request (RFC 2986) for this key; its subject means nothing, for a proxy's name is the issuer's to choose. */
export function makeRequest(key: KeyObject): Uint8Array {
  const subject = sequence(setOf(sequence(oid(OID.commonName), text(TAG.utf8String, 'proxy request'))));
  return signed(key, () => sequence(integer(0), subject, publicKeyDer(key), tlv(context(0))));
}

const SMALLEST_RSA = 2048;

/**
 * The public key of a request whose sender has shown that it holds the private one. Error 'credential-invalid' for what
 * is no request, is not signed by its own key, or asks for a key that is too small.
 */
export function readRequest(der: Uint8Array): Uint8Array {
  const refuse = (why: string, cause?: unknown) =>
    new GryphusError(
      'credential-invalid',
      `The site's request for a proxy ${why}.`,
      cause === undefined ? {} : { cause },
    );
  let publicKey: Uint8Array | undefined;
  let check: ReturnType<typeof checkSignature>;
  try {
    const request = readSigned(der);
    publicKey = children(readOne(request.body, TAG.sequence))[2]?.raw;
    check = publicKey === undefined ? 'wrong' : checkSignature(request, publicKey);
  } catch (cause) {
    throw refuse('cannot be read', cause);
  }
  if (publicKey === undefined || check === 'wrong') throw refuse('is not signed by the key that it is for');
  if (check === 'weak') throw refuse('is signed with a digest that is not trusted today');
  const { asymmetricKeyType, asymmetricKeyDetails } = createPublicKey({
    key: Buffer.from(publicKey),
    format: 'der',
    type: 'spki',
  });
  const size = asymmetricKeyDetails?.modulusLength ?? 0;
  if (asymmetricKeyType === 'rsa' && size < SMALLEST_RSA) {
    throw refuse(`has an RSA key of ${size} bits; ${SMALLEST_RSA} is the least`);
  }
  if (asymmetricKeyType !== 'rsa' && asymmetricKeyType !== 'ec') throw refuse('has a key that is neither RSA nor EC');
  return publicKey;
}
