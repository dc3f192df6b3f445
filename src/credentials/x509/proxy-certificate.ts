import { randomBytes, type KeyObject } from 'node:crypto';
import { GryphusError } from '../../errors.ts';
import { timeText } from '../../util/plain-text.ts';
import { type Certificate, kindOf } from './certificate.ts';
import { context, readBits, readOne } from './der.ts';
import { bits, integer, octets, oid, sequence, time, tlv, truth } from './der-write.ts';
import { withCommonName } from './name.ts';
import { OID } from './oids.ts';
import { isKeyOf, signed } from './sign.ts';

export interface ProxyOptions {
  /** Unix seconds. */
  readonly now: number;
  /** In seconds from now, but never beyond the issuer's end. 12 h by default, as in grid-proxy-init. */
  readonly lifetime?: number;
  /**
   * `full`: all of the issuer's rights; `limited`: may not start jobs; `independent`: no rights of its own. By default,
   * the issuer's kind.
   */
  readonly rights?: Rights;
  /** How many proxies may follow below it; no limit by default. */
  readonly pathLength?: number;
}

export type Rights = 'full' | 'limited' | 'independent';

export const DEFAULT_LIFETIME = 12 * 3600;
/** Clocks differ, so a proxy is valid from five minutes ago, as with grid-proxy-init. */
const BACKDATED = 5 * 60;
const LANGUAGE: Readonly<Record<Rights, string>> = {
  full: OID.inheritAll,
  limited: OID.limited,
  independent: OID.independent,
};

/**
 * A proxy certificate (RFC 3820) for `publicKey`, signed with the issuer's key, as DER. Errors: 'credential-invalid' or
 * 'credential-expired', with a sentence for each thing that the issuer cannot grant.
 */
export function issueProxy(
  issuer: Certificate,
  issuerKey: KeyObject,
  publicKey: Uint8Array,
  options: ProxyOptions,
): Uint8Array {
  const rights = options.rights ?? (kindOf(issuer) === 'limited-proxy' ? 'limited' : 'full');
  mayIssue(issuer, issuerKey, rights, options);
  const serial = BigInt(`0x${randomBytes(8).toString('hex')}`) >> 1n || 1n;
  const end = Math.min(options.now + (options.lifetime ?? DEFAULT_LIFETIME), issuer.notAfter);
  const start = Math.max(options.now - BACKDATED, issuer.notBefore);
  const limit = options.pathLength === undefined ? [] : [integer(options.pathLength)];
  const extensions = [
    extension(OID.proxyCertInfo, true, sequence(...limit, sequence(oid(LANGUAGE[rights])))),
    extension(OID.keyUsage, true, keyUsageOf(issuer)),
    ...issuer.extensions
      .filter((one) => one.oid === OID.extendedKeyUsage)
      .map((one) => extension(one.oid, one.critical, one.value)),
  ];
  return signed(issuerKey, (algorithm) =>
    sequence(
      tlv(context(0), integer(2)),
      integer(serial),
      algorithm,
      issuer.subject.der,
      sequence(time(start), time(end)),
      withCommonName(issuer.subject.der, serial.toString()),
      publicKey,
      tlv(context(3), sequence(...extensions)),
    ),
  );
}

function extension(id: string, critical: boolean, value: Uint8Array): Uint8Array {
  return sequence(oid(id), ...(critical ? [truth()] : []), octets(value));
}

/**
 * The keyUsage bits (in the first byte) nonRepudiation, keyCertSign and cRLSign, which a proxy may not have (RFC 3820,
 * 3.6).
 */
const NOT_FOR_PROXIES = 0x40 | 0x04 | 0x02;
const SIGN_AND_ENCIPHER = 0xa0;

function keyUsageOf(issuer: Certificate): Uint8Array {
  const found = issuer.extensions.find((one) => one.oid === OID.keyUsage);
  const first = found === undefined ? SIGN_AND_ENCIPHER : (readBits(readOne(found.value))[0] ?? 0);
  const kept = first & ~NOT_FOR_PROXIES & 0xff;
  return bits(Buffer.from([kept]), Math.clz32(kept & -kept) === 32 ? 0 : 31 - Math.clz32(kept & -kept));
}

function mayIssue(issuer: Certificate, key: KeyObject, rights: Rights, options: ProxyOptions): void {
  const who = issuer.subject.text;
  const kind = kindOf(issuer);
  const refuse = (why: string, ...suggestions: string[]) =>
    new GryphusError('credential-invalid', `${who} cannot issue a proxy: ${why}.`, { suggestions });
  if (!isKeyOf(key, issuer.publicKey)) throw refuse('the private key does not match its certificate');
  if (issuer.notAfter <= options.now) {
    throw new GryphusError(
      'credential-expired',
      `${who} cannot issue a proxy: it ended at ${timeText(issuer.notAfter)}.`,
    );
  }
  if (issuer.notBefore > options.now + BACKDATED) {
    throw refuse(`it is valid only from ${timeText(issuer.notBefore)}`, 'Check the clock of this machine.');
  }
  if (kind === 'ca') throw refuse("it is a certificate authority's, and RFC 3820 lets only users' certificates");
  if (kind === 'legacy-proxy')
    throw refuse('it is a proxy from before RFC 3820', 'Create a new one: gryphus cred proxy init');
  if (issuer.keyUsage?.digitalSignature === false) throw refuse('its key may not sign (keyUsage)');
  if (kind === 'limited-proxy' && rights === 'full')
    throw refuse('it is limited, and a limited proxy gives limited ones');
  const limit = issuer.proxy?.pathLength;
  if (limit === 0) throw refuse('its path length is 0, so it may not issue proxies');
  if (limit !== undefined && options.pathLength !== undefined && options.pathLength >= limit) {
    throw refuse(`its path length is ${limit}, so the next may have ${limit - 1} at most`);
  }
  const lifetime = options.lifetime ?? DEFAULT_LIFETIME;
  if (!(lifetime > 0 && Number.isFinite(lifetime))) throw refuse(`${lifetime} seconds is not a valid lifetime`);
}
