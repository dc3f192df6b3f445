import { timeText } from '../../util/plain-text.ts';
import { type Certificate, kindOf } from './certificate.ts';
import { addedCommonName } from './name.ts';
import { OID } from './oids.ts';
import { checkSignature } from './sign.ts';
import { maySign } from './signing-policy.ts';
import type { Trust } from './trust.ts';

export interface VerifyOptions {
  /** Unix seconds. */
  readonly now: number;
  /** How far clocks may differ in either direction, in seconds; five minutes by default. */
  readonly skew?: number;
}

export type Refused =
  | 'not-yet-valid'
  | 'expired'
  | 'unknown-authority'
  | 'bad-signature'
  | 'weak-signature'
  | 'revoked'
  | 'stale-crl'
  | 'policy'
  | 'limited'
  | 'path-length'
  | 'not-a-proxy'
  | 'not-an-authority'
  | 'unknown-extension';

const DEFAULT_SKEW = 300;

/** Thrown by a rule and caught by `verifyChain`. */
export class ChainRefusal extends Error {
  readonly code: Refused;
  constructor(code: Refused, message: string) {
    super(message);
    this.code = code;
  }
}

const UNDERSTOOD: readonly string[] = [
  OID.basicConstraints,
  OID.keyUsage,
  OID.extendedKeyUsage,
  OID.subjectAltName,
  OID.certificatePolicies,
  OID.proxyCertInfo,
];

export function checkAlone(one: Certificate, { now, skew = DEFAULT_SKEW }: VerifyOptions): void {
  const who = one.subject.text;
  if (now < one.notBefore - skew) {
    throw new ChainRefusal(
      'not-yet-valid',
      `${who} is valid only from ${timeText(one.notBefore)}, but the time here is ${timeText(now)}; one of the clocks may be wrong.`,
    );
  }
  if (now > one.notAfter + skew) throw new ChainRefusal('expired', `${who} ended at ${timeText(one.notAfter)}.`);
  const unknown = one.extensions.find((extension) => extension.critical && !UNDERSTOOD.includes(extension.oid));
  if (unknown !== undefined) {
    throw new ChainRefusal(
      'unknown-extension',
      `${who} has the critical extension ${unknown.oid}, which Gryphus does not understand.`,
    );
  }
}

/** RFC 3820, 4.1; returns true if the rights are limited. */
export function checkProxies(proxies: readonly Certificate[], user: Certificate): boolean {
  let limited = false;
  for (const [depth, proxy] of [...proxies.entries()].reverse()) {
    const issuer = proxies[depth + 1] ?? user;
    const who = proxy.subject.text;
    const kind = kindOf(proxy);
    if (issuer.ca)
      throw new ChainRefusal('not-a-proxy', `${who} is a proxy of a certificate authority, which may have none.`);
    if (addedCommonName(proxy.subject.der, issuer.subject.der) === undefined) {
      throw new ChainRefusal(
        'not-a-proxy',
        `${who} is not a proxy of ${issuer.subject.text}: its name is not that name with one CN added.`,
      );
    }
    if (proxy.ca || proxy.extensions.some((one) => one.oid === OID.subjectAltName || one.oid === OID.issuerAltName)) {
      throw new ChainRefusal(
        'not-a-proxy',
        `${who} has what a proxy must not have: an alternative name, or an authority's rights.`,
      );
    }
    if (kind === 'proxy' && proxy.proxy?.language !== OID.inheritAll) {
      throw new ChainRefusal(
        'not-a-proxy',
        `${who} has rights in the language ${proxy.proxy?.language}, which Gryphus does not understand.`,
      );
    }
    if (!proxy.extensions.some((one) => one.oid === OID.proxyCertInfo && one.critical)) {
      throw new ChainRefusal('not-a-proxy', `${who} says that it is a proxy, but not as a critical extension.`);
    }
    if (issuer.keyUsage?.digitalSignature === false) {
      throw new ChainRefusal('not-a-proxy', `${issuer.subject.text} may not sign (keyUsage), but has signed ${who}.`);
    }
    checkSigned(proxy, issuer);
    if (limited && kind === 'proxy') throw new ChainRefusal('limited', `${who} is a full proxy below a limited one.`);
    limited ||= kind === 'limited-proxy';
    const limit = proxy.proxy?.pathLength;
    if (limit !== undefined && depth > limit) {
      throw new ChainRefusal('path-length', `${who} lets ${limit} proxies follow, and ${depth} do.`);
    }
  }
  return limited;
}

export function checkPath(path: readonly Certificate[], trust: Trust, options: VerifyOptions): void {
  for (const [depth, one] of path.entries()) {
    const authority = path[depth + 1];
    if (authority === undefined) return;
    const who = authority.subject.text;
    if (!authority.ca || authority.keyUsage?.certSign === false) {
      throw new ChainRefusal(
        'not-an-authority',
        `${who} is not a certificate authority, but has signed ${one.subject.text}.`,
      );
    }
    if (authority.caPathLength !== undefined && depth > authority.caPathLength) {
      throw new ChainRefusal(
        'path-length',
        `${who} lets ${authority.caPathLength} authorities follow, and ${depth} do.`,
      );
    }
    checkSigned(one, authority);
    checkPolicy(one, authority, trust);
    checkRevoked(one, authority, trust, options);
  }
}

function checkSigned(one: Certificate, issuer: Certificate): void {
  const check = checkSignature(one, issuer.publicKey);
  if (check === 'good') return;
  throw check === 'weak'
    ? new ChainRefusal(
        'weak-signature',
        `${one.subject.text} is signed with an algorithm that is no longer secure (${one.algorithm}).`,
      )
    : new ChainRefusal('bad-signature', `${one.subject.text} is not signed by ${issuer.subject.text}.`);
}

function checkPolicy(one: Certificate, authority: Certificate, trust: Trust): void {
  const policies = trust.signingPolicy(authority.subject);
  const file = trust.policyFile(authority.subject);
  if (policies === undefined) {
    throw new ChainRefusal('policy', `${authority.subject.text} has no signing policy here: ${file} is missing.`);
  }
  if (!maySign(policies, authority.subject.text, one.subject.text)) {
    throw new ChainRefusal('policy', `${authority.subject.text} may not sign ${one.subject.text}, by ${file}.`);
  }
}

function checkRevoked(one: Certificate, authority: Certificate, trust: Trust, options: VerifyOptions): void {
  const { now, skew = DEFAULT_SKEW } = options;
  const name = authority.subject.text;
  for (const list of trust.revocationLists(authority.subject)) {
    if (checkSignature(list, authority.publicKey) !== 'good' || authority.keyUsage?.crlSign === false) {
      throw new ChainRefusal('bad-signature', `The revocation list of ${name} is not signed by it.`);
    }
    if (list.critical.length > 0) {
      throw new ChainRefusal(
        'unknown-extension',
        `The revocation list of ${name} has the critical extension ${list.critical[0]}.`,
      );
    }
    if (list.revoked.has(one.serial)) throw new ChainRefusal('revoked', `${name} has revoked ${one.subject.text}.`);
    if (list.nextUpdate !== undefined && now > list.nextUpdate + skew) {
      throw new ChainRefusal(
        'stale-crl',
        `The revocation list of ${name} ended at ${timeText(list.nextUpdate)}; run fetch-crl.`,
      );
    }
  }
}
