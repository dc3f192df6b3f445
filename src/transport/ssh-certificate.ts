import { fingerprint, keyType, verifySignature } from './public-key.ts';
import { WireReader, wireString } from './wire.ts';

/** An OpenSSH certificate (PROTOCOL.certkeys of OpenSSH). Times are seconds since 1970. */
export interface SshCertificate {
  /** For example `ssh-ed25519-cert-v01@openssh.com`. */
  readonly type: string;
  /** Blob of the certified key in its plain form. */
  readonly publicKey: Buffer;
  readonly kind: 'user' | 'host';
  readonly serial: bigint;
  readonly keyId: string;
  /** Who it stands for; empty means anyone. */
  readonly principals: readonly string[];
  readonly validAfter: bigint;
  readonly validBefore: bigint;
  readonly criticalOptions: readonly string[];
  readonly authority: Buffer;
  readonly signed: Buffer;
  readonly signature: Buffer;
}

/** Fields of the plain public key between the nonce and the serial, by plain type. */
const KEY_FIELDS: Readonly<Record<string, number>> = {
  'ssh-ed25519': 1,
  'ssh-rsa': 2,
  'ecdsa-sha2-nistp256': 2,
  'ecdsa-sha2-nistp384': 2,
  'ecdsa-sha2-nistp521': 2,
};

const SUFFIX = '-cert-v01@openssh.com';

export function isCertificateType(type: string): boolean {
  return type.endsWith(SUFFIX);
}

/** `ssh-ed25519` of `ssh-ed25519-cert-v01@openssh.com`. */
export function plainType(type: string): string {
  return type.endsWith(SUFFIX) ? type.slice(0, -SUFFIX.length) : type;
}

/** Reads a certificate blob; undefined for one of an unknown kind or cut short. */
export function parseCertificate(blob: Uint8Array): SshCertificate | undefined {
  try {
    return read(blob);
  } catch (thrown) {
    if (thrown instanceof RangeError) return undefined;
    throw thrown;
  }
}

/** Reads the one line of an `id_x-cert.pub` file. */
export function parseCertificateLine(line: string): SshCertificate | undefined {
  const [type, base64] = line.trim().split(/\s+/);
  if (type === undefined || base64 === undefined || !isCertificateType(type)) return undefined;
  return parseCertificate(Buffer.from(base64, 'base64'));
}

function read(blob: Uint8Array): SshCertificate | undefined {
  const reader = new WireReader(blob);
  const type = reader.text();
  const plain = plainType(type);
  const fields = KEY_FIELDS[plain];
  if (!isCertificateType(type) || fields === undefined) return undefined;
  reader.string();
  const key = Array.from({ length: fields }, () => wireString(reader.string()));
  const serial = reader.uint64();
  const kind = reader.uint32();
  const keyId = reader.text();
  const principals = strings(reader.string());
  const validAfter = reader.uint64();
  const validBefore = reader.uint64();
  const criticalOptions = strings(reader.string()).filter((_, index) => index % 2 === 0);
  reader.string();
  reader.string();
  const authority = reader.string();
  const end = reader.offset;
  const signature = reader.string();
  if (kind !== 1 && kind !== 2) return undefined;
  return {
    type,
    publicKey: Buffer.concat([wireString(plain), ...key]),
    kind: kind === 1 ? 'user' : 'host',
    serial,
    keyId,
    principals,
    validAfter,
    validBefore,
    criticalOptions,
    authority,
    signed: Buffer.from(blob).subarray(0, end),
    signature,
  };
}

function strings(packed: Buffer): readonly string[] {
  const reader = new WireReader(packed);
  const found: string[] = [];
  while (!reader.atEnd) found.push(reader.text());
  return found;
}

/**
 * Why a host certificate does not prove that the host is `name`, or undefined when it does. `trusts` tells whether an
 * authority's key blob is in a `@cert-authority` line for that host. `now` is in seconds since 1970.
 */
export function hostCertificateFault(
  certificate: SshCertificate,
  name: string,
  now: number,
  trusts: (authority: Buffer) => boolean,
): string | undefined {
  if (certificate.kind !== 'host') return 'it is a certificate of a user';
  if (!trusts(certificate.authority))
    return `no @cert-authority line has its authority ${fingerprint(certificate.authority)}`;
  if (isCertificateType(keyType(certificate.authority))) return 'its authority is itself a certificate';
  if (!verifySignature(certificate.authority, certificate.signed, certificate.signature))
    return 'its signature is wrong';
  if (BigInt(Math.floor(now)) < certificate.validAfter) return 'it is not valid yet';
  if (BigInt(Math.floor(now)) >= certificate.validBefore) return 'it has expired';
  if (certificate.criticalOptions.length > 0)
    return `it has an unknown critical option ${certificate.criticalOptions[0]}`;
  // One without principals would stand for every host of the authority; it is refused.
  if (!certificate.principals.includes(name)) return `it is for ${certificate.principals.join(', ') || 'no host'}`;
  return undefined;
}
