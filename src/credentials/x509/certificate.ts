import { GryphusError } from '../../errors.ts';
import {
  children,
  context,
  type Der,
  expectTag,
  readBits,
  readInteger,
  readOid,
  readOne,
  readSmall,
  readTime,
  TAG,
} from './der.ts';
import { type Name, readName } from './name.ts';
import { OID } from './oids.ts';

export interface Extension {
  readonly oid: string;
  readonly critical: boolean;
  /** The DER inside the octet string. */
  readonly value: Uint8Array;
}

/** Anything signed: a certificate, a request, a revocation list. */
export interface Signed {
  /** The bytes that the signature covers. */
  readonly body: Uint8Array;
  readonly algorithm: string;
  readonly signature: Uint8Array;
}

/** The contents of a certificate (RFC 5280); times are in Unix seconds. */
export interface Certificate extends Signed {
  readonly der: Uint8Array;
  readonly serial: bigint;
  readonly issuer: Name;
  readonly subject: Name;
  readonly notBefore: number;
  readonly notAfter: number;
  /** SubjectPublicKeyInfo. */
  readonly publicKey: Uint8Array;
  readonly extensions: readonly Extension[];
  readonly ca: boolean;
  /** How many CA certificates may follow; `undefined` means no limit. */
  readonly caPathLength: number | undefined;
  /** `undefined`: usable for everything. */
  readonly keyUsage: KeyUsage | undefined;
  readonly proxy: ProxyCertInfo | undefined;
}

export interface KeyUsage {
  readonly digitalSignature: boolean;
  readonly certSign: boolean;
  readonly crlSign: boolean;
}

/** RFC 3820, 3.8. */
export interface ProxyCertInfo {
  /** How many proxies may follow; `undefined` means no limit. */
  readonly pathLength: number | undefined;
  /** The policy language, an object identifier. */
  readonly language: string;
  readonly policy: Uint8Array | undefined;
}

export function readCertificate(der: Uint8Array): Certificate {
  const signed = readSigned(der);
  const fields = [...children(readOne(signed.body, TAG.sequence))];
  if (fields[0]?.tag === context(0)) fields.shift();
  const [serial, , issuer, validity, subject, publicKey, ...optional] = fields;
  const [notBefore, notAfter] = children(expectTag(validity, TAG.sequence));
  const wrapped = optional.find((one) => one.tag === context(3));
  const list = wrapped === undefined ? [] : children(expectTag(children(wrapped)[0], TAG.sequence));
  const extensions = list.map(readExtension);
  const find = (oid: string) => extensions.find((one) => one.oid === oid)?.value;
  const constraints = readConstraints(find(OID.basicConstraints));
  return {
    ...signed,
    der,
    serial: readInteger(serial),
    issuer: readName(issuer),
    subject: readName(subject),
    notBefore: readTime(notBefore),
    notAfter: readTime(notAfter),
    publicKey: expectTag(publicKey, TAG.sequence).raw,
    extensions,
    ca: constraints.ca,
    caPathLength: constraints.pathLength,
    keyUsage: readKeyUsage(find(OID.keyUsage)),
    proxy: readProxyCertInfo(find(OID.proxyCertInfo)),
  };
}

export function readSigned(der: Uint8Array): Signed {
  const [body, algorithm, signature] = children(readOne(der, TAG.sequence));
  return {
    body: expectTag(body, TAG.sequence).raw,
    algorithm: readOid(children(expectTag(algorithm, TAG.sequence))[0]),
    signature: readBits(signature),
  };
}

export function readExtension(der: Der): Extension {
  const parts = children(expectTag(der, TAG.sequence));
  const critical = parts[1]?.tag === TAG.boolean && parts[1].content[0] !== 0;
  return { oid: readOid(parts[0]), critical, value: expectTag(parts.at(-1), TAG.octetString).content };
}

function readConstraints(value: Uint8Array | undefined): { ca: boolean; pathLength: number | undefined } {
  if (value === undefined) return { ca: false, pathLength: undefined };
  const parts = children(readOne(value, TAG.sequence));
  const length = parts.find((one) => one.tag === TAG.integer);
  return {
    ca: parts[0]?.tag === TAG.boolean && parts[0].content[0] !== 0,
    pathLength: length === undefined ? undefined : readSmall(length),
  };
}

function readKeyUsage(value: Uint8Array | undefined): KeyUsage | undefined {
  if (value === undefined) return undefined;
  const first = readBits(readOne(value))[0] ?? 0;
  return {
    digitalSignature: (first & 0x80) !== 0,
    certSign: (first & 0x04) !== 0,
    crlSign: (first & 0x02) !== 0,
  };
}

function readProxyCertInfo(value: Uint8Array | undefined): ProxyCertInfo | undefined {
  if (value === undefined) return undefined;
  const parts = children(readOne(value, TAG.sequence));
  const limit = parts[0]?.tag === TAG.integer ? readSmall(parts[0]) : undefined;
  const [language, policy] = children(expectTag(parts.at(-1), TAG.sequence));
  return { pathLength: limit, language: readOid(language), policy: policy?.content };
}

/**
 * The kind of certificate, which the chain's rules depend on. `legacy`: a proxy from before RFC 3820, known by its name
 * only.
 */
export type CertificateKind = 'ca' | 'end-entity' | 'proxy' | 'limited-proxy' | 'independent-proxy' | 'legacy-proxy';

export function kindOf(certificate: Certificate): CertificateKind {
  switch (certificate.proxy?.language) {
    case OID.limited:
      return 'limited-proxy';
    case OID.independent:
      return 'independent-proxy';
    case undefined:
      break;
    default:
      return 'proxy';
  }
  if (certificate.extensions.some((one) => one.oid === OID.draftProxyCertInfo)) return 'legacy-proxy';
  if (certificate.subject.text === `${certificate.issuer.text}/CN=proxy`) return 'legacy-proxy';
  if (certificate.subject.text === `${certificate.issuer.text}/CN=limited proxy`) return 'legacy-proxy';
  return certificate.ca ? 'ca' : 'end-entity';
}

/** `readCertificate` for a block of a file; the error names the place. */
export function readCertificateOf(der: Uint8Array, where: string): Certificate {
  try {
    return readCertificate(der);
  } catch (cause) {
    throw new GryphusError('credential-invalid', `${where} holds a certificate that cannot be read.`, { cause });
  }
}
