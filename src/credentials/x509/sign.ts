import { createPublicKey, generateKeyPair, type KeyObject, sign, verify } from 'node:crypto';
import { promisify } from 'node:util';
import { GryphusError } from '../../errors.ts';
import type { Signed } from './certificate.ts';
import { bits, nothing, oid, sequence } from './der-write.ts';
import { OID, SIGNATURE_DIGEST } from './oids.ts';

const generate = promisify(generateKeyPair);

/** RSA by default: GRAM's delegation fails with EC (its receiver takes the key's size for that of an RSA modulus). */
export type KeyType = 'rsa' | 'ec';

export async function makeKey(type: KeyType = 'rsa', rsaBits = 2048): Promise<KeyObject> {
  const { privateKey } =
    type === 'rsa'
      ? await generate('rsa', { modulusLength: rsaBits })
      : await generate('ec', { namedCurve: 'prime256v1' });
  return privateKey;
}

export function publicKeyDer(key: KeyObject): Uint8Array {
  return createPublicKey(key).export({ type: 'spki', format: 'der' });
}

export function isKeyOf(key: KeyObject, publicKey: Uint8Array): boolean {
  return Buffer.from(publicKeyDer(key)).equals(publicKey);
}

/**
 * Signs and assembles body, algorithm and signature. `body` is given the algorithm's DER because it must contain it
 * too.
 */
export function signed(key: KeyObject, body: (algorithm: Uint8Array) => Uint8Array): Uint8Array {
  const { digest, algorithm } = schemeOf(key);
  const content = body(algorithm);
  return sequence(content, algorithm, bits(sign(digest, content, key)));
}

function schemeOf(key: KeyObject): { digest: string; algorithm: Uint8Array } {
  if (key.asymmetricKeyType === 'rsa') return { digest: 'sha256', algorithm: sequence(oid(OID.rsaSha256), nothing()) };
  if (key.asymmetricKeyType === 'ec') {
    const curve = key.asymmetricKeyDetails?.namedCurve;
    if (curve === 'secp384r1') return { digest: 'sha384', algorithm: sequence(oid(OID.ecdsaSha384)) };
    if (curve === 'secp521r1') return { digest: 'sha512', algorithm: sequence(oid(OID.ecdsaSha512)) };
    return { digest: 'sha256', algorithm: sequence(oid(OID.ecdsaSha256)) };
  }
  throw new GryphusError('credential-invalid', `A ${key.asymmetricKeyType ?? 'secret'} key cannot sign proxies.`, {
    suggestions: ['Ask your certificate authority for an RSA or EC certificate.'],
  });
}

export type SignatureCheck = 'good' | 'wrong' | 'weak';

/** Whether the key made the signature; `weak`: with a digest that proves nothing, or that we do not know. */
export function checkSignature(what: Signed, publicKey: Uint8Array): SignatureCheck {
  const digest = SIGNATURE_DIGEST[what.algorithm];
  if (digest === undefined) return 'weak';
  try {
    const key = createPublicKey({ key: Buffer.from(publicKey), format: 'der', type: 'spki' });
    return verify(digest, what.body, key, what.signature) ? 'good' : 'wrong';
  } catch {
    return 'wrong';
  }
}
