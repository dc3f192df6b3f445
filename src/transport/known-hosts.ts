import { createHmac, randomBytes } from 'node:crypto';
import { isCertificateType, parseCertificate } from '../util/ssh-certificate.ts';
import { hostCertificateFault } from './host-certificate.ts';
import { keyType } from './public-key.ts';
import { matchesPatterns } from './ssh-pattern.ts';

/** A valid line of a known_hosts file (sshd(8), SSH_KNOWN_HOSTS FILE FORMAT). */
export interface KnownHost {
  readonly marker: 'revoked' | 'cert-authority' | undefined;
  /** The host field as written: patterns separated by commas, or `|1|salt|hash`. */
  readonly hosts: string;
  readonly type: string;
  readonly key: Buffer;
  readonly file: string;
  readonly line: number;
}

/** Parses a known_hosts file; like OpenSSH, it skips lines that it cannot read. */
export function parseKnownHosts(text: string, file: string): readonly KnownHost[] {
  return text.split('\n').flatMap((line, index) => {
    const words = line.trim().split(/[ \t]+/);
    const first = words[0] ?? '';
    if (first === '' || first.startsWith('#')) return [];
    const marker = first === '@revoked' ? 'revoked' : first === '@cert-authority' ? 'cert-authority' : undefined;
    if (marker === undefined && first.startsWith('@')) return [];
    const [hosts, type, base64] = marker === undefined ? words : words.slice(1);
    if (hosts === undefined || type === undefined || base64 === undefined) return [];
    const key = Buffer.from(base64, 'base64');
    if (blobType(key) !== type) return [];
    return [{ marker, hosts, type, key, file, line: index + 1 }];
  });
}

function blobType(key: Buffer): string | undefined {
  try {
    return keyType(key);
  } catch {
    return undefined;
  }
}

/** Whether a line's host field matches `name` (`host` or `[host]:port`, in lower case). */
export function matchesHost(hosts: string, name: string): boolean {
  const hashed = /^\|1\|([^|]+)\|([^|]+)$/.exec(hosts);
  if (hashed !== null) {
    const salt = Buffer.from(hashed[1] ?? '', 'base64');
    return createHmac('sha1', salt).update(name).digest('base64') === hashed[2];
  }
  return matchesPatterns(name, hosts.toLowerCase().split(','));
}

/** A host field that does not reveal its host (ssh-keygen -H). */
export function hashHost(name: string, salt: Uint8Array = randomBytes(20)): string {
  return `|1|${Buffer.from(salt).toString('base64')}|${createHmac('sha1', salt).update(name).digest('base64')}`;
}

export type HostKeyVerdict =
  | { readonly kind: 'known' }
  | { readonly kind: 'unknown' }
  | { readonly kind: 'revoked'; readonly by: KnownHost }
  | { readonly kind: 'changed'; readonly by: KnownHost }
  /** An invalid certificate, with the reason. */
  | { readonly kind: 'bad-certificate'; readonly reason: string };

/**
 * Classifies the key that a host presented. `name` is `host` or `[host]:port`; as in OpenSSH, a key known for the plain
 * host is valid for each of its ports. `now` is in seconds since 1970.
 */
export function checkHostKey(entries: readonly KnownHost[], name: string, key: Buffer, now: number): HostKeyVerdict {
  const plain = plainName(name);
  const atPort = entries.filter((entry) => matchesHost(entry.hosts, name));
  const atHost = plain === name ? [] : entries.filter((entry) => matchesHost(entry.hosts, plain));
  const about = [...atPort, ...atHost];
  const certificate = isCertificateType(keyType(key)) ? parseCertificate(key) : undefined;
  const revoked = about.find(
    (entry) =>
      entry.marker === 'revoked' &&
      [key, certificate?.publicKey, certificate?.authority].some((bad) => bad?.equals(entry.key)),
  );
  if (revoked !== undefined) return { kind: 'revoked', by: revoked };

  if (isCertificateType(keyType(key))) {
    if (certificate === undefined) return { kind: 'bad-certificate', reason: 'it cannot be read' };
    const trusts = (authority: Buffer): boolean =>
      about.some((entry) => entry.marker === 'cert-authority' && entry.key.equals(authority));
    const reason = hostCertificateFault(certificate, plain, now, trusts);
    return reason === undefined ? { kind: 'known' } : { kind: 'bad-certificate', reason };
  }
  const keys = about.filter((entry) => entry.marker === undefined);
  if (keys.some((entry) => entry.key.equals(key))) return { kind: 'known' };
  const changed = atPort.find((entry) => entry.marker === undefined && entry.type === keyType(key));
  return changed === undefined ? { kind: 'unknown' } : { kind: 'changed', by: changed };
}

/** The `host` in `[host]:port`. */
export function plainName(name: string): string {
  return /^\[(.*)\]:\d+$/.exec(name)?.[1] ?? name;
}

/** What known_hosts knows about a host: the key types, and whether an authority may vouch for it. */
export function knownFor(
  entries: readonly KnownHost[],
  name: string,
): { readonly types: readonly string[]; readonly authority: boolean } {
  const about = entries.filter((entry) => matchesHost(entry.hosts, name) || matchesHost(entry.hosts, plainName(name)));
  return {
    types: [...new Set(about.filter((entry) => entry.marker === undefined).map((entry) => entry.type))],
    authority: about.some((entry) => entry.marker === 'cert-authority'),
  };
}
