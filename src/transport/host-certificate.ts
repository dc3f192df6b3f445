import { isCertificateType, type SshCertificate } from '../util/ssh-certificate.ts';
import { fingerprint, keyType, verifySignature } from './public-key.ts';

/**
 * Why a host certificate does not prove that the host is `name`, or undefined if it does. `trusts` tells whether an
 * authority's key blob is in a `@cert-authority` line for that host. `now` is in seconds since 1970.
 */
export function hostCertificateFault(
  certificate: SshCertificate,
  name: string,
  now: number,
  trusts: (authority: Buffer) => boolean,
): string | undefined {
  if (certificate.kind !== 'host') return 'it is a user certificate';
  if (!trusts(certificate.authority))
    return `no @cert-authority line matches its authority ${fingerprint(certificate.authority)}`;
  if (isCertificateType(keyType(certificate.authority))) return 'its authority is itself a certificate';
  if (!verifySignature(certificate.authority, certificate.signed, certificate.signature))
    return 'its signature is invalid';
  if (Math.floor(now) < certificate.validAfter) return 'it is not valid yet';
  if (certificate.validBefore !== undefined && Math.floor(now) >= certificate.validBefore) return 'it has expired';
  const unknown = Object.keys(certificate.criticalOptions)[0];
  if (unknown !== undefined) return `it has an unknown critical option ${unknown}`;
  // A certificate without principals would be valid for every host of the authority, so it is refused.
  if (!certificate.principals.includes(name)) return `it is for ${certificate.principals.join(', ') || 'no host'}`;
  return undefined;
}
