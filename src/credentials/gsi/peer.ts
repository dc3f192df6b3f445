import { X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import type { DetailedPeerCertificate, TLSSocket } from 'node:tls';
import { GryphusError } from '../../errors.ts';
import { type Certificate, readCertificate } from '../x509/certificate.ts';
import type { Trust } from '../x509/trust.ts';
import { type ChainVerdict, verifyChain } from '../x509/verify.ts';

/** Who the peer must be. */
export type Expected =
  /**
   * A server whose certificate names its host; `remedy` says what to set if the server is right but has another name.
   */
  | { readonly is: 'host'; readonly host: string; readonly remedy: (dn: string) => string }
  /** Exactly this subject: our own for a job manager, a configured one for a server. */
  | { readonly is: 'subject'; readonly dn: string };

/** The chain that the peer presented, leaf first; empty if it presented none. A resumed session presents none. */
export function peerChain(socket: TLSSocket): Certificate[] {
  const chain: Certificate[] = [];
  const seen = new Set<string>();
  let at: DetailedPeerCertificate | undefined = socket.getPeerCertificate(true);
  while (at?.raw !== undefined && !seen.has(at.fingerprint256)) {
    seen.add(at.fingerprint256);
    chain.push(readCertificate(at.raw));
    at = at.issuerCertificate;
  }
  return chain;
}

/**
 * The result of verifying the peer; `undefined` if it showed no certificate. Ours, because Node rejects the grid's
 * chains.
 */
export function verifyPeer(socket: TLSSocket, trust: Trust): ChainVerdict | undefined {
  const [leaf, ...rest] = peerChain(socket);
  if (leaf === undefined) return undefined;
  return verifyChain([leaf, ...rest], trust, { now: Date.now() / 1000 });
}

/** Throws 'host-key-changed' unless the subject of the peer's end-entity certificate is the expected one. */
export function checkPeer(socket: TLSSocket, trust: Trust, expected: Expected, label: string): void {
  const [leaf, ...rest] = peerChain(socket);
  if (leaf === undefined) throw new GryphusError('protocol-error', `${label} showed no certificate.`);
  const verdict = verifyChain([leaf, ...rest], trust, { now: Date.now() / 1000 });
  const stranger = (why: string, ...suggestions: string[]) =>
    new GryphusError('host-key-changed', `${label} is not trusted: ${why}`, { suggestions });
  if (!verdict.ok) throw stranger(verdict.message);
  if (expected.is === 'subject') {
    if (verdict.identity === expected.dn) return;
    throw stranger(`it is ${verdict.identity}, and not ${expected.dn}.`);
  }
  const certificate = new X509Certificate(leaf.der);
  const { host } = expected;
  const named = isIP(host) === 0 ? certificate.checkHost(host) : certificate.checkIP(host);
  const commonName = /\/CN=(?:[a-z]+\/)?([^/]+)$/.exec(verdict.identity)?.[1];
  if (named !== undefined || commonName?.toLowerCase() === host.toLowerCase()) return;
  throw stranger(
    `it is ${verdict.identity}, which does not name ${host}.`,
    `If that is right, ${expected.remedy(verdict.identity)}.`,
  );
}
