import { createHash, createPublicKey, type KeyObject, verify } from 'node:crypto';
import { WireReader } from '../util/ssh-wire.ts';

/** The name at the beginning of a key blob, for example `ssh-ed25519`. */
export function keyType(blob: Uint8Array): string {
  return new WireReader(blob).text();
}

/** In OpenSSH's format: `SHA256:…`, base64 without padding. */
export function fingerprint(blob: Uint8Array): string {
  return `SHA256:${createHash('sha256').update(blob).digest('base64').replace(/=+$/, '')}`;
}

const CURVES: Readonly<Record<string, { curve: string; hash: string }>> = {
  nistp256: { curve: 'P-256', hash: 'sha256' },
  nistp384: { curve: 'P-384', hash: 'sha384' },
  nistp521: { curve: 'P-521', hash: 'sha512' },
};

/** Parses a public key blob (RFC 4253 section 6.6, RFC 5656, RFC 8709); undefined for a type that we cannot check. */
function publicKeyObject(blob: Uint8Array): KeyObject | undefined {
  const reader = new WireReader(blob);
  const type = reader.text();
  const url = (bytes: Buffer): string => bytes.toString('base64url');
  if (type === 'ssh-ed25519') {
    return createPublicKey({ format: 'jwk', key: { kty: 'OKP', crv: 'Ed25519', x: url(reader.string()) } });
  }
  if (type === 'ssh-rsa') {
    const e = url(reader.integer());
    return createPublicKey({ format: 'jwk', key: { kty: 'RSA', e, n: url(reader.integer()) } });
  }
  const found = CURVES[type.replace('ecdsa-sha2-', '')];
  if (!type.startsWith('ecdsa-sha2-') || found === undefined) return undefined;
  reader.string();
  const point = reader.string();
  const half = (point.length - 1) / 2;
  const x = url(point.subarray(1, 1 + half));
  return createPublicKey({ format: 'jwk', key: { kty: 'EC', crv: found.curve, x, y: url(point.subarray(1 + half)) } });
}

/** Whether the key of `blob` made an SSH signature blob over `data`. SHA-1 signatures are never accepted. */
export function verifySignature(blob: Uint8Array, data: Uint8Array, signature: Uint8Array): boolean {
  const reader = new WireReader(signature);
  const algorithm = reader.text();
  const value = reader.string();
  const type = keyType(blob);
  const key = publicKeyObject(blob);
  if (key === undefined) return false;
  if (type === 'ssh-rsa') {
    const hash = { 'rsa-sha2-256': 'sha256', 'rsa-sha2-512': 'sha512' }[algorithm];
    return hash !== undefined && verify(hash, data, key, value);
  }
  if (algorithm !== type) return false;
  if (type === 'ssh-ed25519') return verify(undefined, data, key, value);
  const found = CURVES[type.replace('ecdsa-sha2-', '')];
  if (found === undefined) return false;
  const numbers = new WireReader(value);
  const size = { 'P-256': 32, 'P-384': 48, 'P-521': 66 }[found.curve] ?? 0;
  const fixed = (bytes: Buffer): Buffer => Buffer.concat([Buffer.alloc(Math.max(0, size - bytes.length)), bytes]);
  const joined = Buffer.concat([fixed(numbers.integer()), fixed(numbers.integer())]);
  return verify(found.hash, data, { key, dsaEncoding: 'ieee-p1363' }, joined);
}
