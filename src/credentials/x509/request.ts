import { createPublicKey, type KeyObject } from 'node:crypto';
import { GryphusError } from '../../errors.ts';
import { readSigned } from './certificate.ts';
import { children, context, readOne, TAG } from './der.ts';
import { integer, oid, sequence, setOf, text, tlv } from './der-write.ts';
import { OID } from './oids.ts';
import { checkSignature, publicKeyDer, signed } from './sign.ts';

/** A PKCS#10 request (RFC 2986) for this key. Its subject is irrelevant because the issuer chooses a proxy's name. */
export function makeRequest(key: KeyObject): Uint8Array {
  const subject = sequence(setOf(sequence(oid(OID.commonName), text(TAG.utf8String, 'proxy request'))));
  return signed(key, () => sequence(integer(0), subject, publicKeyDer(key), tlv(context(0))));
}

const SMALLEST_RSA = 2048;

/**
 * The public key of a request whose sender has proved possession of the private key. Error 'credential-invalid' if it
 * is malformed, not signed with its own key, or asks for too small a key.
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
  if (publicKey === undefined || check === 'wrong') throw refuse('is not signed with its own key');
  if (check === 'weak') throw refuse('is signed with a digest that is not trusted today');
  const { asymmetricKeyType, asymmetricKeyDetails } = createPublicKey({
    key: Buffer.from(publicKey),
    format: 'der',
    type: 'spki',
  });
  const size = asymmetricKeyDetails?.modulusLength ?? 0;
  if (asymmetricKeyType === 'rsa' && size < SMALLEST_RSA) {
    throw refuse(`has an RSA key of ${size} bits; ${SMALLEST_RSA} is the minimum`);
  }
  if (asymmetricKeyType !== 'rsa' && asymmetricKeyType !== 'ec') throw refuse('has a key that is neither RSA nor EC');
  return publicKey;
}
