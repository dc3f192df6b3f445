import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import type { IncomingHttpHeaders } from 'node:http';
import { pipeline } from 'node:stream/promises';

export interface Digest {
  /** The name in node:crypto. */
  readonly name: 'sha256' | 'sha512' | 'md5';
  readonly base64: string;
}

/**
 * The server's digest of the whole content: Repr-Digest (RFC 9530), its predecessor Digest (RFC 3230) or, if the answer
 * is not a range, Content-MD5 (RFC 2616).
 */
export function digestOf(headers: IncomingHttpHeaders, ranged: boolean): Digest | undefined {
  const structured = /(?:^|,)\s*sha-(256|512)=:([A-Za-z0-9+/=]+):/i.exec(one(headers['repr-digest']));
  const older = /(?:^|,)\s*sha-(256|512)=([A-Za-z0-9+/=]+)/i.exec(one(headers['digest']));
  const found = structured ?? older;
  if (found) return { name: found[1] === '512' ? 'sha512' : 'sha256', base64: found[2] ?? '' };
  const md5 = one(headers['content-md5']);
  return ranged || !/^[A-Za-z0-9+/]{22}==$/.test(md5) ? undefined : { name: 'md5', base64: md5 };
}

export async function sameDigest(path: string, { name, base64 }: Digest): Promise<boolean> {
  const hash = createHash(name);
  await pipeline(createReadStream(path, { highWaterMark: 1 << 20 }), hash);
  return hash.digest('base64') === base64;
}

function one(header: string | readonly string[] | undefined): string {
  return typeof header === 'string' ? header.trim() : (header?.join(',') ?? '');
}
