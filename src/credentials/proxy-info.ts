import { createPublicKey } from 'node:crypto';
import { spanText } from '../util/plain-text.ts';
import { type Certificate, type CertificateKind, kindOf } from './x509/certificate.ts';
import { children, readOne, readText } from './x509/der.ts';
import { OID } from './x509/oids.ts';
import { type VomsAttributes, vomsAttributes } from './x509/voms.ts';

/** What `grid-proxy-info` and `voms-proxy-info` show, as data; times are in Unix seconds. */
export interface ProxyInfo {
  readonly subject: string;
  readonly issuer: string;
  /** The subject of the user's own certificate. */
  readonly identity: string;
  readonly email: string | undefined;
  readonly kind: CertificateKind;
  readonly bits: number;
  readonly start: number;
  /** The earliest end in the whole chain. */
  readonly end: number;
  /** How many proxies may follow; `undefined` means no limit. */
  readonly pathLength: number | undefined;
  readonly voms: readonly VomsAttributes[];
}

export function proxyInfo(chain: readonly [Certificate, ...Certificate[]]): ProxyInfo {
  const [leaf] = chain;
  const user = chain.find((one) => kindOf(one) === 'end-entity');
  const key = createPublicKey({ key: Buffer.from(leaf.publicKey), format: 'der', type: 'spki' });
  const EC_BITS: Readonly<Record<string, number>> = { prime256v1: 256, secp384r1: 384, secp521r1: 521 };
  return {
    subject: leaf.subject.text,
    issuer: leaf.issuer.text,
    identity: (user ?? chain.at(-1) ?? leaf).subject.text,
    email: user && emailOf(user),
    kind: kindOf(leaf),
    bits: key.asymmetricKeyDetails?.modulusLength ?? EC_BITS[key.asymmetricKeyDetails?.namedCurve ?? ''] ?? 0,
    start: Math.max(...chain.map((one) => one.notBefore)),
    end: Math.min(...chain.map((one) => one.notAfter)),
    pathLength: leaf.proxy?.pathLength,
    voms: vomsAttributes(chain),
  };
}

/** The rfc822Name of subjectAltName, or else the e-mail part of the subject. */
function emailOf(certificate: Certificate): string | undefined {
  const names = certificate.extensions.find((one) => one.oid === OID.subjectAltName);
  const mail = names && children(readOne(names.value)).find((one) => one.tag === 0x81);
  return mail === undefined ? /\/emailAddress=([^/]+)/.exec(certificate.subject.text)?.[1] : readText(mail);
}

/** HTCondor's attributes for a job with a proxy (manual, "Job ClassAd Attributes", x509UserProxy…). */
export function proxyAttributes(info: ProxyInfo): Readonly<Record<string, string | number>> {
  const [first] = info.voms;
  const fqans = [info.identity, ...info.voms.flatMap((one) => one.fqans)];
  return {
    x509userproxysubject: info.identity,
    x509UserProxyExpiration: info.end,
    ...(info.email === undefined ? {} : { x509UserProxyEmail: info.email }),
    ...(first === undefined
      ? {}
      : {
          x509UserProxyVOName: first.vo,
          x509UserProxyFirstFQAN: first.fqans[0] ?? '',
          x509UserProxyFQAN: fqans.join(','),
        }),
  };
}

const TYPE: Readonly<Record<CertificateKind, string>> = {
  proxy: 'RFC 3820 compliant impersonation proxy',
  'limited-proxy': 'RFC 3820 compliant limited proxy',
  'independent-proxy': 'RFC 3820 compliant independent proxy',
  'legacy-proxy': 'legacy proxy from before RFC 3820 (sites refuse it)',
  'end-entity': 'end entity certificate',
  ca: 'certificate authority',
};

/** Lines for display, in the order of grid-proxy-info. */
export function proxyText(info: ProxyInfo, path: string, now: number): string {
  const lines: [string, string][] = [
    ['subject', info.subject],
    ['issuer', info.issuer],
    ['identity', info.identity],
    ['type', TYPE[info.kind]],
    ['strength', `${info.bits} bits`],
    ['path', path],
    ['time left', info.end > now ? spanText(info.end - now) : 'none, it has ended'],
  ];
  if (info.pathLength !== undefined) lines.push(['path length', String(info.pathLength)]);
  for (const voms of info.voms) {
    lines.push(['VO', `${voms.vo} (${voms.uri})`], ['attributes left', spanText(voms.notAfter - now)]);
    for (const fqan of voms.fqans) lines.push(['attribute', fqan]);
  }
  const width = Math.max(...lines.map(([name]) => name.length));
  return `${lines.map(([name, value]) => `${name.padEnd(width)} : ${value}`).join('\n')}\n`;
}
