import { WireReader, wireString } from './ssh-wire.ts';

/** An OpenSSH certificate (PROTOCOL.certkeys of OpenSSH). Times are seconds since 1970. */
export interface SshCertificate {
  /** For example `ssh-ed25519-cert-v01@openssh.com`. */
  readonly type: string;
  /** Blob of the certified key in its plain form. */
  readonly publicKey: Buffer;
  readonly kind: 'user' | 'host';
  readonly serial: bigint;
  readonly keyId: string;
  /** Log-in names or hosts for which it is valid; in a user's certificate, an empty list means any. */
  readonly principals: readonly string[];
  readonly validAfter: number;
  /** `undefined`: no end. */
  readonly validBefore: number | undefined;
  readonly criticalOptions: Readonly<Record<string, string>>;
  readonly extensions: readonly string[];
  /** Blob of the key that signed it. */
  readonly authority: Buffer;
  readonly signed: Buffer;
  readonly signature: Buffer;
}

/** The number of the public key's fields between the nonce and the serial, by plain type. */
const KEY_FIELDS: Readonly<Record<string, number>> = {
  'ssh-ed25519': 1,
  'ssh-rsa': 2,
  'rsa-sha2-256': 2,
  'rsa-sha2-512': 2,
  'ssh-dss': 4,
  'ecdsa-sha2-nistp256': 2,
  'ecdsa-sha2-nistp384': 2,
  'ecdsa-sha2-nistp521': 2,
  'sk-ssh-ed25519@openssh.com': 2,
  'sk-ecdsa-sha2-nistp256@openssh.com': 3,
};

const SUFFIX = '-cert-v01@openssh.com';
const FOR_EVER = 0xffff_ffff_ffff_ffffn;

export function isCertificateType(type: string): boolean {
  return type.endsWith(SUFFIX);
}

/** `ssh-ed25519` for `ssh-ed25519-cert-v01@openssh.com`; a plain type is returned as it is. */
export function plainType(type: string): string {
  if (!isCertificateType(type)) return type;
  return `${type.slice(0, -SUFFIX.length)}${type.startsWith('sk-') ? '@openssh.com' : ''}`;
}

/** Parses a certificate blob; undefined if its type is unknown or it is cut short. */
export function parseCertificate(blob: Uint8Array): SshCertificate | undefined {
  const found = read(blob);
  return typeof found === 'string' ? undefined : found;
}

/**
 * Parses the line of an `id_x-cert.pub` file; if it is invalid, returns the reason, such as `it is truncated`.
 */
export function readCertificateLine(line: string): SshCertificate | string {
  const [type = '', base64 = ''] = line.trim().split(/\s+/);
  if (type === '') return 'it is empty';
  if (!isCertificateType(type) || KEY_FIELDS[plainType(type)] === undefined)
    return 'its first word does not name a certificate type';
  const found = read(Buffer.from(base64, 'base64'));
  return typeof found !== 'string' && found.type !== type ? 'its first word is not the type of its content' : found;
}

function read(blob: Uint8Array): SshCertificate | string {
  try {
    return fieldsOf(blob);
  } catch (thrown) {
    if (thrown instanceof RangeError) return 'it is truncated';
    throw thrown;
  }
}

function fieldsOf(blob: Uint8Array): SshCertificate | string {
  const reader = new WireReader(blob);
  const type = reader.text();
  const plain = plainType(type);
  const fields = KEY_FIELDS[plain];
  if (!isCertificateType(type) || fields === undefined) return 'its first word is not the type of its content';
  reader.string(); // nonce
  const key = Array.from({ length: fields }, () => wireString(reader.string()));
  const serial = reader.uint64();
  const kind = reader.uint32();
  const keyId = reader.text();
  const principals = [...texts(reader.string())];
  const validAfter = reader.uint64();
  const validBefore = reader.uint64();
  const criticalOptions = options(reader.string());
  const extensions = options(reader.string());
  reader.string(); // reserved
  const authority = reader.string();
  const signed = Buffer.from(blob).subarray(0, reader.offset);
  const signature = reader.string();
  if (kind !== 1 && kind !== 2) return `it is neither for users nor for hosts (${kind})`;
  return {
    type,
    publicKey: Buffer.concat([wireString(plain), ...key]),
    kind: kind === 1 ? 'user' : 'host',
    serial,
    keyId,
    principals,
    validAfter: Number(validAfter),
    validBefore: validBefore === FOR_EVER ? undefined : Number(validBefore),
    criticalOptions,
    extensions: Object.keys(extensions),
    authority,
    signed,
    signature,
  };
}

function* texts(packed: Buffer): Generator<string> {
  const reader = new WireReader(packed);
  while (!reader.atEnd) yield reader.text();
}

/** Names and values; a value is a string within a string, and an option without a value is empty. */
function options(packed: Buffer): Record<string, string> {
  const reader = new WireReader(packed);
  const found: [string, string][] = [];
  while (!reader.atEnd) found.push([reader.text(), [...texts(reader.string())][0] ?? '']);
  return Object.fromEntries(found);
}
